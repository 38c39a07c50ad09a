// What an examination has found so far: its threads write, the node's thread reads. Outlives abandoned threads.
#pragma once

#include <mutex>
#include <string>

#include "schema/control/doctor.h"

namespace tg::daemon {

class Report {
 public:
  template <class Write>
  void note(Write write) {
    const std::lock_guard lock(mutex_);
    write(facts_);
  }
  // The node's checks: this one begins.
  void begin(schema::Check check) {
    const std::lock_guard lock(mutex_);
    at_ = to_word(check);
  }
  void node_checks_done() {
    const std::lock_guard lock(mutex_);
    at_.clear();
    node_checks_done_ = true;
  }
  // The current check stays unfinished.
  void node_checks_failed() {
    const std::lock_guard lock(mutex_);
    node_checks_done_ = true;
  }
  void links_done() {
    const std::lock_guard lock(mutex_);
    links_done_ = true;
  }
  bool done() const {
    const std::lock_guard lock(mutex_);
    return node_checks_done_ && links_done_;
  }
  // A copy, with the unfinished checks.
  schema::Examination facts() const {
    const std::lock_guard lock(mutex_);
    schema::Examination copy = facts_;
    copy.unfinished = at_;
    return copy;
  }

 private:
  mutable std::mutex mutex_;
  schema::Examination facts_;
  std::string at_;
  bool node_checks_done_ = false, links_done_ = false;
};

}  // namespace tg::daemon
