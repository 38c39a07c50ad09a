#include "engine/cuda/trials/trials.h"

#include <algorithm>
#include <exception>
#include <limits>

#include "engine/cuda/graphs.h"
#include "engine/cuda/trials/spin.h"
#include "kernels/base/median.h"

namespace tg::engine::cuda {
namespace {

// A call of cuDNN costs the host 30 to 75 us, more than many of them cost the device: so calls are queued after a
// kernel that spins until all are queued. 0.5 ms at 2 GHz to begin with; doubled if that was too short.
constexpr int kCallsQueued = 4;
constexpr long long kFirstCycles = 1'000'000, kMaxCycles = 64'000'000;
constexpr int kRepeats = 3;    // the median counts
constexpr double kSlow = 1.5;  // times the shortest: not repeated

std::string mebibytes(std::size_t bytes) { return std::to_string((bytes + (1u << 20) - 1) >> 20) + " MiB"; }
std::string mebibytes_left(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// A number of floats, rounded up to a multiple of 256 bytes.
std::size_t whole_lines(std::size_t floats) { return (floats + 63) / 64 * 64; }

// Parses lines like "conv1 forward: algorithm 1, 12 MiB"; the workspace is ignored.
std::map<std::string, std::string, std::less<>> parse(std::string_view text) {
  std::map<std::string, std::string, std::less<>> choices;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t call = line.find(": "), workspace = line.rfind(", ");
    if (call == std::string_view::npos || workspace == std::string_view::npos || workspace < call + 2)
      throw std::invalid_argument("'" + std::string(line) + "' is not a choice of an algorithm; they look like " +
                                  "'conv1 forward: algorithm 1, 12 MiB'");
    choices.emplace(line.substr(0, call), line.substr(call + 2, workspace - call - 2));
  }
  return choices;
}

}  // namespace

Trials::Trials(Library& library, const Options& options)
    : library_(library),
      most_workspace_(options.most_workspace),
      bias_begin_(whole_lines(options.weights)),
      parameters_(bytes(options) / sizeof(float)),
      begin_(cudaEventDefault),
      end_(cudaEventDefault),
      given_(parse(options.given)),
      spin_cycles_(kFirstCycles) {
  if (parameters_.size() > 0)
    TG_CUDA(cudaMemsetAsync(parameters_.data(), 0, parameters_.size() * sizeof(float), library.compute()));
}

std::size_t Trials::bytes(const Options& options) {
  return (whole_lines(options.weights) + options.biases) * sizeof(float);
}

void Trials::begin(const std::string& name, const std::string& layer) {
  name_ = name;
  layer_ = layer;
}

std::size_t Trials::choose(const std::string& call, const std::vector<Candidate>& candidates) {
  std::optional<std::size_t> index = given_choice(call, candidates);
  if (!index) {
    const std::string algorithm = fastest(call, candidates);
    index =
        static_cast<std::size_t>(std::ranges::find(candidates, algorithm, &Candidate::algorithm) - candidates.begin());
  }
  const Candidate& chosen = candidates[*index];
  workspace_ = std::max(workspace_, chosen.workspace);
  chosen_.push_back(call + ": " + chosen.algorithm + ", " + mebibytes(chosen.workspace));
  return *index;
}

// The given choice; nothing if the call has to be timed.
std::optional<std::size_t> Trials::given_choice(const std::string& call, const std::vector<Candidate>& candidates) {
  const auto given = given_.find(call);
  if (given == given_.end()) return {};
  const std::string algorithm = given->second;
  given_.erase(given);
  std::string known;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].algorithm != algorithm) {
      known += (known.empty() ? "" : "; ") + candidates[i].algorithm;
      continue;
    }
    if (candidates[i].workspace <= most_workspace_) return i;
    if (call.ends_with(kEvaluation)) return {};
    throw WorkspaceTooSmall(call + ": " + algorithm + ", which was requested, needs a workspace of " +
                            mebibytes(candidates[i].workspace) + ", and " + mebibytes_left(most_workspace_) +
                            " are left for it");
  }
  if (call.ends_with(kEvaluation)) return {};
  throw std::invalid_argument(
      call + ": " + algorithm +
      ", which was requested, is not one of the deterministic algorithms of this library and device: " + known);
}

