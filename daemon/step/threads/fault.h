// Faults that tests ask for at named points of a run: `fault = kill@reduce:12`, `hang@backward:3`, `flip@forward:7`.
// Empty in real use. Immutable after parsing; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/base/status.h"
#include "schema/control/control.h"

namespace tg::daemon {

class Fault {
 public:
  enum class Kind : std::uint8_t { kNone, kKill, kHang, kFlip };
  Fault() = default;
  static Result<Fault> parse(const std::string& text);  // "" is no fault

  bool is(Kind kind, schema::Phase phase, std::uint64_t step) const {
    return kind_ == kind && phase_ == phase && step_ == step;
  }
  // Kills or hangs the calling thread if this is the point; returns otherwise.
  void reached(schema::Phase phase, std::uint64_t step) const;

 private:
  Kind kind_ = Kind::kNone;
  schema::Phase phase_ = schema::Phase::kIdle;
  std::uint64_t step_ = 0;
};

}  // namespace tg::daemon
