// Evaluates the model of an ended run on its test data (tgctl report --mistakes): one search at a time, on a thread of
// its own. A run that begins cancels it. A call in which that thread hangs cannot be interrupted: after a short wait
// the thread counts as orphaned (step/threads/orphaned_threads.h). Node's thread.
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

class MisclassificationSearch {
 public:
  // All arguments outlive the object.
  MisclassificationSearch(const RunContext& context, EventQueue& queue, ControlServer& control)
      : context_(context), queue_(queue), control_(control) {}
  ~MisclassificationSearch() { abandon(); }

  // busy: why no search can begin now; "" = the node is free. key: a random number. Each request gets one answer.
  void begin(std::uint64_t token, const schema::MisclassificationsRequest& request, const std::string& busy,
             std::uint64_t key);
  bool is_active() const { return search_ != nullptr; }
  void on_result(MisclassificationsFound& event);
  void tick();                    // cancels a search that takes too long
  void cancel(const Error& why);  // a run begins, or the node ends

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
