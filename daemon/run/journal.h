// A run's news on one member: whatever happens is told here once, and status, Prometheus, the log and metrics.jsonl are
// written from it, by step. Lasts for the run; what its rows and rates are about, the members of the present view, is
// given to it with each view. What a commit told is shown when it is confirmed. Node's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/run/run_context.h"
#include "daemon/run/run_numbers.h"
#include "daemon/step/member.h"
#include "daemon/store/line_file.h"
#include "schema/control/control.h"

namespace tg::daemon {

class Journal {
 public:
  using Clock = std::chrono::steady_clock;
  Journal(const RunContext& context, std::string run) : context_(context), run_(std::move(run)) {}

  // --- its beginnings ---
  // From now on these members take part: the numbers are the view's, and outlive it here.
  void enter(RunNumbers& numbers);
  // Another view: the run went on at this step, without and with these for this reason.
  struct Difference {
    std::vector<std::string> left, joined;  // names
  };
  void change_view(std::uint32_t number, std::uint64_t step, const Difference& members, const std::string& why);
  // The run begins with this status, and goes on with the metrics file where there is one.
  void begin(schema::RunStatus first, const std::shared_ptr<const Prepared>& prepared, double checkpoint_seconds);
  // goes_on: after the line of that step with the file that is there.
  Status open_metrics(const std::string& directory, bool goes_on, std::uint64_t after_step);

  // --- a step ---
  void step_began(std::uint64_t step);
  void computed(const GradientReady& last);
  void committed(const Member::Committed& committed);
  void confirmed(std::uint64_t step);
  void evaluation_began() { evaluating_ = Clock::now(); }
  // Told once more where the view changed before all had taken it: that is no news.
  void reported(const std::optional<Member::Evaluation>& evaluation);
  void waited(const View& view, const Waiting& waiting, double seconds);

  // The commit that was told last and never confirmed, as its status would have been; its line is written. Nothing if
  // there is none.
  std::optional<schema::RunStatus> take_unconfirmed();
  // It was undone: nothing is told of it.
  void drop_unconfirmed() { unconfirmed_.reset(); }
  // The line of the state that is shown, where a report was to come with it and does not.
  void write_without_report() { write_metrics(false); }

  // --- the run ---
  void state(schema::RunState state, const std::string& reason);  // PAUSED and its end are in the log as well
  void note(const std::string& reason);                           // what people should know while it goes on
  void digest(std::uint64_t digest, std::uint64_t step);
  void publish(bool now);  // as status shows it; else at most every kPublishEvery
  const std::shared_ptr<LineFile>& metrics() const { return metrics_; }
  // From now on nothing is added; whoever takes it closes it.
  std::shared_ptr<LineFile> take_metrics() { return std::move(metrics_); }

  const schema::RunStatus& status() const { return status_; }
  // With the rates of this moment.
  const schema::RunStatus& refreshed();

 private:
  void log_progress(bool ends);
  void log_damaged();
  void write_metrics(bool evaluated);

  const RunContext& context_;
  const std::string run_;
  schema::RunStatus status_;
  std::shared_ptr<const Prepared> prepared_;
  RunNumbers* numbers_ = nullptr;                 // of the present view
  std::optional<Member::Committed> unconfirmed_;  // what the last commit told
  std::shared_ptr<LineFile> metrics_;             // while the run goes on
  std::uint64_t last_line_ = 0;                   // the step of its last line
  Clock::time_point published_{}, logged_{};
  Clock::time_point computed_{}, evaluating_{};  // the own gradient was whole; an evaluation began
  std::size_t damaged_logged_ = 0, damaged_met_ = 0;
};

}  // namespace tg::daemon
