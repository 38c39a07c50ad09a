// The threads that carry out an exchange's pieces: the node's own and its helpers, each with a Worker of its own. With
// no helpers the node's thread does it all.
//
// The node's thread takes pieces of its member, hands out as many as the helpers have room for, and carries one out
// itself; what comes of the others is posted as StepEvents, on the helper's thread. At the end what is under way is
// waited for (a piece takes milliseconds and waits for nobody), what waits is dropped, and nothing is posted any more.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "daemon/step/member.h"
#include "daemon/step/step_event.h"
#include "daemon/step/threads/timeline.h"
#include "daemon/step/worker.h"

namespace tg::daemon {

class Crew {
 public:
  using Post = std::function<void(StepEvent&&)>;  // must not block
  // A helper for every worker.
  Crew(std::vector<std::unique_ptr<Worker>> workers, std::shared_ptr<Timeline> timeline, Post post);
  ~Crew();

  std::size_t size() const { return workers_.size(); }  // helpers
  // One piece on this thread, and as many as there is room for on the helpers'; false if there is none now.
  bool work(Member& member);
  // The helper that would take the next piece; none while each has one under way and one that waits.
  std::optional<Taker> free_helper() const;
  void give(Piece piece, std::uint64_t step);
  // Nothing more is begun: what waits is dropped, and no helper is free any more. The destructor waits for the rest.
  void end();

 private:
  struct Given {
    Piece piece;
    std::uint64_t step = 0;
  };
  static constexpr std::size_t kMostPieces = 2;  // of a helper: under way or waiting
  void help(std::size_t index);
  std::size_t pieces() const { return waiting_.size() + under_way_; }

  const std::vector<std::unique_ptr<Worker>> workers_;
  const std::shared_ptr<Timeline> timeline_;
  const Post post_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Given> waiting_;
  std::size_t under_way_ = 0;
  bool ends_ = false;

  std::vector<std::thread> threads_;  // last: they use everything above
};

}  // namespace tg::daemon
