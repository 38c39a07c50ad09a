// The queue of the node's thread: its order, and the limits in bytes of its frames.
#include "daemon/node/event_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace tg::daemon {
namespace {

using PostResult = EventQueue::PostResult;
using schema::kMaxQueuedBytes;
using schema::kMaxQueuedBytesPerPeer;
using schema::kQueuedEventBytes;

constexpr Seat kFirst{0}, kSecond{1}, kThird{2};
constexpr std::size_t kLarge = schema::kMaxFrameBytes;
constexpr std::chrono::milliseconds kAtOnce{0};

FrameArrived frame(Seat from, std::size_t bytes, std::uint32_t step = 0) {
  return {from, {{1, 1, step}, schema::Credit{}, bytes}, nullptr, {}};
}

// How many frames of that size are accepted until one is not.
std::size_t fill(EventQueue& queue, Seat from, std::size_t bytes) {
  for (std::size_t count = 0;; ++count)
    if (queue.post_frame(frame(from, bytes)) != PostResult::kQueued) return count;
}

TEST(EventQueue, KeepsTheOrder) {
  EventQueue queue(2);
  EXPECT_FALSE(queue.pop(kAtOnce));
  for (std::uint32_t step = 0; step < 3; ++step) {
    EXPECT_EQ(queue.post_frame(frame(kSecond, 100, step)), PostResult::kQueued);
    queue.post(ConnectionChanged{kSecond, step == 1});
  }
  for (std::uint32_t step = 0; step < 3; ++step) {
    EXPECT_EQ(std::get<FrameArrived>(*queue.pop(kAtOnce)).frame.header.step, step);
    EXPECT_EQ(std::get<ConnectionChanged>(*queue.pop(kAtOnce)).up, step == 1);
  }
}

// Queued bytes are counted once: a step frame's values are copies, as large as their message.
TEST(EventQueue, OnlyAChunkKeepsItsMessage) {
  EventQueue queue(2);
  const auto keeps = [&](const schema::FrameBody& body) {
    const auto message = std::make_shared<int>();
    queue.post_frame({kSecond, {{1, 1, 0}, body, 100}, message, {}});
    return message.use_count() == 2;
  };
  EXPECT_TRUE(keeps(schema::Chunk{}));
  EXPECT_FALSE(keeps(schema::StepFrame{}));
  EXPECT_FALSE(keeps(schema::Report{}));
}

TEST(EventQueue, AFloodIsDroppedAndDoesNotBlockOthers) {
  for (const std::size_t bytes : {std::size_t{60}, std::size_t{4096}, kLarge}) {
    EventQueue queue(3);
    const std::size_t taken = kMaxQueuedBytesPerPeer / (bytes + kQueuedEventBytes);
    for (std::size_t i = 0; i < taken; ++i)
      ASSERT_EQ(queue.post_frame(frame(kSecond, bytes)), PostResult::kQueued) << i;
    EXPECT_EQ(queue.post_frame(frame(kSecond, bytes)), PostResult::kFloodBegins) << "it is named once";
    EXPECT_EQ(queue.post_frame(frame(kSecond, bytes)), PostResult::kDropped);
    EXPECT_EQ(queue.post_frame(frame(kSecond, 0)), PostResult::kDropped)
        << "a frame between two that are missing is worth nothing";
    // Nothing blocks, and a peer within its share is accepted.
    for (std::uint32_t step = 0; step < 3; ++step)
      EXPECT_EQ(queue.post_frame(frame(kThird, kLarge, step)), PostResult::kQueued);
    queue.post(ShutDown{});
    std::size_t of_b = 0, of_c = 0;
    while (const std::optional<Event> event = queue.pop(kAtOnce)) {
      const auto* one = std::get_if<FrameArrived>(&*event);
      of_b += one != nullptr && one->from == kSecond;
      of_c += one != nullptr && one->from == kThird;
    }
    EXPECT_EQ(of_b, taken);
    EXPECT_EQ(of_c, 3u);
    // The queue is drained: what the peer sends from now on is accepted again.
    EXPECT_EQ(queue.post_frame(frame(kSecond, bytes)), PostResult::kQueued);
  }
}

TEST(EventQueue, ASecondFloodIsNamedAgain) {
  EventQueue queue(2);
  for (int i = 0; i < 2; ++i) {
    for (std::size_t count = 0; count < kMaxQueuedBytesPerPeer / (kLarge + kQueuedEventBytes); ++count)
      ASSERT_EQ(queue.post_frame(frame(kSecond, kLarge)), PostResult::kQueued);
    EXPECT_EQ(queue.post_frame(frame(kSecond, kLarge)), PostResult::kFloodBegins);
    while (queue.pop(kAtOnce)) {
    }
  }
}

TEST(EventQueue, AllPeersBlockBeyondTheirSum) {
  EventQueue queue(4);
  const std::size_t share = fill(queue, kFirst, kLarge);
  EXPECT_EQ(fill(queue, kSecond, kLarge), share);
  const std::size_t left = kMaxQueuedBytes / (kLarge + kQueuedEventBytes) - 2 * share;
  std::atomic<std::size_t> taken{0};
  std::thread poster([&] {
    for (std::size_t i = 0; i < left + 2; ++i) {
      EXPECT_EQ(queue.post_frame(frame(kThird, kLarge)), PostResult::kQueued);
      ++taken;
    }
  });
  while (taken < left) std::this_thread::yield();
  EXPECT_TRUE(queue.pop(kAtOnce));
  while (taken < left + 1) std::this_thread::yield();
  EXPECT_EQ(taken, left + 1) << "no room for another one";
  EXPECT_TRUE(queue.pop(kAtOnce));
  poster.join();
}

TEST(EventQueue, AWaiterForRoomContinuesWhenItCloses) {
  EventQueue queue(4);
  fill(queue, kFirst, kLarge);
  fill(queue, kSecond, kLarge);
  std::thread poster([&] {
    while (queue.post_frame(frame(kThird, kLarge)) == PostResult::kQueued) {
    }
  });
  queue.close();
  poster.join();
}

TEST(EventQueue, AProbeIsQueuedWithoutItsFiller) {
  EventQueue queue(2);
  const auto message = std::make_shared<const std::vector<std::byte>>(kLarge);
  const std::weak_ptr<const void> kept = message;
  FrameArrived probe{kSecond, {{}, schema::Probe{3, true, *message}, kLarge}, message, {}};
  for (std::size_t i = 0; i < 2 * kMaxQueuedBytesPerPeer / kLarge; ++i)
    ASSERT_EQ(queue.post_frame(probe), PostResult::kQueued) << "a link's measurement is no flood";
  EXPECT_EQ(kept.use_count(), 2) << "this test's own";
  const std::optional<Event> event = queue.pop(kAtOnce);
  const auto& arrived = std::get<schema::Probe>(std::get<FrameArrived>(*event).frame.body);
  EXPECT_EQ(arrived.burst, 3u);
  EXPECT_TRUE(arrived.last);
  EXPECT_TRUE(arrived.filler.empty());
}

}  // namespace
}  // namespace tg::daemon
