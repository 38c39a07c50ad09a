// What is checked: the CUDA module, or a stand-in that computes on the host, with a fault on demand. The stand-in shows
// that the checks run, and that each of them finds what it is there for.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/accelerator.h"

namespace tg::gpu {

struct SubjectOptions {
  std::string module;  // path of tgd-cuda.so; empty: the stand-in
  std::string fault;   // the stand-in's; empty: none
  int device = 0;
  engine::Math math = engine::Math::kFp32;
};

// Lives to the end of the process. Throws std::runtime_error that says why there is none.
engine::Accelerator& open_subject(const SubjectOptions& options);

// The stand-in: the best kernels of this processor and the CPU engine. Faults, of what the calls do:
//   kernels: copy statistics ternarize apply add-scaled average digest, a bit of the last result is flipped
//   engine:  loss gradient batch-statistics evaluation, a number is one hundredth too large; doubled, the gradient is;
//            factor, it is taken as 1; thread, a flipped bit where the caller did not make the engine; rounding,
//            parameters are read with fewer bits than the arithmetic has; padding, a 1 is written there; repeat, every
//            third gradient has a flipped bit; dropout, other masks; early, the sink is called before there is a
//            gradient; order, first segments first; gate, parameters are read before it is called; limit, the bound on
//            activations is not kept; lost, the device was before an engine is made
// In tf32 and bf16 parameters are rounded to that many bits, and all else is float32.
std::unique_ptr<engine::Accelerator> make_stand_in(const std::string& fault, engine::Math math);

}  // namespace tg::gpu
