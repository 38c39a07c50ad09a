// Shares work among as many threads as oneDNN has. Made on the thread that makes the engine's primitives; one share_out
// at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace tg::engine::cpu {

class Team {
 public:
  using Part = std::function<void(std::size_t first, std::size_t last, std::size_t thread)>;

  Team();
  std::size_t size() const { return static_cast<std::size_t>(threads_); }
  // Calls part for consecutive parts [first, last) of [0, count), each on a thread of its own; thread < size().
  void share_out(std::size_t count, const Part& part);

 private:
  const int threads_;
  std::atomic<unsigned> parts_done_ = 0;  // repeats OpenMP's barrier in a form that the thread sanitizer sees
};

}  // namespace tg::engine::cpu
