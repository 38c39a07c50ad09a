// The line that follows a run: what it says, and when a pipe gets another one. Pure: the caller brings the time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "schema/control/control.h"

namespace tg::ctl {

// How long a run still takes at its mean rate since it began; nothing where that cannot be told.
std::optional<double> seconds_left(const schema::RunStatus& run, std::int64_t now_ms);

class ProgressLine {
 public:
  // Takes one observation and returns the line, at most `columns` wide: "RUNNING  step 120/1000  1m12s left  loss
  // 0.1234  accuracy 97.10 %  512 samples/s". What does not fit is left out from the end; the time left never is.
  std::string update(const schema::RunStatus& run, std::int64_t now_ms, std::size_t columns);

 private:
  struct Observation {
    std::int64_t at_ms;
    std::uint64_t step;
  };
  std::deque<Observation> window_;  // the last kWindowMs, to tell the rate
  std::uint32_t view_ = 1;          // of these members
};

// What whoever follows a run is told once, when it happens: that it is PAUSED, that it goes on with other members.
class RunNews {
 public:
  std::string update(const schema::RunStatus& run);  // "" = nothing new

 private:
  bool first_ = true, paused_ = false;
  std::uint32_t view_ = 1;
  std::vector<std::string> left_;  // told, or known from the beginning
};

// The same before a run has begun: who is waited for, or that the members prepare.
std::string preparing_line(const schema::MeshStatus& mesh, const schema::RunStatus& run, std::int64_t now_ms,
                           std::size_t columns);

// The same of what is no run, "dry run", with what the asked node says that it does.
std::string looking_line(const std::string& asked, const std::string& what, std::int64_t began_ms, std::int64_t now_ms,
                         std::size_t columns);

// Whether a plain line is due: the first, every 10 s, every 100 steps, and when the state or what is done changed. None
// while the run is PAUSED, which RunNews says.
class PlainPace {
 public:
  bool due(const schema::RunStatus& run, std::int64_t now_ms);

 private:
  bool first_ = true;
  std::int64_t last_ms_ = 0;
  std::uint64_t last_step_ = 0;
  schema::RunState last_state_ = schema::RunState::kPending;
  bool evaluated_ = false;  // last time a member was evaluating
};

}  // namespace tg::ctl
