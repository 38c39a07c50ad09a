// Looks at a job's data on a thread of its own: they may be many, or far away. Any thread.
#pragma once

#include <functional>
#include <memory>

#include "engine/dataset.h"

namespace tg::daemon {

class DataLook {
 public:
  using Seen = std::function<void(Result<engine::SetSight>)>;  // called once, on the look's thread; must not block
  DataLook(engine::DatasetOptions options, Seen seen);
  ~DataLook();  // nobody is told any more. The thread is not waited for: it may hang in a file system that is gone
  DataLook(const DataLook&) = delete;
  DataLook& operator=(const DataLook&) = delete;

 private:
  struct Listener;
  std::shared_ptr<Listener> listener_;
};

}  // namespace tg::daemon
