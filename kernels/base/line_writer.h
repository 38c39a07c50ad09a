// Lines on their way to a file or pipe that may stall (a reader that sleeps, a disk that hangs) or fail (a reader that
// has gone, no space left). Whoever writes never waits: a thread of its own does. What does not fit the queue, or is
// not taken, is lost and counted, and the count is written before the next line that is taken.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace tg {

class LineWriter {
 public:
  static constexpr std::size_t kMostQueuedBytes = 256 * 1024;     // about 1,500 lines
  static constexpr std::chrono::milliseconds kLastPatience{500};  // for what is queued at the end

  // What stands in the place of so many lost lines.
  using Note = std::function<std::string(std::uint64_t lost)>;

  LineWriter(int descriptor, Note note);    // which stays the caller's
  LineWriter(std::string path, Note note);  // appends to this file; opened, and made, by the writing thread
  // Waits for what is queued, kLastPatience at most. A thread that is stuck is left behind.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  void write(std::string line);  // without its newline; any thread

 private:
  struct State;
  explicit LineWriter(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace tg
