// The state of an examination while its threads write it and the node's thread reads it. Outlives abandoned threads.
#pragma once

#include <cstddef>
#include <mutex>

#include "schema/control/doctor.h"

namespace tg::daemon {

class ExaminationProgress {
 public:
  template <class Write>
  void note(Write write) {
    const std::lock_guard lock(mutex_);
    write(facts_);
  }
  void end_node_checks() {
    const std::lock_guard lock(mutex_);
    node_checks_done_ = true;
  }
  void end_link_check() {
    const std::lock_guard lock(mutex_);
    ++links_done_;
  }
  bool node_checks_done() const {
    const std::lock_guard lock(mutex_);
    return node_checks_done_;
  }
  bool links_done() const {
    const std::lock_guard lock(mutex_);
    return links_done_ >= facts_.links.size();
  }
  schema::Examination facts() const {
    const std::lock_guard lock(mutex_);
    return facts_;
  }

 private:
  mutable std::mutex mutex_;
  schema::Examination facts_;
  bool node_checks_done_ = false;
  std::size_t links_done_ = 0;
};

}  // namespace tg::daemon
