#include "engine/cuda/trials/trials.h"

#include <algorithm>
#include <limits>

#include "engine/cuda/trials/spin.h"
#include "kernels/base/median.h"

namespace tg::engine::cuda {
namespace {

// A call of cuDNN costs the host 30 to 75 us, more than many of them cost the device: so calls are queued behind a
// kernel that spins until all of them are there. 0.5 ms at 2 GHz to begin with; doubled where that was too short.
constexpr int kCallsQueued = 4;
constexpr long long kFirstCycles = 1'000'000, kMostCycles = 64'000'000;
constexpr int kRepeats = 3;  // their median counts

std::string mebibytes(std::size_t bytes) { return std::to_string((bytes + (1u << 20) - 1) >> 20) + " MiB"; }
std::string mebibytes_left(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// "conv1 forward: algorithm 1, 12 MiB"; the workspace is not looked at.
std::map<std::string, std::string, std::less<>> parse(std::string_view text) {
  std::map<std::string, std::string, std::less<>> choices;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t call = line.find(": "), workspace = line.rfind(", ");
    if (call == std::string_view::npos || workspace == std::string_view::npos || workspace < call + 2)
      throw std::invalid_argument("'" + std::string(line) + "' is no choice of an algorithm; they look like " +
                                  "'conv1 forward: algorithm 1, 12 MiB'");
    choices.emplace(line.substr(0, call), line.substr(call + 2, workspace - call - 2));
  }
  return choices;
}

}  // namespace

Trials::Trials(Library& library, const Options& options)
    : library_(library),
      most_workspace_(options.most_workspace),
      bias_begin_((options.weights + 63) / 64 * 64),
      parameters_(bias_begin_ + options.biases),
      begin_(cudaEventDefault),
      end_(cudaEventDefault),
      given_(parse(options.given)),
      spin_cycles_(kFirstCycles) {
  if (parameters_.size() > 0)
    TG_CUDA(cudaMemsetAsync(parameters_.data(), 0, parameters_.size() * sizeof(float), library.compute()));
}

std::size_t Trials::choose(const std::string& call, const std::vector<Candidate>& candidates) {
  std::vector<Candidate> allowed;
  std::size_t least = static_cast<std::size_t>(-1);
  for (const Candidate& each : candidates) {
    least = std::min(least, each.workspace);
    if (each.workspace <= most_workspace_) allowed.push_back(each);
  }
  const auto given = given_.find(call);
  std::size_t index = 0;
  if (given != given_.end()) {
    index = given_choice(call, given->second, candidates);
    given_.erase(given);
  } else {
    if (candidates.empty()) throw std::invalid_argument(call + ": the library has no deterministic algorithm for it");
    if (allowed.empty())
      throw WorkspaceTooSmall(call + " needs a workspace of " + mebibytes(least) + ", and " +
                              mebibytes_left(most_workspace_) + " are left for it");
    const std::string algorithm = allowed[fastest(allowed)].algorithm;
    while (candidates[index].algorithm != algorithm) ++index;
  }
  workspace_ = std::max(workspace_, candidates[index].workspace);
  chosen_.push_back(call + ": " + candidates[index].algorithm + ", " + mebibytes(candidates[index].workspace));
  return index;
}

std::size_t Trials::given_choice(const std::string& call, const std::string& algorithm,
                                 const std::vector<Candidate>& candidates) const {
  std::string known;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].algorithm != algorithm) {
      known += (known.empty() ? "" : "; ") + candidates[i].algorithm;
      continue;
    }
    if (candidates[i].workspace <= most_workspace_) return i;
    throw WorkspaceTooSmall(call + ": " + algorithm + ", which is asked for, needs a workspace of " +
                            mebibytes(candidates[i].workspace) + ", and " + mebibytes_left(most_workspace_) +
                            " are left for it");
  }
  throw std::invalid_argument(
      call + ": " + algorithm +
      ", which is asked for, is none of the deterministic ones of this library and device: " + known);
}

std::size_t Trials::fastest(const std::vector<Candidate>& candidates) {
  if (candidates.size() == 1) return 0;
  std::vector<double> times;
  for (const Candidate& each : candidates) times.push_back(microseconds(each));
  return static_cast<std::size_t>(std::min_element(times.begin(), times.end()) - times.begin());
}

double Trials::microseconds(const Candidate& candidate) {
  if (library_.workspace_bytes() < candidate.workspace) library_.take_workspace(candidate.workspace);
  // Its kernels are loaded by a first call, which may wait for the device: nothing may spin meanwhile.
  try {
    candidate.run();
  } catch (const std::runtime_error&) {  // listed, and refused all the same
    return std::numeric_limits<double>::infinity();
  }
  TG_CUDA(cudaStreamSynchronize(library_.compute()));
  std::vector<double> times;
  while (times.size() < kRepeats) {
    double time = 0;
    if (time_once(candidate, time) || spin_cycles_ >= kMostCycles) {
      times.push_back(time);
    } else {
      spin_cycles_ *= 2;
    }
  }
  return median(times);
}

// False where the device did not wait for the host all the time.
bool Trials::time_once(const Candidate& candidate, double& microseconds) {
  const cudaStream_t stream = library_.compute();
  spin(spin_cycles_, stream);
  TG_CUDA(cudaEventRecord(released_.get(), stream));
  TG_CUDA(cudaEventRecord(begin_.get(), stream));
  for (int i = 0; i < kCallsQueued; ++i) candidate.run();
  TG_CUDA(cudaEventRecord(end_.get(), stream));
  const bool waited = !is_done(released_.get());
  TG_CUDA(cudaEventSynchronize(end_.get()));
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