std::string Trials::fastest(const std::string& call, const std::vector<Candidate>& candidates) {
  if (candidates.empty()) throw std::invalid_argument(call + ": the library has no deterministic algorithm for it");
  std::vector<Candidate> allowed;
  std::size_t least = static_cast<std::size_t>(-1);
  for (const Candidate& each : candidates) {
    least = std::min(least, each.workspace);
    if (each.workspace <= most_workspace_) allowed.push_back(each);
  }
  if (allowed.empty())
    throw WorkspaceTooSmall(call + " needs a workspace of " + mebibytes(least) + ", and " +
                            mebibytes_left(most_workspace_) + " are left for it");
  if (allowed.size() == 1) return allowed[0].algorithm;
  std::string& best = timed_[layer_.empty() ? call : layer_ + call.substr(name_.size())];
  if (std::ranges::find(allowed, best, &Candidate::algorithm) != allowed.end()) return best;
  best.clear();  // an equal layer, and the library lists other algorithms for it

  Time shortest{true, std::numeric_limits<double>::infinity()};
  std::string refused;
  bool no_memory = false;
  for (const Candidate& each : allowed) {
    try {
      const Time taken = time(each, shortest);
      if (!best.empty() && shortest <= taken) continue;
      best = each.algorithm;
      shortest = taken;
    } catch (const kernels::cuda::DeviceLost& e) {
      throw kernels::cuda::DeviceLost(call + ": " + each.algorithm + ": " + e.what());
    } catch (const std::exception& e) {  // listed by the library, but refused
      cudaGetLastError();
      if (!refused.empty()) continue;
      refused = each.algorithm + ": " + e.what();
      no_memory = dynamic_cast<const kernels::cuda::OutOfMemory*>(&e) != nullptr;
    }
  }
  if (!best.empty()) return best;
  refused = call + ": none of " + std::to_string(allowed.size()) + " algorithms ran: " + refused;
  if (no_memory) throw WorkspaceTooSmall(refused);
  throw std::runtime_error(refused);
}

Trials::Time Trials::time(const Candidate& candidate, const Time& shortest) {
  if (library_.workspace_bytes() < candidate.workspace) library_.take_workspace(candidate.workspace);
  candidate.run();  // loads its kernels, which may wait for the device, so nothing may spin meanwhile
  library_.wait();
  bool captured = true;
  try {
    capture(library_.compute(), candidate.run);
  } catch (const std::exception&) {
    cudaGetLastError();
    captured = false;
  }
  if (!captured && !shortest.first) return {true, 0};
  std::vector<double> times;
  while (times.size() < kRepeats) {
    double time = 0;
    if (time_once(candidate, time) || spin_cycles_ >= kMaxCycles) {
      times.push_back(time);
      if (captured != shortest.first && time > kSlow * shortest.second) return {!captured, time};
    } else {
      spin_cycles_ *= 2;
    }
  }
  return {!captured, median(times)};
}

// False if the device had to wait for the host.
bool Trials::time_once(const Candidate& candidate, double& microseconds) {
  const cudaStream_t stream = library_.compute();
  spin(spin_cycles_, stream);
  TG_CUDA(cudaEventRecord(released_.get(), stream));
  TG_CUDA(cudaEventRecord(begin_.get(), stream));
  for (int i = 0; i < kCallsQueued; ++i) candidate.run();
  TG_CUDA(cudaEventRecord(end_.get(), stream));
  const bool waited = !kernels::cuda::is_done(released_.get());
  wait_for(end_.get());
  float milliseconds = 0;
  TG_CUDA(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()));
  microseconds = 1000.0 * milliseconds / kCallsQueued;
  return waited;
}

const std::vector<std::string>& Trials::finish() {
  if (!given_.empty())
    throw std::invalid_argument("a choice is given for " + given_.begin()->first +
                                ", which this network does not have");
  return chosen_;
}

}  // namespace tg::engine::cuda
