// Members in one process (daemon/simulate) come to the bits of the plain reference, in one view and in several with
// other members, and report each step once.
#include "daemon/simulate/simulated_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <tuple>
#include <vector>

#include "daemon/step/job_layout.h"
#include "tests/simulation/simulator/awkward_memory.h"
#include "tests/simulation/training/tiny_training.h"

namespace tg::simulation {
namespace {

using daemon::GradientReady;
using daemon::Layout;
using daemon::Member;
using daemon::Origin;
using daemon::Replica;
using daemon::SimulatedNode;
using daemon::SimulatedView;
using schema::GradientFormat;

constexpr std::uint64_t kViewBatch = 37;  // no number of members divides it
constexpr std::uint64_t kViewSteps = 12;

struct ViewMode {
  const char* name;
  void (*set)(schema::JobSpec& job);
  friend void PrintTo(const ViewMode& mode, std::ostream* out) { *out << mode.name; }
};
constexpr ViewMode kViewModes[] = {
    {"ternary_direct", [](schema::JobSpec& job) { job.exchange = schema::ExchangeKind::kDirect; }},
    {"ternary_sharded", [](schema::JobSpec&) {}},
    {"float32_adam",
     [](schema::JobSpec& job) {
       job.gradients = GradientFormat::kFloat32;
       job.optimizer = OptimizerKind::kAdam;
     }},
    {"own_scalers", [](schema::JobSpec& job) { job.scaler_sharing = schema::ScalerSharing::kNone; }},
    {"float_steps_without_average",
     [](schema::JobSpec& job) {
       job.float_steps = 5;
       job.ema = 0;
     }},
};

// Gradients that are drawn, as in every simulated training.
struct DrawnLearning : daemon::SimulatedLearning {
  DrawnLearning(kernels::MemorySpace& space, std::uint64_t seed) : tensors(space.make_kernels()), seed_of_run(seed) {}

  void train(Rank member, const Origin& of, const Layout& layout, kernels::ConstFloats, kernels::Floats gradient,
             const Ready& ready) override {
    const std::size_t seat = view.seat(member).index();
    const std::uint64_t step = of.step.value();
    if (step == fails_at) throw std::runtime_error("the drawing pen is dry");
    draw_gradient(seed_of_run, seat, step, drawn.span());
    if (step == not_finite_at) drawn[0] = std::numeric_limits<float>::quiet_NaN();
    tensors->copy_in(std::as_bytes(drawn.span()), gradient);
    for (std::size_t bucket = 0; bucket < layout.buckets.size(); ++bucket) {
      GradientReady event{of, bucket, draw_loss(seed_of_run, seat, step)};
      if (bucket == 0) event.statistics = draw_statistics(seed_of_run, seat, step);
      ready(std::move(event));
    }
  }
  engine::EvaluationCounts evaluate(Rank, const Replica& replica) override {
    EXPECT_EQ(replica.committed_rounds(), replica.confirmed_rounds());
    return {1, 2, 0.5, 1};
  }

  const std::unique_ptr<kernels::TensorKernels> tensors;
  const std::uint64_t seed_of_run;
  AlignedArray<float> drawn{tiny_segments().padded_count()};
  daemon::View view;
  std::uint64_t fails_at = UINT64_MAX, not_finite_at = UINT64_MAX;
};

struct Part {  // a view of a run
  std::vector<std::size_t> seats;
  std::uint64_t last = kViewSteps;
};

class Room {
 public:
  explicit Room(const ViewMode& mode, std::uint64_t seed = 7) {
    job.seed = seed;
    job.steps = kViewSteps;
    job.exchange = schema::ExchangeKind::kSharded;
    job.bucket_parameters = 1'000;
    job.chunk_parameters = 1'024;
    job.digest_every = 2;
    job.evaluate_every = 5;
    mode.set(job);
    learning = std::make_unique<DrawnLearning>(*space, seed);
  }

