// What a member does with frames that are not its view's: it refuses them, and the run goes on.
#include "daemon/step/member.h"

#include <gtest/gtest.h>

#include "tests/simulation/training/tiny_training.h"

namespace tg::daemon {
namespace {

struct Nobody : Member::Delegate {
  void send(const std::vector<Seat>&, const schema::SharedFrame&) override {}
  void train(std::uint64_t, const Layout&, kernels::ConstFloats, bool) override {}
  void segment_ready(std::size_t) override {}
  void evaluate(std::uint64_t) override {}
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

}  // namespace
}  // namespace tg::daemon
