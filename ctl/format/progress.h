// The line that follows a run: what it says, and when a pipe gets another one. Pure: the caller brings the time.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "schema/control/control.h"

namespace tg::ctl {

class ProgressLine {
 public:
  // Takes one observation and returns the line: "RUNNING  step 120/1000  loss 0.1234  accuracy 97.10 %  ...  ETA
  // 1m12s".
  std::string update(const schema::RunStatus& run, std::int64_t now_ms);

 private:
  struct Observation {
    std::int64_t at_ms;
    std::uint64_t step;
  };
  std::deque<Observation> window_;  // the last kWindowMs, to tell the rate
};

// Whether a plain line is due: the first, every 10 s, every 100 steps, and when the state changed.
class PlainPace {
 public:
  bool due(const schema::RunStatus& run, std::int64_t now_ms);

 private:
  bool first_ = true;
  std::int64_t last_ms_ = 0;
  std::uint64_t last_step_ = 0;
  schema::RunState last_state_ = schema::RunState::kPending;
};

// Cut to a terminal's width, at a code point.
std::string fit_line(std::string line, std::size_t columns);

}  // namespace tg::ctl