  // The members of each view begin with a copy of what the last one held.
  Status run(const std::vector<Part>& parts) {
    std::uint64_t first = 0;
    for (std::uint32_t number = 1; const Part& part : parts) {
      const Status done = run_view(number++, part, first);
      if (!done) return done;
      first = part.last;
    }
    return {};
  }

  void expect_reference(const std::vector<Part>& parts) {
    std::vector<ReferenceView> by_step;
    for (const Part& part : parts) {
      ReferenceView reference{part.seats, {}};
      for (const std::size_t seat : part.seats) reference.weights.push_back(kWeights[seat]);
      by_step.resize(part.last, reference);
    }
    const ReferenceState reference = train_reference(job, by_step, kViewBatch);
    for (const std::size_t seat : parts.back().seats)
      EXPECT_EQ(difference(reference, *nodes[seat].replica), "") << seat;
  }

  schema::JobSpec job;
  bool one_replica = false;  // that of each view's first member serves all
  const std::unique_ptr<kernels::MemorySpace> space = space_under_test(*kernels::available().front());
  std::unique_ptr<DrawnLearning> learning;
  schema::FramePool pool;
  std::vector<SimulatedNode> nodes = std::vector<SimulatedNode>(4);
  std::vector<std::uint64_t> committed, evaluated;

 private:
  static constexpr std::uint16_t kWeights[] = {1, 3, 1, 2};

  Status run_view(std::uint32_t number, const Part& part, std::uint64_t first) {
    std::vector<Seat> seats;
    Per<Rank, std::uint16_t> weights;
    Per<Rank, SimulatedNode*> members;
    for (const std::size_t seat : part.seats) {
      seats.emplace_back(seat);
      weights.push_back(kWeights[seat]);
      members.push_back(&nodes[seat]);
      SimulatedNode& node = nodes[seat];
      if (one_replica && seat != part.seats.front()) {
        node = daemon::follower_of(nodes[part.seats.front()], *space, tiny_model());
        continue;
      }
      const auto replica = std::make_shared<Replica>(*space, tiny_model(), engine::slot_count(job.optimizer), job.seed,
                                                     daemon::keeps_average(job));
      if (newest) {
        EXPECT_TRUE(replica->restore(daemon::copy_of(*newest, tiny_segments().padded_count()), Round(first)).ok());
      }
      node = {replica, kernels::MemoryArray(*space, tiny_segments().padded_count())};
    }
    learning->view = daemon::View(number, seats, weights);
    SimulatedView view(
        {.view = learning->view,
         .names = {"node-0", "node-1", "node-2", "node-3"},
         .job = job,
         .choice = {*job.exchange, schema::Coding::kEntropy, schema::kMinWindowBytes, schema::kSmallChunkParameters},
         .global_batch = kViewBatch,
         .has_test_data = true,
         .first = Step(first),
         .last = Step(part.last),
         .evaluates_first = first > 0 && first % job.evaluate_every == 0},
        {tiny_model(), *space, *kernels::available().front(), pool, *learning}, members,
        {.committed = [this](const Member::Committed& one) { committed.push_back(one.step); },
         .evaluated = [this](const Member::Evaluation& one) { evaluated.push_back(one.step); }});
    const Status done = view.run();
    newest = nodes[part.seats.front()].replica;
    for (const SimulatedNode* member : members)
      if (done) {
        EXPECT_EQ(member->replica->confirmed_rounds(), Round(part.last));
      }
    return done;
  }

