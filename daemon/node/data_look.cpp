#include "daemon/node/data_look.h"

#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace tg::daemon {

// Where the thread's result goes, as long as somebody listens.
struct DataLook::Listener {
  std::mutex mutex;
  Seen seen;  // empty: nobody
};

DataLook::DataLook(engine::DatasetOptions options, Seen seen) : listener_(std::make_shared<Listener>()) {
  listener_->seen = std::move(seen);
  const auto tell = [listener = listener_](Result<engine::SetSight> sight) {
    const std::lock_guard lock(listener->mutex);
    if (listener->seen) listener->seen(std::move(sight));
  };
  try {
    std::thread([options = std::move(options), tell] {
      try {
        tell(engine::look_at(options));
      } catch (const std::exception& error) {
        tell(Error{ErrorKind::kFailed, error.what()});
      }
    }).detach();
  } catch (const std::system_error& error) {
    tell(Error{ErrorKind::kFailed, std::string("no thread to look at the data on: ") + error.what()});
  }
}

DataLook::~DataLook() {
  const std::lock_guard lock(listener_->mutex);
  listener_->seen = nullptr;
}

}  // namespace tg::daemon
