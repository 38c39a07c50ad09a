// The run reporter receives each event of a run on one member once, and updates status, Prometheus, the log and
// metrics.jsonl. Lasts for the run; each view gives it the numbers of its members. A commit is shown when it is
// confirmed. Node's thread.
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

class RunReporter {
 public:
  using Clock = std::chrono::steady_clock;
  RunReporter(const RunContext& context, std::string run) : context_(context), run_(std::move(run)) {}

  // --- beginnings ---
  // A view's members take part from now on. numbers are valid until the next view.
  void begin_view(RunNumbers& numbers);
  // The run continued in this view from this step, with these changes of its members, for this reason.
  struct MemberChange {
    std::vector<std::string> departed, joined;  // names
  };
  void on_view_changed(std::uint32_t number, std::uint64_t step, const MemberChange& members, const std::string& why);
  // The run begins with this status.
  void begin(schema::RunStatus first, const std::shared_ptr<const Prepared>& prepared, double checkpoint_seconds);
  // append: continue the existing file after the row of that step.
  Status open_metrics(const std::string& directory, bool append, std::uint64_t after_step);

  // --- a step ---
  void on_step_begun(std::uint64_t step);
  void on_computed(const GradientReady& last);
  void on_committed(const Member::Committed& committed);
  void on_confirmed(std::uint64_t step);
  void on_evaluation_begun() { evaluating_ = Clock::now(); }
  // An evaluation that is already known is ignored: a view change may repeat it.
  void on_reported(const std::optional<Member::Evaluation>& evaluation);
  void on_waited(const View& view, const Waiting& waiting, double seconds);

  // Writes the row of the last commit if it was never confirmed, and returns its status; nothing otherwise.
  std::optional<schema::RunStatus> take_unconfirmed();
  // The commit was undone: it is not shown.
  void drop_unconfirmed() { unconfirmed_.reset(); }
  // Writes the row of the current state whose report does not follow.
  void write_without_report() { write_metrics(false); }

  // --- the run ---
  void set_state(schema::RunState state, const std::string& reason);  // the log has PAUSED and its end
  void set_note(const std::string& reason);                           // for people, during the run
  void set_digest(std::uint64_t digest, std::uint64_t step);  // the last one that all members have, or the end's
  void publish(bool now);                                     // updates status; false = at most every kPublishEvery
  const std::shared_ptr<LineFile>& metrics() const { return metrics_; }
  // No rows are added any more; the caller closes the file.
  std::shared_ptr<LineFile> take_metrics() { return std::move(metrics_); }

  const schema::RunStatus& status() const { return status_; }
  // Returns the status with the current rates.
  const schema::RunStatus& refreshed();

 private:
  void log_progress(bool ends);
  void log_damaged();
  void write_metrics(bool evaluated);

  const RunContext& context_;
  const std::string run_;
  schema::RunStatus status_;
  std::shared_ptr<const Prepared> prepared_;
  RunNumbers* numbers_ = nullptr;                 // the current view's
  std::optional<Member::Committed> unconfirmed_;  // the last commit
  std::shared_ptr<LineFile> metrics_;             // until take_metrics()
  std::uint64_t last_row_step_ = 0;               // the step of its last row
  Clock::time_point published_{}, logged_{};
  Clock::time_point computed_{}, evaluating_{};  // this node's gradient was complete; an evaluation began
  std::size_t damaged_logged_ = 0, damaged_counted_ = 0;
};

}  // namespace tg::daemon
