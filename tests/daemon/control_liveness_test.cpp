// Heartbeats and verdicts over real sockets: a silent member is named in time, and a working one never is.
#include <atomic>
#include <thread>

#include "control_fixture.h"
#include "run_samples.h"
#include "tests/elapsed.h"

namespace tg::tests {
namespace {

constexpr std::uint64_t kPeerTimeoutMs = 600;
constexpr std::uint64_t kStepTimeoutMs = 60'000;
constexpr std::uint64_t kVerdictMs = kPeerTimeoutMs + 1000;  // as the README promises
constexpr std::uint64_t kNothingMs = 3 * kPeerTimeoutMs;     // long enough for a wrong verdict

class ControlLiveness : public ControlMesh {
 protected:
  void watch_everywhere(std::uint64_t step_timeout_ms = kStepTimeoutMs) {
    for (const Seat seat : peers_.places()) node(seat).server().watch("run-1", step_timeout_ms);
  }
  // Polls for a verdict until the time is over.
  bool accused_within(Seat seat, std::uint64_t span_ms) {
    const std::uint64_t end_ms = now_ms() + span_ms;
    return eventually([&] { return node(seat).verdict_count() > 0 || now_ms() >= end_ms; }) &&
           node(seat).verdict_count() > 0;
  }
};

TEST_F(ControlLiveness, HeartbeatsAreASignOfLife) {
  start_mesh(kPeerTimeoutMs);
  wait_until_connected();
  watch_everywhere();
  EXPECT_FALSE(accused_within(kA, kNothingMs));
  EXPECT_EQ(states(kA), "up up up");
}

TEST_F(ControlLiveness, ASilentPeerIsNamedInTime) {
  start_mesh(kPeerTimeoutMs);
  for (const Seat seat : peers_.places()) {
    node(seat).progress().phase = schema::Phase::kBackward;
    node(seat).progress().step = 12;
  }
  wait_until_connected();
  watch_everywhere();
  ASSERT_FALSE(accused_within(kA, kPeerTimeoutMs));
  const Elapsed elapsed;
  node(kC).stop();
  const auto at_a = node(kA).next_verdict(), at_b = node(kB).next_verdict();
  const std::uint64_t took_ms = elapsed.ms();
  ASSERT_TRUE(at_a && at_b);
  EXPECT_EQ(at_a->seat, kC) << at_a->message;
  EXPECT_EQ(at_b->seat, kC) << at_b->message;
  EXPECT_NE(at_a->message.find("no sign of life from node-c"), std::string::npos) << at_a->message;
  EXPECT_NE(at_a->message.find("backward of step 12"), std::string::npos) << at_a->message;
  EXPECT_LE(took_ms, kVerdictMs);
  EXPECT_EQ(node(kA).verdict_count(), 0u) << "one verdict, about one node";
}

TEST_F(ControlLiveness, AStuckMemberIsNamedDespiteItsHeartbeats) {
  start_mesh(kPeerTimeoutMs);
  wait_until_connected();
  for (const Seat seat : peers_.places()) node(seat).progress().phase = schema::Phase::kForward;
  watch_everywhere(kPeerTimeoutMs);
  std::atomic<bool> done{false};
  std::thread working([&] {  // a and c get on, b does not
    while (!done) {
      for (const Seat seat : {kA, kC}) ++node(seat).progress().count;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  const auto verdict = node(kA).next_verdict();
  done = true;
  working.join();
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->seat, kB);
  EXPECT_NE(verdict->message.find("node-b is stuck in forward"), std::string::npos) << verdict->message;
}

TEST_F(ControlLiveness, OurOwnComputeIsAMemberToo) {
  start_mesh(kPeerTimeoutMs, {true});
  node(kA).progress().phase = schema::Phase::kEvaluate;
  node(kA).server().watch("run-1", kStepTimeoutMs);
  node(kA).server().set_step_timeout(100);
  const auto verdict = node(kA).next_verdict();
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->seat, kA);
  EXPECT_NE(verdict->message.find("evaluate"), std::string::npos) << verdict->message;
}

TEST_F(ControlLiveness, MeshDataIsASignOfLife) {
  start_mesh(kPeerTimeoutMs, {true, false, false});
  node(kA).server().watch("run-1", kStepTimeoutMs);
  std::atomic<bool> done{false};
  std::thread mesh([&] {
    while (!done) {
      node(kA).server().on_mesh_traffic(kB);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  std::string about_b, about_c;
  for (int verdicts = 0; verdicts < 2; ++verdicts) {
    const auto verdict = node(kA).next_verdict();
    if (verdict) (verdict->seat == kB ? about_b : about_c) = verdict->message;
  }
  done = true;
  mesh.join();
  EXPECT_NE(about_c.find("no sign of life from node-c"), std::string::npos) << about_c;
  EXPECT_NE(about_b.find("node-b is up, but sent no heartbeat"), std::string::npos) << about_b;
}

TEST_F(ControlLiveness, WithoutARunThereIsNoVerdict) {
  start_mesh(kPeerTimeoutMs, {true, true, false});
  node(kA).server().watch("run-1", kStepTimeoutMs);
  ASSERT_TRUE(node(kA).next_verdict().has_value());  // c, or b, which is not in the run
  ASSERT_TRUE(node(kA).next_verdict().has_value());
  node(kA).server().watch("run-2", kStepTimeoutMs);
  node(kA).server().unwatch();
  EXPECT_FALSE(accused_within(kA, kNothingMs));
}

// For example, it was suspended while the others ended the run.
TEST_F(ControlLiveness, ANodeStillInAPastRunIsNotUp) {
  start_mesh();
  wait_until_connected();
  for (const Seat seat : {kA, kC})
    ASSERT_TRUE(node(seat).store().write(sample_record("run-1", config_of(seat).node, schema::RunState::kFailed)).ok());
  watch_everywhere();
  for (const Seat seat : peers_.places())
    ASSERT_TRUE(eventually([&] { return states(seat) == "up up up"; })) << "all are in it";
  for (const Seat seat : {kA, kC}) node(seat).server().unwatch();
  EXPECT_TRUE(eventually([&] { return states(kA) == "up no link up"; })) << states(kA);
  EXPECT_EQ(status(kA).nodes[1].problem, "it is still in run run-1, which is over");
  EXPECT_TRUE(eventually([&] { return states(kB) == "up no link up"; })) << states(kB);
  const std::string told = status(kB).nodes[1].problem;  // the first of the two that reports it
  EXPECT_TRUE(told == "it is still in run run-1, which node-a has left" ||
              told == "it is still in run run-1, which node-c has left")
      << told;
  node(kB).server().unwatch();
  for (const Seat seat : peers_.places())
    EXPECT_TRUE(eventually([&] { return states(seat) == "up up up"; })) << states(seat);
}

TEST_F(ControlLiveness, AReturningNodeIsSeenSoon) {
  start_mesh(kPeerTimeoutMs);
  wait_until_connected();
  node(kB).stop();
  ASSERT_TRUE(eventually([&] { return states(kA) == "up unreachable up"; }));
  const Elapsed elapsed;
  ASSERT_TRUE(node(kB).start().ok());
  ASSERT_TRUE(eventually([&] { return states(kA) == "up up up"; }));
  EXPECT_LT(elapsed.ms(), 3000u) << "back-off of reconnection is 1 s at most, and a beat";
}

}  // namespace
}  // namespace tg::tests
