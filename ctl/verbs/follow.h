// Following a run: what start and resume say while it is prepared and while it trains, and their exit code. Main thread
// only.
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

// Beyond start-timeout, for a node that does not say what it does.
inline constexpr int kPreparationMs = 120'000;
inline constexpr const char* kNoRun = "no-run";  // asks a node about itself, and for no run's status

// Where a run's progress goes: a line that changes on a terminal, else now and then a new one.
class Talk {
 public:
  // A pipe gets a line when it says something else than the one before. False: no such run is prepared.
  bool preparing(const schema::ReplyBody& reply);
  // A dry run, or whatever is asked for, is no run: the asked node says what it does. False: nothing
  // new.
  bool looking(const schema::ReplyBody& reply, const char* asked = "dry run");
  void running(const schema::RunStatus& run);
  void end() { live_.end(); }

 private:
  // The last column stays free: a terminal that wraps there would leave lines behind.
  std::size_t columns() const { return terminal_ ? talk_columns() - 1 : kColumns; }
  void tell(const schema::RunStatus& run, std::int64_t now_ms, const std::string& line);
  // What is counted changes all the time: a pipe gets a line now and then.
  bool count_due(std::int64_t now_ms);

  const bool terminal_ = LiveLine::possible();
  const std::int64_t began_ms_ = unix_time_ms();
  std::int64_t next_count_ms_ = 0;
  std::string said_;  // by the last line of a start, without its time, or by the node that looks
  ProgressLine progress_;
  RunNews news_;
  PlainPace pace_;
  LiveLine live_;
};

// Until it has ended, or Ctrl-C: then it goes on.
int follow(Client& client, const std::string& id, Talk& talk);
// Ctrl-C before the node has answered: the run is not wanted any more.
int withdraw(Client& client, const std::string& id);

}  // namespace tg::ctl
