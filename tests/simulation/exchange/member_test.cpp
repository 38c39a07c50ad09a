// A member refuses frames that are not its view's, and the run continues.
#include "daemon/step/member.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "kernels/host_memory_space.h"
#include "kernels/memory_array.h"
#include "tests/simulation/training/tiny_training.h"

namespace tg::daemon {
namespace {

struct Nobody : Member::Delegate {
  void send(const std::vector<Seat>&, const schema::SharedFrame&) override {}
  void train(Step, const Layout&, kernels::ConstFloats, bool) override {}
  void segment_ready(std::size_t) override {}
  void evaluate(Step) override {}
};

TEST(Member, FramesOfAnotherViewChangeNothing) {
  Nobody world;
  // The first and the last of three nodes are members, so ranks differ from seats.
  const View view(4, {Seat(0), Seat(2)});
  Member member({77, view, Seat(2), {"node-a", "node-b", "node-c"}, {}, false, 64}, simulation::tiny_model(), world);
  EXPECT_EQ(member.members().self, Rank(1));
  EXPECT_EQ(member.members().own_name(), "node-c");
  const schema::Chunk chunk{};  // before the first step: of this view it would end the run
  EXPECT_FALSE(member.on_frame(Seat(0), {77, 3, 0}, chunk, nullptr));
  EXPECT_FALSE(member.on_frame(Seat(0), {77, 5, 9}, chunk, nullptr));
  EXPECT_FALSE(member.on_frame(Seat(1), {77, 4, 0}, chunk, nullptr)) << "no member";
  EXPECT_FALSE(member.failed());
  EXPECT_TRUE(member.on_frame(Seat(0), {77, 4, 0}, chunk, nullptr));
  ASSERT_TRUE(member.failed());
  EXPECT_EQ(member.failed()->node, "node-a");
}

// An order or a task was abandoned with its view while its result was on the way.
TEST(Member, LateResultsOfAnotherViewChangeNothing) {
  struct World : Nobody {
    void computed(const GradientReady&) override { ++gradients; }
    int gradients = 0;
  } world;
  const kernels::Kernels& kernels = *kernels::available().front();
  kernels::HostMemorySpace space(kernels);
  const engine::Model& model = simulation::tiny_model();
  Replica replica(space, model, 1, 7);
  const kernels::MemoryArray gradient(space, model.segments.padded_count());
  schema::FramePool pool;
  Member member(
      {.run_key = 77, .view = View(5, {Seat(0)}), .self = Seat(0), .names = {"node-a"}, .job = {}, .global_batch = 64},
      model, world);
  member.begin({}, {space, kernels, replica, gradient.floats(), pool});
  EXPECT_EQ(member.origin().view, 5u);
  const Origin before{4, Step(0)};
  GradientReady ready{before, 0, 1.5};
  ready.statistics = simulation::draw_statistics(1, 0, 0);
  ready.backward_seconds = 1;
  member.on_event(ready);
  member.on_event(TaskDone{before, Apply{}, {}});
  member.on_event(TotalMade{before, {}});
  member.on_event(Evaluated{before, {}});
  member.on_event(EngineFailed{before, "gone"});
  EXPECT_EQ(world.gradients, 0);
  EXPECT_FALSE(member.failed());
  EXPECT_FALSE(member.next_task(ThreadRole::kOnlyThread)) << "nothing is to be measured";
  ready.of = member.origin();
  member.on_event(ready);
  EXPECT_EQ(world.gradients, 1);
  EXPECT_TRUE(member.next_task(ThreadRole::kOnlyThread));
}

// A member alone, in a view that begins where two steps are committed.
struct Lone : Nobody {
  Lone() {
    job.bucket_parameters = 1'000;
    job.digest_every = 1;
    for (std::uint64_t step = 0; step < 2; ++step) {
      replica.commit(simulation::draw_statistics(1, 0, step));
      replica.confirm(0.5F);
    }
    member = std::make_unique<Member>(Member::Options{.run_key = 77,
                                                      .view = View(5, {Seat(0)}),
                                                      .self = Seat(0),
                                                      .names = {"node-a"},
                                                      .job = job,
                                                      .global_batch = 64,
                                                      .first_round = Round(2)},
                                      model, *this);
  }
  void begin() { member->begin({}, {space, kernels, replica, gradient.floats(), pool}); }
  void train(Step step, const Layout& layout, kernels::ConstFloats, bool early) override {
    if (early) return;
    asked = step;
    buckets = layout.buckets.size();
  }
  bool may_start_early(Step) override { return false; }
  void confirmed(Step step, bool) override { told.push_back(step); }
  void digests_compared(Step step, const std::vector<std::uint64_t>& digests) override {
    EXPECT_EQ(digests, replica.segment_digests());
    EXPECT_EQ(replica.confirmed_rounds(), Round(step.value())) << "else its average has not moved";
    shown.push_back(step);
  }
  // The gradient of the step in progress is there, and all that follows from it is done, but for what can wait.
  void take_step() {
    for (std::size_t b = 0; b < buckets; ++b) member->on_event(ready(b));
    while (std::optional<Task> task = member->next_task(ThreadRole::kOnlyThread)) member->execute(*std::move(task));
  }
  GradientReady ready(std::size_t bucket) const {
    GradientReady event{member->origin(), bucket, 1.5};
    if (bucket == 0) event.statistics = simulation::draw_statistics(1, 0, member->step().value());
    return event;
  }

