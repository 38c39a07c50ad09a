// The rates of a view on one member: how long its last steps took, what they sent, whom they waited for. Filled by the
// run's events, read into a run's status and into the lines of metrics.jsonl. Node's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "daemon/step/member.h"
#include "schema/control/control.h"

namespace tg::daemon {

// Into what status shows: this evaluation, and whether it is the best so far. classes: of the model.
void show(const Member::Evaluation& evaluation, int classes, schema::RunStatus& status);

class RunNumbers {
 public:
  using Clock = std::chrono::steady_clock;
  // shares: of the global batch, by rank; seniority: the same, 1 = the most senior.
  RunNumbers(std::vector<schema::MemberShare> shares, std::vector<std::uint32_t> seniority, Rank self,
             std::uint64_t global_batch);

  // sent_bytes: of the mesh so far, framing included.
  void start_counting(std::uint64_t sent_bytes) { sent_bytes_before_ = sent_bytes; }
  void step_began() { step_started_ = Clock::now(); }
  void committed(const Member::Committed& committed, std::uint64_t sent_bytes);
  // The node could only wait for these members during this time.
  void waited(const std::vector<Rank>& ranks, double seconds);
  // The own engine, in the step in progress.
  void waited_for_data(double seconds) { data_wait_seconds_ += seconds; }

  std::vector<schema::MemberStatus> rows() const;  // of the members, before the first step
  void show(schema::RunStatus& status) const;      // rates and shares, the members' rows among them
  // Of metrics.jsonl, of the last commit. Every hundredth of the run, and where it is evaluated, by segment as well.
  std::string line(const schema::RunStatus& status, bool evaluated, const engine::SegmentTable& segments) const;
  std::optional<double> nonzero_ratio() const;  // of the last step's codes
  std::uint64_t own_samples() const { return shares_[self_].samples; }
  std::uint64_t global_batch() const { return global_batch_; }
  double median_step_seconds() const;  // of the last steps; 0 before the first

 private:
  struct Step {
    double seconds = 0, sent_bytes = 0;
    Per<Rank, double> wait_seconds;
    double data_wait_seconds = 0;
  };
  const std::vector<schema::MemberShare> shares_;
  const std::vector<std::uint32_t> seniority_;
  const std::size_t self_;  // the own row
  const std::uint64_t global_batch_;
  std::deque<Step> steps_;          // the last ones
  Per<Rank, double> wait_seconds_;  // of the step in progress
  double data_wait_seconds_ = 0;    // as well
  Clock::time_point step_started_{};
  std::uint64_t sent_bytes_before_ = 0, sent_bytes_step_ = 0;
  StepTraffic traffic_;  // of the last step
};

}  // namespace tg::daemon
