// Proves that the awkward memory space is awkward, so that a run that passes in it bypassed nothing.
#include "tests/simulation/simulator/awkward_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

#include "kernels/host_memory_space.h"
#include "kernels/memory_array.h"
#include "tests/simulation/training/training_cluster.h"

namespace tg::simulation {
namespace {

using kernels::ConstFloats;
using kernels::Floats;
using kernels::MemoryArray;

static_assert(!std::is_convertible_v<Floats, std::span<float>> && !std::is_constructible_v<std::span<float>, Floats>);
static_assert(!std::is_convertible_v<ConstFloats, std::span<const float>> &&
              !std::is_constructible_v<std::span<const float>, ConstFloats>);
static_assert(!std::is_convertible_v<ConstFloats, Floats>, "what is read only stays so");

constexpr std::size_t kCount = 2 * kernels::kBlock;

const kernels::Kernels& best() { return *kernels::available().front(); }

std::vector<float> read(kernels::TensorKernels& tensors, ConstFloats floats) {
  std::vector<float> values(floats.size());
  tensors.copy_out(floats, std::as_writable_bytes(std::span(values)));
  return values;
}

kernels::Statistics measure(kernels::TensorKernels& tensors, ConstFloats gradient) {
  kernels::Statistics result{1, 1, 1, false};
  tensors.statistics({&gradient, 1}, {&result, 1});
  return result;
}

class AwkwardMemoryTest : public testing::Test {
 protected:
  AwkwardMemoryTest() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    for (std::size_t i = 0; i < kCount; ++i) values_.push_back(static_cast<float>(i));
    tensors_->copy_in(std::as_bytes(std::span(values_)), array_.floats());
  }

  AwkwardMemory space_{best()};
  const std::unique_ptr<kernels::TensorKernels> tensors_ = space_.make_kernels();
  MemoryArray array_{space_, kCount};
  std::vector<float> values_;
};

float first_of(const ConstFloats& floats) { return *const_cast<const volatile float*>(floats.address()); }

TEST_F(AwkwardMemoryTest, ADirectReadOrWriteIsDeadly) {
  kernels::HostMemorySpace host(best());
  const MemoryArray here(host, kCount);
  EXPECT_EQ(first_of(here.floats()), 0) << "on the host nothing happens";
  EXPECT_EQ(read(*tensors_, array_.floats()), values_);
  EXPECT_DEATH((void)first_of(array_.floats()), "");
  EXPECT_DEATH(*const_cast<volatile float*>(array_.floats().address()) = 1, "");
  EXPECT_EQ(read(*tensors_, array_.floats()), values_);
}

TEST_F(AwkwardMemoryTest, TheStateOfAReplicaIsOutOfReach) {
  const daemon::Replica replica(space_, tiny_model(), 1, 3);
  for (const ConstFloats& array : {replica.parameters(), replica.slot(0), replica.average(), replica.next_parameters()})
    EXPECT_DEATH((void)first_of(array), "");
  std::vector<float> expected(tiny_segments().padded_count());
  engine::initialize(tiny_segments(), 3, expected.data());
  EXPECT_EQ(read(*tensors_, replica.parameters()), expected);
}

TEST_F(AwkwardMemoryTest, OnlyRangesInsideOneAllocationAreTaken) {
  AlignedArray<float> foreign(kCount);
  AwkwardMemory other_space(best());
  const MemoryArray others(other_space, kCount);
  const Floats whole = array_.floats();
  EXPECT_DEATH(measure(*tensors_, ConstFloats(foreign.data(), kCount)), "lies_in_space");
  EXPECT_DEATH((void)tensors_->digest(others.floats(), 0, 0), "lies_in_space");
  EXPECT_DEATH(measure(*tensors_, ConstFloats(whole.address(), kCount + kernels::kBlock)), "lies_in_space");
  EXPECT_DEATH(measure(*tensors_, ConstFloats(whole.address() - kernels::kBlock, kCount)), "lies_in_space");
  EXPECT_DEATH(tensors_->average(ConstFloats(foreign.data(), kCount), 0.5F, whole), "lies_in_space");
  const Floats gone = MemoryArray(space_, kCount).floats();
  EXPECT_DEATH((void)tensors_->digest(gone, 0, 0), "lies_in_space");
}

TEST_F(AwkwardMemoryTest, HostMemoryLiesOutside) {
  MemoryArray second(space_, kCount);
  const std::span<float> inside(second.floats().address(), kCount);
  EXPECT_DEATH(tensors_->copy_out(array_.floats(), std::as_writable_bytes(inside)), "lies_outside");
  EXPECT_DEATH(tensors_->copy_in(std::as_bytes(inside), array_.floats()), "lies_outside");
  std::vector<std::byte> short_by_one(kCount * sizeof(float) - 1);
  EXPECT_DEATH(tensors_->copy_out(array_.floats(), short_by_one), "from.size");
}

// A call that another one outlives takes nothing away from it.
std::atomic<std::latch*> begun{nullptr}, may_go_on{nullptr};

TEST_F(AwkwardMemoryTest, MemoryStaysWhileAnyCallUsesIt) {
  kernels::HostKernels slow = best();
  slow.statistics = [](std::span<const float> gradient) {
    begun.load()->count_down();
    may_go_on.load()->wait();
    return best().statistics(gradient);
  };
  AwkwardMemory space(slow);
  const MemoryArray array(space, kCount);
  std::latch first(1), second(1);
  begun = &first;
  may_go_on = &second;
  kernels::Statistics found;
  std::thread one([&] { found = measure(*space.make_kernels(), array.floats()); });
  first.wait();
  (void)space.make_kernels()->digest(array.floats(), 0, 0);  // begins and ends inside the other one
  second.count_down();
  one.join();
  EXPECT_TRUE(found.finite);
  EXPECT_EQ(found.max_abs, 0);
  EXPECT_DEATH((void)first_of(array.floats()), "");
}

// Checks this suite itself: the simulator's nodes train in the memory space that the environment asks for.
TEST(SpaceUnderTest, IsTheOneAskedForAndTheOneUsed) {
  TrainingCluster cluster({3, 1});
  cluster.train(tiny_job(1, 5, schema::ExchangeKind::kDirect));
  for (const Seat rank : places<Seat>(cluster.size())) {
    ASSERT_EQ(cluster.trainer(rank).committed_steps(), 5u);
    kernels::MemorySpace& space = cluster.trainer(rank).space();
    const auto* const awkward = dynamic_cast<AwkwardMemory*>(&space);
    ASSERT_EQ(awkward != nullptr, awkward_memory_asked_for());
    if (awkward == nullptr) {
      EXPECT_NE(dynamic_cast<kernels::HostMemorySpace*>(&space), nullptr);
      continue;
    }
    EXPECT_GT(awkward->calls(), 5u * tiny_segments().size()) << "a step is more than one call a segment";
    EXPECT_DEATH((void)first_of(cluster.trainer(rank).replica().parameters()), "");
  }
}

}  // namespace
}  // namespace tg::simulation