  const engine::Model& model = simulation::tiny_model();
  const kernels::Kernels& kernels = *kernels::available().front();
  kernels::HostMemorySpace space{kernels};
  Replica replica{space, model, 1, 7};
  const kernels::MemoryArray gradient{space, model.segments.padded_count()};
  schema::FramePool pool;
  schema::JobSpec job;
  std::unique_ptr<Member> member;
  std::optional<Step> asked;
  std::size_t buckets = 0;
  std::vector<Step> told;   // confirmed
  std::vector<Step> shown;  // with its digest
};

TEST(Member, AStateIsShownWithTheDigestThatItIsSavedWith) {
  Lone lone;
  lone.begin();
  for (int step = 0; step < 3; ++step) lone.take_step();
  EXPECT_EQ(lone.shown, (std::vector{Step(2), Step(3), Step(4)}));
}

TEST(Member, AFrozenOneKeepsItsState) {
  Lone lone;
  lone.begin();
  for (std::size_t b = 0; b < lone.buckets; ++b) lone.member->on_event(lone.ready(b));
  const Origin origin = lone.member->origin();
  std::optional<Task> measure = lone.member->next_task(ThreadRole::kOnlyThread);
  ASSERT_TRUE(measure);
  lone.member->seal();
  EXPECT_FALSE(lone.member->next_task(ThreadRole::kOnlyThread));
  EXPECT_FALSE(lone.member->use_idle_time());
  EXPECT_TRUE(lone.member->waiting().ranks.empty());
  lone.member->execute(*std::move(measure));  // it was in flight
  lone.member->on_event(Evaluated{origin, {}});
  lone.member->on_event(TotalMade{origin, {}});
  lone.member->fail({ErrorKind::kRunFailed, "node-b", "send", "takes no frames"});
  EXPECT_TRUE(lone.member->on_frame(Seat(0), {77, 5, 9}, schema::Chunk{}, nullptr)) << "it is of this view";
  EXPECT_FALSE(lone.member->failed());
  EXPECT_EQ(lone.replica.committed_rounds(), Round(2));
  EXPECT_EQ(lone.member->unfit(), "");
  lone.member->on_event(EngineFailed{origin, "gone"});
  EXPECT_FALSE(lone.member->failed());
  EXPECT_TRUE(lone.member->unfit().ends_with(": the engine failed: gone")) << "the next view has to know";
}

TEST(Member, AStepAheadGoesBack) {
  Lone lone;
  lone.begin();
  const std::vector<std::uint64_t> before = lone.replica.segment_digests();
  lone.take_step();
  EXPECT_EQ(lone.replica.committed_rounds(), Round(3));
  EXPECT_EQ(lone.replica.confirmed_rounds(), Round(2));
  lone.member->seal();
  lone.member->install(Round(2));
  EXPECT_EQ(lone.replica.segment_digests(), before);
  EXPECT_EQ(lone.replica.committed_rounds(), Round(2));
  EXPECT_TRUE(lone.told.empty());
}

// The average moves once, also where a part of it has moved before.
TEST(Member, WhereTheNextViewBeginsTheStateIsConfirmed) {
  std::vector<std::vector<std::uint64_t>> digests;
  for (const bool in_parts : {false, true}) {
    Lone lone;
    lone.begin();
    lone.take_step();
    lone.member->seal();
    if (in_parts) {
      EXPECT_FALSE(lone.replica.confirm(engine::average_rate(lone.job.ema, 3), kernels::kBlock));
    }
    lone.member->install(Round(3));
    EXPECT_EQ(lone.replica.confirmed_rounds(), Round(3));
    EXPECT_EQ(lone.told, std::vector<Step>{Step(3)});
    lone.member->install(Round(3));  // nothing is left to do
    EXPECT_EQ(lone.told.size(), 1u);
    digests.push_back(lone.replica.segment_digests());
  }
  EXPECT_EQ(digests[0], digests[1]);
}

TEST(Member, WithoutItsFirstStepItIsWhereItWasToBegin) {
  Lone lone;
  lone.member->seal();
  lone.member->install(Round(2));
  EXPECT_EQ(lone.replica.committed_rounds(), Round(2));
}

TEST(MemberDeathTest, AStartThatItCannotReachIsABug) {
  Lone lone;
  lone.begin();
  lone.take_step();
  EXPECT_DEATH(lone.member->install(Round(3)), "sealed_");
  lone.member->seal();
  EXPECT_DEATH(lone.member->install(Round(1)), "committed_rounds");
  EXPECT_DEATH(lone.member->install(Round(4)), "committed_rounds");
}

TEST(Member, TrainsAlone) {
  Lone lone;
  lone.begin();
  for (std::uint64_t step = 2; step < 6; ++step) {
    EXPECT_EQ(lone.asked, Step(step));
    lone.take_step();
    EXPECT_EQ(lone.replica.committed_rounds(), Round(step + 1));
  }
  EXPECT_EQ(lone.told, (std::vector<Step>{Step(3), Step(4), Step(5)}));
}

}  // namespace
}  // namespace tg::daemon
