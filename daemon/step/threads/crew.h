// The threads that execute an exchange's pieces: helpers, each with a Worker of its own, or none: then the node's
// thread executes all of them.
//
// With helpers the node's thread takes no piece itself: what a helper has made leaves at once, and a helper that has
// ended gets the next piece at once. What comes of a piece is posted as StepEvents, on the helper's thread: PieceDone,
// or EngineFailed where its tensor kernels throw. At the end what is under way is waited for (a piece takes
// milliseconds and waits for nobody), what waits is dropped, and nothing is posted any more.
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

  // Hands out as many pieces as the helpers take, or executes one on this thread if there are none. Without a piece
  // this thread does a part of what waits for such a time (Member::use_idle_time); false if nothing does.
  bool work(Member& member);
  // So many work() hands out or executes at a time.
  std::size_t most_pieces() const { return workers_.empty() ? 1 : kMaxPieces * workers_.size(); }
  // The helper that would take the next piece; none while each has one under way and one that waits.
  std::optional<Taker> free_helper() const;
  void give(Piece piece, const Origin& of);
  // Nothing more is begun: what waits is dropped, and no helper is free any more. The destructor waits for the rest.
  void end();

 private:
  struct Given {
    Piece piece;
    Origin of;
  };
  static constexpr std::size_t kMaxPieces = 2;  // a helper's pieces, under way or waiting
  bool work_here(Member& member);
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
