// A gradient in a memory space that the host cannot address travels in long pieces, and its bits are those of short
// ones.
#include "daemon/step/float_payload.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "kernels/memory_array.h"
#include "tests/simulation/simulator/awkward_memory.h"
#include "tests/simulation/simulator/random.h"

namespace tg::daemon {
namespace {

constexpr std::size_t kElements = 3 * FloatPayload::kSlice + 512;

struct Made {
  std::vector<std::byte> payload;
  std::vector<float> sums;
  std::uint64_t calls = 0;  // in this space
};

Made made(GradientFormat format, std::size_t slice) {
  const kernels::Kernels& kernels = *kernels::available().back();
  simulation::AwkwardMemory space(kernels);
  const auto tensors = space.make_kernels();
  kernels::MemoryArray gradient(space, kElements);
  simulation::Random random(11);
  std::vector<float> values(kElements);
  for (float& value : values) value = static_cast<float>(random.unit() - 0.5);
  tensors->copy_in(std::as_bytes(std::span(values)), gradient.floats());
  FloatPayload payload(*tensors, kernels, slice);
  Made all{std::vector<std::byte>(kElements * sizeof(float)), std::vector<float>(kElements, 0.25f), 0};
  const std::uint64_t before = space.calls();
  payload.write(format, std::as_const(gradient).floats(), all.payload);
  payload.add(format, std::as_const(gradient).floats(), all.sums);
  payload.round(format, all.sums);
  all.calls = space.calls() - before;
  return all;
}

TEST(FloatPayload, LongPiecesTakeFewCallsAndLeaveTheBits) {
  for (const GradientFormat format : {GradientFormat::kFloat16, GradientFormat::kFloat32}) {
    const Made pieces = made(format, FloatPayload::slice_of(true, kElements));
    const Made whole = made(format, FloatPayload::slice_of(false, kElements));
    EXPECT_EQ(pieces.payload, whole.payload);
    EXPECT_EQ(std::memcmp(pieces.sums.data(), whole.sums.data(), kElements * sizeof(float)), 0);
    EXPECT_EQ(pieces.calls, format == GradientFormat::kFloat16 ? 8u : 5u);
    EXPECT_EQ(whole.calls, 2u);
  }
}

TEST(FloatPayload, APieceIsNoLongerThanAChunk) {
  EXPECT_EQ(FloatPayload::slice_of(true, 1 << 20), FloatPayload::kSlice);
  EXPECT_EQ(FloatPayload::slice_of(false, 1 << 20), FloatPayload::kDeviceSlice);
  EXPECT_EQ(FloatPayload::slice_of(false, 8192), 8192u);
}

}  // namespace
}  // namespace tg::daemon
