#include "daemon/step/threads/crew.h"

#include <exception>
#include <utility>

#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

Timeline::Detail detail_of(const Piece& piece, std::uint64_t sent_bytes) {
  return {static_cast<std::int64_t>(bucket_of(piece)), sent_bytes};
}

}  // namespace

Crew::Crew(std::vector<std::unique_ptr<Worker>> workers, std::shared_ptr<Timeline> timeline, Post post)
    : workers_(std::move(workers)), timeline_(std::move(timeline)), post_(std::move(post)) {
  for (std::size_t i = 0; i < workers_.size(); ++i) threads_.emplace_back([this, i] { help(i); });
}

void Crew::end() {
  const std::lock_guard lock(mutex_);
  ends_ = true;
  waiting_.clear();
  changed_.notify_all();
}

Crew::~Crew() {
  end();
  for (std::thread& thread : threads_) thread.join();
}

bool Crew::work(Member& member) {
  if (workers_.empty()) return work_here(member);
  bool handed_out = false;
  while (const std::optional<Taker> taker = free_helper()) {
    std::optional<Piece> piece = member.next_piece(*taker);
    if (!piece) break;
    give(*std::move(piece), member.origin());
    handed_out = true;
  }
  return handed_out || member.use_idle_time();
}

bool Crew::work_here(Member& member) {
  std::optional<Piece> piece = member.next_piece(Taker::kOnlyThread);
  if (!piece) return member.use_idle_time();
  const std::uint64_t step = member.step().value();
  const char* const name = piece_name(*piece);
  Timeline::Detail detail = detail_of(*piece, 0);
  const Timeline::Clock::time_point begin = Timeline::Clock::now();
  detail.bytes = member.execute(*std::move(piece));
  if (timeline_->on()) timeline_->add(Timeline::Track::kNode, name, step, begin, Timeline::Clock::now(), detail);
  return true;
}

std::optional<Taker> Crew::free_helper() const {
  const std::lock_guard lock(mutex_);
  if (ends_ || pieces() >= most_pieces()) return std::nullopt;
  return pieces() < workers_.size() ? Taker::kIdleThread : Taker::kBusyThread;
}

void Crew::give(Piece piece, const Origin& of) {
  {
    const std::lock_guard lock(mutex_);
    TG_CHECK(!ends_ && pieces() < most_pieces(), waiting_.size(), under_way_);
    waiting_.push_back({std::move(piece), of});
  }
  changed_.notify_one();
}

void Crew::help(std::size_t index) {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    Given given = std::move(waiting_.front());
    waiting_.pop_front();
    ++under_way_;
    lock.unlock();
    const Timeline::Clock::time_point begin = Timeline::Clock::now();
    StepEvent outcome = EngineFailed{};
    try {
      PieceResult result = workers_[index]->execute(given.piece, [this, of = given.of](MadeFrame total) {
        post_(TotalMade{of, std::move(total)});
      });
      if (timeline_->on())
        timeline_->add(Timeline::helper(index), piece_name(given.piece), given.of.step.value(), begin,
                       Timeline::Clock::now(), detail_of(given.piece, result.sent_bytes));
      outcome = PieceDone{given.of, std::move(given.piece), std::move(result)};
    } catch (const std::exception& error) {
      outcome = EngineFailed{given.of, error.what()};
    }
    lock.lock();
    --under_way_;  // before it is told: whoever hears of it may give the next one
    lock.unlock();
    post_(std::move(outcome));
    lock.lock();
  }
}

}  // namespace tg::daemon