  std::shared_ptr<Replica> newest;
};

class SimulatedViews : public testing::TestWithParam<std::tuple<ViewMode, bool>> {
 protected:
  struct RoomOfTest : Room {
    RoomOfTest() : Room(std::get<0>(GetParam())) { one_replica = std::get<1>(GetParam()); }
  };
};

TEST_P(SimulatedViews, EqualTheReference) {
  for (const std::vector<std::size_t>& seats : {std::vector<std::size_t>{2}, {0, 1, 2}, {0, 1, 2, 3}}) {
    RoomOfTest room;
    const std::vector<Part> parts = {{seats, kViewSteps}};
    const Status done = room.run(parts);
    ASSERT_TRUE(done.ok()) << done.error().message;
    room.expect_reference(parts);
    EXPECT_EQ(room.committed, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
    EXPECT_EQ(room.evaluated, (std::vector<std::uint64_t>{5, 10, 12}));
  }
}

TEST_P(SimulatedViews, WithOtherMembersEqualTheReference) {
  RoomOfTest room;
  const std::vector<Part> parts = {{{0, 1, 2, 3}, 3}, {{1, 3}, 10}, {{0, 1, 3}, 11}, {{0}, 12}};
  const Status done = room.run(parts);
  ASSERT_TRUE(done.ok()) << done.error().message;
  room.expect_reference(parts);
  EXPECT_EQ(room.committed.size(), kViewSteps);
  EXPECT_EQ(room.evaluated, (std::vector<std::uint64_t>{5, 10, 10, 12}))
      << "that of step 10 by both its views, as where a joiner becomes a member with it";
}

TEST(SimulatedView, AnEngineThatFailsEndsIt) {
  Room room(kViewModes[1]);
  room.learning->fails_at = 4;
  const Status done = room.run({{{0, 1, 2}, kViewSteps}});
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().message.find("the drawing pen is dry"), std::string::npos) << done.error().message;
}

TEST(SimulatedView, AGradientThatIsNotFiniteEndsItAsOnAMesh) {
  Room room(kViewModes[1]);
  room.learning->not_finite_at = 4;
  const Status done = room.run({{{0, 1, 2}, kViewSteps}});
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().message.find("conv1.weight"), std::string::npos) << done.error().message;
}

TEST(SimulatedView, WithOneReplicaTheOthersKeepNoState) {
  Room room(kViewModes[1]);
  room.one_replica = true;
  ASSERT_TRUE(room.run({{{0, 1, 3}, kViewSteps}}).ok());
  EXPECT_TRUE(room.nodes[0].replica->keeps_state());
  EXPECT_FALSE(room.nodes[1].replica->keeps_state());
  EXPECT_EQ(room.nodes[0].replica->parameters().address(), room.nodes[1].replica->parameters().address());
}

TEST(SimulatedViewDeathTest, ReadingAFollowerAtAnotherStepIsABug) {
  Room room(kViewModes[1]);
  SimulatedNode keeper{std::make_shared<Replica>(*room.space, tiny_model(), 1, 7), {}};
  const SimulatedNode ahead = daemon::follower_of(keeper, *room.space, tiny_model());
  EXPECT_DEATH(ahead.replica->commit({}), "keeper_");
  const SimulatedNode behind = daemon::follower_of(keeper, *room.space, tiny_model());
  keeper.replica->commit(draw_statistics(7, 0, 0));
  EXPECT_DEATH(behind.replica->parameters(), "keeper_");
}

// A simulated view ends with a confirmed state, or the whole run with it: no member
// goes back, so no rule says which one goes first.
TEST(SimulatedViewDeathTest, UndoingAFollowerIsABug) {
  Room room(kViewModes[1]);
  SimulatedNode keeper{std::make_shared<Replica>(*room.space, tiny_model(), 1, 7), {}};
  const SimulatedNode node = daemon::follower_of(keeper, *room.space, tiny_model());
  keeper.replica->commit(draw_statistics(7, 0, 0));
  node.replica->commit({});
  EXPECT_DEATH(node.replica->undo(), "keeps_state");
}

INSTANTIATE_TEST_SUITE_P(All, SimulatedViews, testing::Combine(testing::ValuesIn(kViewModes), testing::Bool()),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) +
                                  (std::get<1>(test.param) ? "_one_replica" : "");
                         });

}  // namespace
}  // namespace tg::simulation
