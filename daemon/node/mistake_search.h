// Answers what the model of an ended run says of its test data (tgctl report --mistakes): one search at a time, on a
// thread of its own, which a run ends. What that thread is in cannot be interrupted: it is waited for a little, and
// then counts as what an earlier run has left behind (step/threads/orphaned_threads.h). Node's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "daemon/control/control_server.h"
#include "daemon/node/event_queue.h"
#include "daemon/run/run_context.h"

namespace tg::daemon {

class MistakeSearch {
 public:
  // All of it outlives this.
  MistakeSearch(const RunContext& context, EventQueue& queue, ControlServer& control)
      : context_(context), queue_(queue), control_(control) {}
  ~MistakeSearch() { abandon(); }

  // busy: why it cannot be now, "" = it can. key: drawn. Answered once, sooner or later.
  void begin(std::uint64_t token, const schema::MisclassificationsRequest& request, const std::string& busy,
             std::uint64_t key);
  bool on() const { return search_ != nullptr; }
  void on_found(MistakesFound& event);
  void tick();                      // ends a search that takes too long
  void give_way(const Error& why);  // to a run, or as the node ends

 private:
  struct Search;
  Result<RunRecord> record_of(const std::string& run) const;
  void answer(schema::ReplyBody reply);
  void abandon();

  const RunContext& context_;
  EventQueue& queue_;
  ControlServer& control_;
  std::shared_ptr<Search> search_;
  std::uint64_t token_ = 0, key_ = 0;
  std::chrono::steady_clock::time_point until_;
};

}  // namespace tg::daemon
