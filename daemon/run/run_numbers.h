// The live numbers of a run on one member: what status shows and what metrics.jsonl keeps, kept up to date by the run
// as steps are committed and reports come in. Writes <directory>/metrics.jsonl, a line per committed step. Node's
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/step/member.h"
#include "daemon/store/line_file.h"
#include "daemon/store/run_store.h"

namespace tg::daemon {

class RunNumbers {
 public:
  using Clock = std::chrono::steady_clock;
  // shares: of the global batch, by rank.
  RunNumbers(const std::vector<schema::MemberShare>& shares, Rank self, std::uint64_t global_batch);

  schema::RunStatus& status() { return status_; }
  const schema::RunStatus& status() const { return status_; }
  void open_metrics(const std::string& directory);
  void flush_metrics() { metrics_->flush(); }
  // From now on nothing is added; whoever takes it closes it.
  std::shared_ptr<LineFile> take_metrics() { return std::move(metrics_); }

  void step_began() { step_started_ = Clock::now(); }
  // sent_bytes: of the mesh so far, framing included.
  void committed(const Member::Committed& committed, std::uint64_t sent_bytes);
  void confirmed();  // the committed state is: status says so
  void evaluated(const Member::Evaluation& evaluation, int classes);
  // The node could only wait for these members during this time.
  void waited(const std::vector<Rank>& ranks, double seconds);
  // The own engine, in the step in progress.
  void waited_for_data(double seconds) { data_wait_seconds_ += seconds; }
  void digest(std::uint64_t digest, std::uint64_t step);
  void start_counting(std::uint64_t sent_bytes) { sent_bytes_before_ = sent_bytes; }
  void write_metrics(bool evaluated);
  void refresh();  // rates, shares and the members' rows of status()
  std::uint64_t own_samples() const { return status_.members[self_].samples; }
  double median_step_seconds() const;  // of the last steps; 0 before the first

 private:
  const std::size_t self_;  // the own row
  const std::uint64_t global_batch_;
  schema::RunStatus status_;
  struct Step {
    double seconds = 0, sent_bytes = 0;
    Per<Rank, double> wait_seconds;
    double data_wait_seconds = 0;
  };
  std::deque<Step> steps_;          // the last ones
  Per<Rank, double> wait_seconds_;  // of the step in progress
  double data_wait_seconds_ = 0;    // as well
  Clock::time_point step_started_{};
  std::uint64_t sent_bytes_before_ = 0, sent_bytes_step_ = 0;
  Member::Committed committed_;        // the last step
  std::shared_ptr<LineFile> metrics_;  // while the run goes on
};

}  // namespace tg::daemon
