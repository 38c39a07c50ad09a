// The data of the live view: a node's last answer, the history of each run, the tail of a log. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "ctl/report/curves.h"
#include "schema/control/control.h"

namespace tg::ctl {

inline constexpr int kMaxHistoryTries = 5;

struct RunHistory {
  Series loss = {}, accuracy = {};
  std::uint64_t first_step = 0, step = 0, evaluation_step = 0;
  std::uint32_t lineage = 0;
  int history_tries = 0;  // to fetch the history before it was first seen; kMaxHistoryTries: fetched, or given up
};

struct LogTail {
  std::string run = {}, node = {};
  std::string text = {};  // at most two slices
  std::string problem = {};
  std::uint64_t offset = std::numeric_limits<std::uint64_t>::max();  // bytes read; beyond the end: none yet

  // Returns true if the node has more of the log.
  bool add(const schema::SliceReply& slice);
};

struct Facts {
  schema::MeshStatus mesh;
  std::int64_t mesh_ms = 0;  // when it arrived
  std::int64_t now_ms = 0;
  std::string error;  // why there was no answer since; "" = none
  std::map<std::string, RunHistory> histories;
  LogTail log;

  void update(schema::MeshStatus answer);
  // Adds the run's metrics up to now.
  void add_history(const std::string& run, const Curves& curves);
};

}  // namespace tg::ctl
