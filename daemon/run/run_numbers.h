// The rates of a view on one member: the duration of its last steps, the bytes that they sent, the members that they
// waited for. The run's events update them; a run's status and the rows of metrics.jsonl show them. Node's thread.
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

// Adds an evaluation to the status, and updates the best one. classes: the model's.
void add_evaluation(const Member::Evaluation& evaluation, int classes, schema::RunStatus& status);

class RunNumbers {
 public:
  using Clock = std::chrono::steady_clock;
  // shares: the members' parts of the global batch, by rank. seniority: by rank, 1 = the senior.
  RunNumbers(std::vector<schema::MemberShare> shares, std::vector<std::uint32_t> seniority, Rank self,
             std::uint64_t global_batch);

  // sent_bytes: the mesh's total so far, including framing.
  void start_counting(std::uint64_t sent_bytes) { sent_bytes_before_ = sent_bytes; }
  void on_step_begun() { step_started_ = Clock::now(); }
  void on_committed(const Member::Committed& committed, std::uint64_t sent_bytes);
  // The node was idle during this time and waited for these members.
  void on_waited(const std::vector<Rank>& ranks, double seconds);
  // This node's engine waited for data in the current step.
  void on_data_wait(double seconds) { data_wait_seconds_ += seconds; }

  std::vector<schema::MemberStatus> member_rows() const;  // before the first step
  void fill(schema::RunStatus& status) const;             // rates and shares, including the members' rows
  // Returns the row of metrics.jsonl for the last commit. Each hundredth of the run and each evaluation adds segments.
  std::string metrics_row(const schema::RunStatus& status, bool evaluated, const engine::SegmentTable& segments) const;
  std::optional<double> nonzero_ratio() const;  // in the last step's codes
  std::uint64_t own_samples() const { return shares_[self_].samples; }
  std::uint64_t global_batch() const { return global_batch_; }
  double median_step_seconds() const;  // over the last steps; 0 before the first

 private:
  struct Step {
    double seconds = 0, sent_bytes = 0;
    Per<Rank, double> wait_seconds;
    double data_wait_seconds = 0;
  };
  const std::vector<schema::MemberShare> shares_;
  const std::vector<std::uint32_t> seniority_;
  const std::size_t self_;  // this node's row
  const std::uint64_t global_batch_;
  std::deque<Step> steps_;          // the last ones
  Per<Rank, double> wait_seconds_;  // in the current step
  double data_wait_seconds_ = 0;    // in the current step
  Clock::time_point step_started_{};
  std::uint64_t sent_bytes_before_ = 0, sent_bytes_step_ = 0;
  StepTraffic traffic_;  // in the last step
};

}  // namespace tg::daemon
