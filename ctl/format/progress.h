// The line with a run's progress, and when a pipe gets another one. Pure: the caller passes the time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "schema/control/control.h"

namespace tg::ctl {

// The time left at the mean rate since the present view began; none if it is unknown.
std::optional<double> seconds_left(const schema::RunStatus& run, std::int64_t now_ms);

class ProgressLine {
 public:
  // Adds one observation and returns the line, at most `columns` wide: "RUNNING  step 120/1000  1m12s left  loss 0.1234
  // accuracy 97.10 %  512 samples/s". Parts that do not fit are left out from the end; the time left never is.
  std::string update(const schema::RunStatus& run, std::int64_t now_ms, std::size_t columns);

 private:
  struct Observation {
    std::int64_t at_ms;
    std::uint64_t step;
  };
  std::deque<Observation> window_;  // the last kWindowMs, which give the rate
  std::uint32_t view_ = 1;          // the view of these observations
};

// Events that are reported once while a run is followed: it is PAUSED, or it continues with other members.
class RunNotices {
 public:
  std::string update(const schema::RunStatus& run);  // "" = no event

 private:
  bool first_ = true, paused_ = false;
  std::uint32_t view_ = 1;
  std::vector<std::string> left_;  // reported, or known from the beginning
};

// The line before a run has begun: the nodes that it waits for, or that the members prepare.
std::string preparing_line(const schema::MeshStatus& mesh, const schema::RunStatus& run, std::int64_t now_ms,
                           std::size_t columns);

// The line for a request without a run, such as "dry run", with the asked node's present activity.
std::string activity_line(const std::string& asked, const std::string& what, std::int64_t began_ms, std::int64_t now_ms,
                          std::size_t columns);

// Decides when a pipe gets a line: the first time, every 10 s, every 100 steps, and when the state or the activity
// changes. Never while the run is PAUSED, which RunNotices reports.
class LineThrottle {
 public:
  bool due(const schema::RunStatus& run, std::int64_t now_ms);

 private:
  bool first_ = true;
  std::int64_t last_ms_ = 0;
  std::uint64_t last_step_ = 0;
  schema::RunState last_state_ = schema::RunState::kPending;
  bool evaluated_ = false;  // a member was evaluating at the last line
};

}  // namespace tg::ctl
