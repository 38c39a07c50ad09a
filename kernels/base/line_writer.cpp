#include "kernels/base/line_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace tg {

struct LineWriter::State {
  State(int descriptor, std::string file, Note lost_note)
      : path(std::move(file)), note(std::move(lost_note)), fd(descriptor) {}
  ~State() {
    if (!path.empty() && fd >= 0) ::close(fd);
  }

  void run();
  bool tell();
  bool put(std::string_view line);

  const std::string path;  // empty if the descriptor is the caller's
  const Note note;

  std::mutex mutex;
  std::condition_variable changed;
  struct Waiting {
    std::uint64_t lost_before = 0;  // lines dropped just before this one
    std::string line;
  };
  std::deque<Waiting> queue;           // guarded by mutex
  std::size_t queued_bytes = 0;        // guarded by mutex
  std::uint64_t lost = 0;              // lines dropped after the queue's last one; guarded by mutex
  bool ending = false, ended = false;  // guarded by mutex

  // Used by the writing thread only.
  int fd;
  std::uint64_t untold = 0;  // lines lost since the last note
  bool torn = false;         // a line broke off in the middle
};

LineWriter::LineWriter(int descriptor, Note note)
    : LineWriter(std::make_shared<State>(descriptor, "", std::move(note))) {}

LineWriter::LineWriter(std::string path, Note note)
    : LineWriter(std::make_shared<State>(-1, std::move(path), std::move(note))) {}

LineWriter::LineWriter(std::shared_ptr<State> state) : state_(std::move(state)) {
  std::thread([kept = state_] { kept->run(); }).detach();
}

LineWriter::~LineWriter() {
  std::unique_lock lock(state_->mutex);
  state_->ending = true;
  state_->changed.notify_all();
  state_->changed.wait_for(lock, kLastPatience, [this] { return state_->ended; });
}

void LineWriter::write(std::string line) {
  const std::lock_guard lock(state_->mutex);
  State& s = *state_;
  if (s.queued_bytes + line.size() > kMaxQueuedBytes) {
    ++s.lost;
    return;
  }
  s.queued_bytes += line.size();
  s.queue.push_back({std::exchange(s.lost, 0), std::move(line)});
  s.changed.notify_all();
}

// --- the writing thread ---

void LineWriter::State::run() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [this] { return ending || !queue.empty(); });
    if (queue.empty()) break;
    // The line counts until it is written: one in a stalled write is still waiting.
    const Waiting next = std::move(queue.front());
    lock.unlock();
    untold += next.lost_before;
    const bool taken = tell() && put(next.line);
    if (!taken) ++untold;
    lock.lock();
    queue.pop_front();
    queued_bytes -= next.line.size();
    // Lines lost after the last one are reported even if no further line comes.
    if (!taken || !queue.empty() || lost == 0) continue;
    untold += std::exchange(lost, 0);
    lock.unlock();
    (void)tell();
    lock.lock();
  }
  ended = true;
  changed.notify_all();
}

// Writes the note about lost lines if one is due; false if it cannot be written.
bool LineWriter::State::tell() {
  if (fd < 0) fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  if (untold > 0 && !put(note(untold))) return false;
  untold = 0;
  return true;
}

bool LineWriter::State::put(std::string_view line) {
  std::string bytes = torn ? "\n" : "";
  bytes += line;
  bytes += '\n';
  for (std::string_view left = bytes; !left.empty();) {
    const ssize_t written = ::write(fd, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      torn = torn || left.size() < bytes.size();
      return false;
    }
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  torn = false;
  return true;
}

}  // namespace tg
