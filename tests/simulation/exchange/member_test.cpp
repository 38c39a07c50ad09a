// What a member does with frames that are not its view's: it refuses them, and the run goes on.
#include "daemon/step/member.h"

#include <gtest/gtest.h>

#include "kernels/home_array.h"
#include "kernels/host_home.h"
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
  Member member({77, view, Seat(2), {"node-a", "node-b", "node-c"}, {1, 1}, {}, false, 64}, simulation::tiny_model(),
                world);
  EXPECT_EQ(member.members().self, Rank(1));
  EXPECT_EQ(member.members().own_name(), "node-c");
  const schema::Chunk chunk{};  // before the first step: of this view it would end the run
  EXPECT_FALSE(member.frame(Seat(0), {77, 3, 0}, chunk, nullptr));
  EXPECT_FALSE(member.frame(Seat(0), {77, 5, 9}, chunk, nullptr));
  EXPECT_FALSE(member.frame(Seat(1), {77, 4, 0}, chunk, nullptr)) << "no member";
  EXPECT_FALSE(member.failed());
  EXPECT_TRUE(member.frame(Seat(0), {77, 4, 0}, chunk, nullptr));
  ASSERT_TRUE(member.failed());
  EXPECT_EQ(member.failed()->node, "node-a");
}

// An order or a piece was abandoned with its view while its result was on the way.
TEST(Member, LateResultsOfAnotherViewChangeNothing) {
  struct World : Nobody {
    void computed(const GradientReady&) override { ++gradients; }
    int gradients = 0;
  } world;
  const kernels::Kernels& kernels = *kernels::available().front();
  kernels::HostHome home(kernels);
  const engine::Model& model = simulation::tiny_model();
  Replica replica(home, model, 1, 7);
  const kernels::HomeArray gradient(home, model.segments.padded_count());
  schema::FramePool pool;
  Member member({.run_key = 77,
                 .view = View(5, {Seat(0)}),
                 .self = Seat(0),
                 .names = {"node-a"},
                 .weights = {1},
                 .job = {},
                 .global_batch = 64},
                model, world);
  member.begin({}, {home, kernels, replica, gradient.floats(), pool});
  EXPECT_EQ(member.origin().view, 5u);
  const Origin before{4, Step(0)};
  GradientReady ready{before, 0, 1.5};
  ready.statistics = simulation::draw_statistics(1, 0, 0);
  ready.backward_seconds = 1;
  member.on(ready);
  member.on(PieceDone{before, Apply{}, {}});
  member.on(TotalMade{before, {}});
  member.on(Evaluated{before, {}});
  member.on(EngineFailed{before, "gone"});
  EXPECT_EQ(world.gradients, 0);
  EXPECT_FALSE(member.failed());
  EXPECT_FALSE(member.next_piece(Taker::kOnlyThread)) << "nothing is to be measured";
  ready.of = member.origin();
  member.on(ready);
  EXPECT_EQ(world.gradients, 1);
  EXPECT_TRUE(member.next_piece(Taker::kOnlyThread));
}

}  // namespace
}  // namespace tg::daemon
