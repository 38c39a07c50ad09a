// Follows a run: start and resume print its preparation and its training, and return its exit code. Main thread only.
#pragma once

#include <cstdint>
#include <string>

#include "ctl/client.h"
#include "ctl/format/progress.h"
#include "ctl/format/table.h"
#include "ctl/terminal/console.h"
#include "kernels/base/log.h"
#include "schema/control/control.h"

namespace tg::ctl {

// Added to start-timeout, for a node that reports no progress.
inline constexpr int kPreparationMs = 120'000;
inline constexpr const char* kNoRun = "no-run";  // for the status of a node alone

// Prints a run's progress: a line that is updated in place on a terminal, else a new line from time to time.
class ProgressPrinter {
 public:
  // A pipe gets a line when the text has changed. Returns false if the run is not being prepared.
  bool print_preparing(const schema::ReplyBody& reply);
  // Prints what the asked node does for a request without a run. Returns true if that has changed.
  bool print_activity(const schema::ReplyBody& reply, const char* asked = "dry run");
  void print_running(const schema::RunStatus& run);
  void end() { live_.end(); }

 private:
  // The last column stays empty, because a terminal that wraps there would leave lines behind.
  std::size_t columns() const { return terminal_ ? message_columns() - 1 : kColumns; }
  void print_line(const schema::RunStatus& run, std::int64_t now_ms, const std::string& line);
  // Counters change all the time, so a pipe gets a line from time to time.
  bool count_due(std::int64_t now_ms);

  const bool terminal_ = LiveLine::possible();
  const std::int64_t began_ms_ = unix_time_ms();
  std::int64_t next_count_ms_ = 0;
  std::string last_text_;  // the last line without its time
  ProgressLine progress_;
  RunNotices notices_;
  LineThrottle throttle_;
  LiveLine live_;
};

// Returns when the run has ended, or on Ctrl-C, which leaves it running.
int follow(Client& client, const std::string& id, ProgressPrinter& printer);
// Stops a run after Ctrl-C came before the node had answered its start.
int withdraw(Client& client, const std::string& id, const std::string& node = "");

}  // namespace tg::ctl
