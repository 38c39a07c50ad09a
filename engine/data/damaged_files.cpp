#include <algorithm>

#include "engine/data/limits.h"
#include "engine/dataset.h"

namespace tg::engine {

void DamagedFiles::add(const std::string& message) {
  const std::lock_guard lock(mutex_);
  ++count_;
  if (messages_.size() < kMaxDamagedNamed && std::ranges::find(messages_, message) == messages_.end())
    messages_.push_back(message);
}

std::size_t DamagedFiles::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

std::vector<std::string> DamagedFiles::messages() const {
  const std::lock_guard lock(mutex_);
  return messages_;
}

}  // namespace tg::engine
