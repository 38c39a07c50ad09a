// What the live view knows: a node's last answer, the course of each run, the tail of a log.
// Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "ctl/report/curves.h"
#include "schema/control/control.h"

namespace tg::ctl {

inline constexpr int kMaxPastAsks = 5;

struct Course {
  Series loss = {}, accuracy = {};
  std::uint64_t first_step = 0, step = 0, evaluation_step = 0;
  std::uint32_t lineage = 0;
  int past_asks = 0;  // for what came before it was first seen; kMaxPastAsks: it is there, or was given up
};

struct LogTail {
  std::string run = {}, node = {};
  std::string text = {};  // two slices at most
  std::string problem = {};
  std::uint64_t offset = std::numeric_limits<std::uint64_t>::max();  // to ask from; too large a one finds the end

  // True if the node has more of it.
  bool take(const schema::SliceReply& slice);
};

struct Facts {
  schema::MeshStatus mesh;
  std::int64_t mesh_ms = 0;  // when it came
  std::int64_t now_ms = 0;
  std::string trouble;  // why there was no answer since; "" = nothing
  std::map<std::string, Course> courses;
  LogTail log;

  void take(schema::MeshStatus answer);
  // What its metrics say of the run so far.
  void take_past(const std::string& run, const Curves& curves);
};

}  // namespace tg::ctl
