// Writes lines to a file or pipe that may stall (a reader that sleeps, a disk that hangs) or fail (a reader that has
// gone, no space left). The caller never waits: a separate thread writes. Lines that do not fit the queue or cannot be
// written are dropped and counted, and the count is written before the next line that gets through.
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
  static constexpr std::size_t kMaxQueuedBytes = 256 * 1024;      // about 1,500 lines
  static constexpr std::chrono::milliseconds kLastPatience{500};  // the destructor's wait for queued lines

  // Makes the line that stands in the place of `lost` lines.
  using Note = std::function<std::string(std::uint64_t lost)>;

  LineWriter(int descriptor, Note note);    // the descriptor stays the caller's
  LineWriter(std::string path, Note note);  // appends to this file, which the writing thread opens and creates
  // Waits for the queued lines, kLastPatience at most. A thread that is stuck is left behind.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  void write(std::string line);  // `line` has no newline; any thread

 private:
  struct State;
  explicit LineWriter(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace tg
