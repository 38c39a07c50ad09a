// Chooses a library's algorithm for each call of a network. Algorithms differ in time by factors, which the libraries'
// own guesses often miss in float32, and in the last bits of their results. So each is timed when the engine is made.
// The choice is kept as text, and such a text can be given, so that a replay computes the same bits:
//
//   text := line ("\n" line)*
//   line := LAYER " " PASS ": " ALGORITHM ", " N " MiB"        "conv1 forward: algorithm 1, 12 MiB"
//
// PASS is forward, backward data, backward weights, or evaluation. ALGORITHM is cuDNN's number, or cuBLASLt's
// configuration in hexadecimal. N, the workspace, is for the reader. Evaluation changes no trained bit, and its batch
// may have another size in a replay: if a given choice for it does not exist, the call is timed anew.
//
// An algorithm whose call cannot be captured (graphs.h) is chosen only if none can.
//
// Not thread-safe; lives while an engine is made.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/cuda/library.h"
#include "engine/network/make_engine.h"

namespace tg::engine::cuda {

struct Candidate {
  std::string algorithm;      // "algorithm 1"
  std::size_t workspace = 0;  // bytes
  // Makes the call, on the library's compute stream with the library's workspace. It may write to any buffer of the
  // arena and to the trials' own parameters: they are still unused.
  std::function<void()> run;
};

// No algorithm of a call can do with what is left for its workspace.
class WorkspaceTooSmall : public TooLarge {
 public:
  using TooLarge::TooLarge;
};

inline constexpr std::string_view kEvaluation = " evaluation";  // ends the name of an evaluation call

class Trials {
 public:
  struct Options {
    std::string_view given;               // choices, "" for none
    std::size_t most_workspace = 0;       // bytes
    std::size_t weights = 0, biases = 0;  // floats of the largest of each
  };
  // Throws std::invalid_argument if the given text is malformed.
  Trials(Library& library, const Options& options);

  // Stand in for a layer's weight or its gradient, and for a bias: real ones do not exist yet, and must not be written.
  float* weight() { return parameters_.data(); }
  float* bias() { return parameters_.data() + bias_begin_; }

  std::size_t most_workspace() const { return most_workspace_; }

  // Bytes on the device from construction to destruction.
  static std::size_t bytes(const Options& options);

  // Called before the calls of the layer `name`. layer: a text that is equal for layers whose calls differ only in
  // addresses; they are timed once.
  void begin(const std::string& name, const std::string& layer);

  // The index of the given or the fastest candidate. call: "conv1 forward". Throws WorkspaceTooSmall,
  // std::runtime_error if none of them runs, and std::invalid_argument if the given one is not among the candidates,
  // or if there are none.
  std::size_t choose(const std::string& call, const std::vector<Candidate>& candidates);

  // Called after the last call: returns the choices, with their workspaces. Throws std::invalid_argument if a choice
  // was given for a call that the network does not have.
  const std::vector<std::string>& finish();
  std::size_t workspace() const { return workspace_; }

 private:
  // Whether the call cannot be captured, and the microseconds that it takes: the least pair is the best.
  using Time = std::pair<bool, double>;

  std::optional<std::size_t> given_choice(const std::string& call, const std::vector<Candidate>& candidates);
  std::string fastest(const std::string& call, const std::vector<Candidate>& candidates);
  // A candidate that is far slower than the shortest is not repeated.
  Time time(const Candidate& candidate, const Time& shortest);
  bool time_once(const Candidate& candidate, double& microseconds);

  Library& library_;
  const std::size_t most_workspace_, bias_begin_;
  kernels::cuda::DeviceArray<float> parameters_;
  kernels::cuda::Event released_, begin_, end_;
  std::map<std::string, std::string, std::less<>> given_;  // algorithm by call
  std::string name_, layer_;                               // the layer that chooses
  std::map<std::string, std::string> timed_;               // the fastest algorithm, by layer and pass
  std::vector<std::string> chosen_;
  std::size_t workspace_ = 0;
  long long spin_cycles_;
};

}  // namespace tg::engine::cuda
