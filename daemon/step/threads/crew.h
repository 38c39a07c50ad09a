// Helpers of the node's thread: threads that carry out pieces of an exchange side by side, each with a Worker of its
// own. With none of them the node's thread does it all.
//
// The node's thread gives pieces while there is room and goes on with its own; what comes of a piece is told through
// the hooks, on the helper's thread. At the end what is under way is waited for (a piece takes milliseconds and waits
// for nobody), what waits is dropped, and no hook is called any more.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "daemon/step/threads/timeline.h"
#include "daemon/step/worker.h"

namespace tg::daemon {

class Crew {
 public:
  struct Hooks {  // must not block
    std::function<void(MadeFrame total)> made;
    std::function<void(Piece piece, PieceResult result)> done;
  };
  // A helper for every worker.
  Crew(std::vector<std::unique_ptr<Worker>> workers, std::shared_ptr<Timeline> timeline, Hooks hooks);
  ~Crew();

  std::size_t size() const { return workers_.size(); }  // helpers
  // One piece under way and one that waits for each helper, for while the node's thread is at a piece of its own.
  bool has_room() const;
  void give(Piece piece, std::uint64_t step, std::size_t bucket);
  // Nothing more is begun: what waits is dropped, and there is no room any more. The destructor waits for the rest.
  void end();

 private:
  struct Given {
    Piece piece;
    std::uint64_t step = 0;
    std::size_t bucket = 0;
  };
  void help(std::size_t index);

  const std::vector<std::unique_ptr<Worker>> workers_;
  const std::shared_ptr<Timeline> timeline_;
  const Hooks hooks_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Given> waiting_;
  std::size_t under_way_ = 0;
  bool ends_ = false;

  std::vector<std::thread> threads_;  // last: they use everything above
};

}  // namespace tg::daemon
