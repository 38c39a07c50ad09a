// The CUDA kernels without a device: every grid is walked on the host, thread by thread, through the bodies that the
// device runs (kernels/cuda/*.h), and compared with the scalar variant bit for bit. What only a device has stands in
// for itself as follows: a shuffle is an array of what the lanes hold, shared memory is an array, a barrier is the end
// of a loop over the threads. Launches, copies and the grids' real order are shown where there is a device.
#include <cmath>
#include <limits>

#include "kernels/cuda/apply.h"
#include "kernels/cuda/digest.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/statistics.h"
#include "kernels/cuda/ternarize.h"
#include "tests/kernels/variants.h"

namespace tg::kernels::test {
namespace {

constexpr float kDenormal = 0x1p-140F;

// One block; several; a warp's eight groups, a block's 64, and one group more or less; a tile of 32 fold blocks, and
// more than two of them.
constexpr std::array<std::size_t, 11> kGridLengths = {
    512, 1024, 1536, 8 * 512, 9 * 512, 63 * 512, 64 * 512, 65 * 512, 32 * 2048, 129 * 512, 70 * 2048 + 1536};

template <class Body>
void walk_grid(unsigned blocks, Body body) {
  for (unsigned block = 0; block < blocks; ++block)
    for (unsigned thread = 0; thread < cuda::kThreads; ++thread) body(block, thread);
}

// Gaussian, with every awkward value in turn between: zeros of both signs, denormals, the scaler and its neighbours.
AlignedArray<float> awkward(std::size_t elements, std::uint64_t seed, float scaler) {
  const std::array<float, 13> values = {0.0F,
                                        -0.0F,
                                        kDenormal,
                                        -kDenormal,
                                        std::numeric_limits<float>::denorm_min(),
                                        scaler,
                                        -scaler,
                                        std::nextafter(scaler, 0.0F),
                                        std::nextafter(scaler, kInfinity),
                                        -std::nextafter(scaler, kInfinity),
                                        2 * scaler,
                                        0.999F * scaler,
                                        -1e-3F * scaler};
  AlignedArray<float> result = gaussian(elements, seed, 0.4F * scaler, elements / 9);
  for (std::size_t i = seed % 7; i < elements; i += 7) result[i] = values[i / 7 % values.size()];
  return result;
}

// --- statistics ---

std::vector<Statistics> measure_on_grid(std::span<const std::span<const float>> slices) {
  std::vector<cuda::MeasuredSlice> table;
  std::size_t folds = 0, most_folds = 1;
  for (const std::span<const float>& slice : slices) {
    table.push_back({slice.data(), slice.size(), folds});
    folds += cuda::folds_of(slice.size());
    most_folds = std::max(most_folds, cuda::folds_of(slice.size()));
  }
  AlignedArray<float> lanes(folds * cuda::kTotals);
  std::ranges::fill(lanes, kNan);
  std::vector<std::uint32_t> largest(folds, ~0U);
  for (const cuda::MeasuredSlice& slice : table) {
    std::uint32_t warp_largest = 0;
    walk_grid(cuda::measure_blocks(most_folds), [&](unsigned block, unsigned thread) {
      const std::size_t fold = cuda::fold_of(block, thread);
      if (fold >= cuda::folds_of(slice.elements)) return;
      const unsigned lane = thread % cuda::kWarp;
      const cuda::LaneSums lane_sums = cuda::measure_lane(slice, fold, lane);
      cuda::write_lane(lane_sums, slice.first_fold + fold, lane, lanes.data());
      warp_largest = cuda::larger(lane == 0 ? 0 : warp_largest, lane_sums.largest);
      if (lane == cuda::kWarp - 1) largest[slice.first_fold + fold] = warp_largest;
    });
  }
  std::vector<Statistics> results;
  for (const cuda::MeasuredSlice& slice : table) {
    const std::size_t slice_folds = cuda::folds_of(slice.elements);
    const float* const slice_lanes = lanes.data() + slice.first_fold * cuda::kTotals;
    std::vector<double> tiles[2];
    for (std::vector<double>& tile : tiles) tile.assign(cuda::kTileTotals, static_cast<double>(kNan));
    const auto bring = [&](std::size_t tile) {
      walk_grid(1, [&](unsigned, unsigned thread) {
        const cuda::Staged staged = cuda::fetch_tile(slice_lanes, slice_folds, tile, thread);
        cuda::stage_tile(staged, thread, tiles[tile % 2].data());
      });
    };
    double totals[cuda::kTotals] = {};
    std::uint32_t slice_largest[cuda::kTotals] = {};
    bring(0);
    for (std::size_t tile = 0; tile * cuda::kTileFolds < slice_folds; ++tile) {
      bring(tile + 1);
      for (unsigned t = 0; t < cuda::kTotals; ++t) totals[t] = cuda::add_tile(totals[t], tiles[tile % 2].data(), t);
    }
    for (unsigned t = 0; t < cuda::kTotals; ++t)
      slice_largest[t] = cuda::largest_of(largest.data() + slice.first_fold, slice_folds, t);
    results.push_back(cuda::finish(totals, slice_largest));
  }
  return results;
}

void expect_same(const Statistics& got, const Statistics& want) {
  EXPECT_EQ(got.finite, want.finite);
  if (!want.finite) return;
  EXPECT_EQ(std::bit_cast<std::uint64_t>(got.sum), std::bit_cast<std::uint64_t>(want.sum));
  EXPECT_EQ(std::bit_cast<std::uint64_t>(got.sum_squares), std::bit_cast<std::uint64_t>(want.sum_squares));
  EXPECT_EQ(std::bit_cast<std::uint32_t>(got.max_abs), std::bit_cast<std::uint32_t>(want.max_abs));
}

TEST(CudaStatistics, EqualTheScalarOnesForSlicesOfAllLengths) {
  for (const float sigma : {1.0F, 1e-15F, 1e18F}) {
    std::vector<AlignedArray<float>> arrays;
    for (const std::size_t elements : kGridLengths) arrays.push_back(awkward(elements, elements, sigma));
    std::vector<std::span<const float>> slices = {{}};
    for (const AlignedArray<float>& array : arrays) slices.push_back(array.span());
    const std::vector<Statistics> got = measure_on_grid(slices);
    for (std::size_t s = 0; s < slices.size(); ++s) {
      SCOPED_TRACE(std::to_string(slices[s].size()) + " elements, sigma " + std::to_string(sigma));
      expect_same(got[s], scalar_variant().statistics(slices[s]));
    }
  }
}

TEST(CudaStatistics, EqualTheScalarOnesForTheLongestSlice) {
  const auto gradient = gaussian(std::size_t{512} << 10, 3);
  const std::span<const float> slice = gradient.span();
  expect_same(measure_on_grid({&slice, 1})[0], scalar_variant().statistics(slice));
}

TEST(CudaStatistics, FindTheLargestInEveryFoldBlock) {
  AlignedArray<float> gradient(131 * kFold);
  const std::span<const float> slice = gradient.span();
  for (const std::size_t fold : {0, 63, 64, 65, 127, 128, 130}) {
    float& value = gradient[fold * kFold + fold % kFold];
    value = -3;
    EXPECT_EQ(measure_on_grid({&slice, 1})[0].max_abs, 3) << fold;
    value = 0;
  }
}

TEST(CudaStatistics, ArePlusZeroForNegativeZeros) {
  AlignedArray<float> zeros(1024);
  std::ranges::fill(zeros, -0.0F);
  const std::span<const float> slice = zeros.span();
  expect_same(measure_on_grid({&slice, 1})[0], scalar_variant().statistics(slice));
}

TEST(CudaStatistics, SeeANonFiniteValueInItsSliceAlone) {
  auto first = gaussian(512 * 5, 3), second = gaussian(512 * 5, 4);
  for (std::size_t i = 0; i < first.size(); i += 41) {
    const float kept = first[i];
    for (const float odd : {kInfinity, -kInfinity, kNan, -kNan}) {
      first[i] = odd;
      const std::array<std::span<const float>, 2> slices = {first.span(), second.span()};
      const std::vector<Statistics> got = measure_on_grid(slices);
      ASSERT_FALSE(got[0].finite) << odd << " at " << i;
      ASSERT_TRUE(got[1].finite);
    }
    first[i] = kept;
  }
}

// --- ternarize ---

void ternarize_on_grid(std::span<const float> gradient, std::size_t first, const DrawKey& key, const Scale& scale,
                       Planes codes) {
  const cuda::TernarizeArguments arguments{.gradient = gradient.data(),
                                           .groups = gradient.size() / kBlock,
                                           .first_group = first / kBlock,
                                           .key = key,
                                           .rule = cuda::rule_of(scale),
                                           .nonzero = reinterpret_cast<std::uint16_t*>(codes.nonzero.data()),
                                           .negative = reinterpret_cast<std::uint16_t*>(codes.negative.data())};
  const std::size_t warps = std::size_t{cuda::ternarize_blocks(arguments.groups)} * cuda::kThreads / cuda::kWarp;
  for (std::size_t warp = 0; warp < warps; ++warp) {
    std::array<cuda::Floats4, cuda::kWarp> drawn;
    for (unsigned lane = 0; lane < cuda::kWarp; ++lane) drawn[lane] = cuda::draw_dithers(arguments, warp, lane);
    for (unsigned j = 0; j < cuda::kGroupsPerWarp; ++j) {
      if (cuda::group_of(warp, j) >= arguments.groups) break;
      float dithers[cuda::kDraw];
      for (unsigned e = 0; e < cuda::kDraw; ++e) dithers[e] = drawn[cuda::dither_lane(j, e)].at[e % 4];
      for (unsigned lane = 0; lane < cuda::kWarp; ++lane)
        cuda::ternarize_sixteen(arguments, cuda::group_of(warp, j), lane, dithers);
    }
  }
}

void expect_scalar_codes(std::span<const float> gradient, std::size_t first, const DrawKey& key, const Scale& scale) {
  PlaneArrays got(gradient.size()), want(gradient.size());
  std::ranges::fill(got.nonzero, ~std::uint64_t{0});
  std::ranges::fill(got.negative, ~std::uint64_t{0});
  ternarize_on_grid(gradient, first, key, scale, got.planes());
  scalar_variant().ternarize(gradient, first, key, scale, want.planes());
  EXPECT_TRUE(same_bytes(got, want)) << gradient.size() << " elements from " << first << ", clip " << scale.clip
                                     << ", scaler " << scale.scaler;
}

constexpr DrawKey kDrawKey{.seed = 0xC0FFEE0123456789, .seat = 5, .segment = 77, .step = 123456};

TEST(CudaTernarize, EqualsTheScalarOneForAllLengths) {
  for (const std::size_t elements : kGridLengths) {
    const auto gradient = awkward(elements, elements, 0.75F);
    for (const std::size_t first : {std::size_t{0}, std::size_t{512 * 3}, std::size_t{512} * 9000000})
      expect_scalar_codes(gradient.span(), first, kDrawKey, {.clip = 0.7F, .scaler = 0.75F});
  }
}

TEST(CudaTernarize, EqualsTheScalarOneForEveryScale) {
  const float below = std::nextafter(kSmallestScaler, 0.0F), above = std::nextafter(kSmallestScaler, 1.0F);
  for (const float own : {kSmallestScaler, 0.3F, 1e20F}) {
    const auto gradient = awkward(512 * 11, 5, own);
    for (const float scaler : {0.0F, below, kSmallestScaler, above, own / 3, own, 3 * own,
                               std::numeric_limits<float>::max(), kInfinity, kNan}) {
      for (const float clip : {kInfinity, scaler, own, 0.0F})
        expect_scalar_codes(gradient.span(), 0, kDrawKey, {clip, scaler});
    }
  }
}

TEST(CudaTernarize, EqualsTheScalarOneForNonFiniteValues) {
  auto gradient = gaussian(512 * 3, 6);
  const std::array<float, 4> odd = {kInfinity, -kInfinity, kNan, -kNan};
  for (std::size_t i = 0; i < gradient.size(); i += 5) gradient[i] = odd[i / 5 % 4];
  for (const float clip : {kInfinity, 2.5F}) expect_scalar_codes(gradient.span(), 0, kDrawKey, {clip, 2.5F});
}

TEST(CudaTernarize, EqualsTheScalarOneForAllBits) {
  std::mt19937_64 random(12);
  AlignedArray<float> gradient(512 * 64);
  for (float& g : gradient) g = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  for (const float scaler : {kSmallestScaler, 1e-20F, 0.3F, 1e20F})
    expect_scalar_codes(gradient.span(), 0, kDrawKey, {scaler, scaler});
}

// --- apply ---

// Moments of every kind: many zero, some denormal.
State awkward_state(std::size_t elements) {
  State state(elements);
  state.parameters = awkward(elements, 21, 0.1F);
  state.slot0 = awkward(elements, 22, 0.01F);
  state.slot1 = awkward(elements, 23, 0.001F);
  for (float& v : state.slot1) v = std::fabs(v);
  for (std::size_t i = 3; i < elements; i += 11) state.slot0[i] = state.slot1[i] = 0;
  for (std::size_t i = 5; i < elements; i += 11) state.slot1[i] = kDenormal;
  return state;
}

template <class Source>
void apply_on_grid(const Update& u, const Source& source, const State& from, State& to) {
  const std::size_t elements = from.parameters.size();
  const cuda::ConstStateAt in{from.parameters.data(), from.slot0.data(), from.slot1.data()};
  const cuda::StateAt out{to.parameters.data(), to.slot0.data(), to.slot1.data()};
  walk_grid(cuda::blocks_for(elements / cuda::kVector), [&](unsigned block, unsigned thread) {
    const std::size_t n = cuda::thread_number(block, thread);
    switch (u.kind) {
      case OptimizerKind::kSgd:
        return cuda::apply_four<OptimizerKind::kSgd>(u, source, elements, in, out, n);
      case OptimizerKind::kMomentum:
        return cuda::apply_four<OptimizerKind::kMomentum>(u, source, elements, in, out, n);
      case OptimizerKind::kAdam:
        return cuda::apply_four<OptimizerKind::kAdam>(u, source, elements, in, out, n);
      case OptimizerKind::kAdamW:
        return cuda::apply_four<OptimizerKind::kAdamW>(u, source, elements, in, out, n);
    }
  });
}

template <class Check>
void for_every_update(Check check) {
  for (const OptimizerKind kind : values_of<OptimizerKind>())
    for (const float decay : {0.0F, 5e-4F}) {
      SCOPED_TRACE("kind " + std::to_string(static_cast<int>(kind)) + ", decay " + std::to_string(decay));
      check(sample_update(kind, decay));
    }
}

TEST(CudaApply, FromSumsAndFloatsEqualsTheScalarOne) {
  for (const std::size_t elements : kGridLengths) {
    const State from = awkward_state(elements);
    AlignedArray<std::int8_t> sums(elements);
    for (std::size_t i = 0; i < elements; ++i) sums[i] = static_cast<std::int8_t>(i * 37 % 255 - 127);
    const auto floats = awkward(elements, 31, 1);
    for_every_update([&](const Update& update) {
      State got(elements), want(elements);
      apply_on_grid(update, cuda::SumsSource{sums.data()}, from, got);
      scalar_variant().apply_sums(update, sums.span(), from.view(), want.span());
      EXPECT_TRUE(same_bytes(got, want)) << "sums, " << elements;
      apply_on_grid(update, cuda::FloatsSource{floats.data()}, from, got);
      scalar_variant().apply_floats(update, floats.span(), from.view(), want.span());
      EXPECT_TRUE(same_bytes(got, want)) << "floats, " << elements;
    });
  }
}

// The planes of N members one after the other, as the device has them.
void expect_scalar_update(const Update& update, std::span<const PlaneArrays> members, const State& from) {
  const std::size_t elements = from.parameters.size(), words = elements / kWordBits;
  AlignedArray<std::uint64_t> planes(2 * words * members.size());
  std::vector<ConstPlanes> views;
  for (std::size_t m = 0; m < members.size(); ++m) {
    std::ranges::copy(members[m].nonzero, planes.begin() + 2 * m * words);
    std::ranges::copy(members[m].negative, planes.begin() + (2 * m + 1) * words);
    views.push_back(members[m].view());
  }
  const cuda::PlanesSource source{reinterpret_cast<const std::uint8_t*>(planes.data()), elements / 8,
                                  static_cast<unsigned>(members.size())};
  State got(elements), want(elements);
  apply_on_grid(update, source, from, got);
  ASSERT_TRUE(scalar_variant().apply_codes(update, {{}, views}, from.view(), want.span()));
  EXPECT_TRUE(same_bytes(got, want)) << members.size() << " members, " << elements;
}

TEST(CudaApply, FromPlanesEqualsTheScalarOne) {
  for (const std::size_t count : {1, 2, 3, 5, 8, 127}) {
    for (const std::size_t elements : {std::size_t{512}, std::size_t{9 * 512}}) {
      std::vector<PlaneArrays> members;
      for (std::size_t m = 0; m < count; ++m) members.push_back(random_codes(elements, m + 1, 0.4));
      const State from = awkward_state(elements);
      for_every_update([&](const Update& update) { expect_scalar_update(update, members, from); });
    }
  }
}

TEST(CudaApply, FromPlanesThatAllAgreeEqualsTheScalarOne) {
  std::vector<PlaneArrays> members;
  for (int m = 0; m < kMaxMembers; ++m) {
    members.emplace_back(512);
    std::ranges::fill(members.back().nonzero, ~std::uint64_t{0});
    std::ranges::fill(members.back().negative, 0x0F0F0F0F33335555);
  }
  expect_scalar_update(sample_update(OptimizerKind::kSgd, 0), members, awkward_state(512));
}

TEST(CudaApply, WritesTheScalarNan) {
  const std::array<float, 7> values = {
      0, 1, -1, std::bit_cast<float>(0xFFC00123U), -kInfinity, kInfinity, std::bit_cast<float>(0x7F800001U)};
  constexpr std::size_t kElements = 512 * 5;
  State from(kElements);
  AlignedArray<float> floats(kElements);
  for (std::size_t i = 0; i < kElements; ++i) {
    from.parameters[i] = values[i % 7];
    from.slot0[i] = values[i / 7 % 7];
    from.slot1[i] = values[i / 49 % 7];
    floats[i] = values[i / 343 % 7];
  }
  for_every_update([&](const Update& update) {
    State got(kElements), want(kElements);
    apply_on_grid(update, cuda::FloatsSource{floats.data()}, from, got);
    scalar_variant().apply_floats(update, floats.span(), from.view(), want.span());
    EXPECT_TRUE(same_bytes(got, want));
  });
}

// --- elementwise, digest ---

TEST(CudaElementwise, EqualsTheScalarOnes) {
  for (const std::size_t elements : kGridLengths) {
    auto parameters = awkward(elements, 43, 1);
    parameters[1] = kInfinity;
    parameters[2] = -kNan;
    auto before = awkward(elements, 44, 1);
    before[1] = kInfinity;
    const auto copy = [&] {
      AlignedArray<float> array(elements);
      std::ranges::copy(before, array.begin());
      return array;
    };
    auto got = copy(), want = copy();
    walk_grid(cuda::blocks_for(elements / cuda::kVector), [&](unsigned block, unsigned thread) {
      cuda::average_four(parameters.data(), 0.1F, got.data(), elements, cuda::thread_number(block, thread));
    });
    scalar_variant().average(parameters.span(), 0.1F, want.span());
    EXPECT_TRUE(same_bytes(got, want)) << "average, " << elements;
    got = copy(), want = copy();
    parameters[2] = 0;
    walk_grid(cuda::blocks_for(elements / cuda::kVector), [&](unsigned block, unsigned thread) {
      cuda::add_scaled_four(parameters.data(), 0.0123F, got.data(), elements, cuda::thread_number(block, thread));
    });
    scalar_variant().add_scaled(parameters.span(), 0.0123F, want.span());
    EXPECT_TRUE(same_bytes(got, want)) << "add_scaled, " << elements;
  }
}

std::uint64_t digest_on_grid(const cuda::DigestArguments& arguments, unsigned blocks) {
  std::uint64_t total = 0;
  walk_grid(blocks,
            [&](unsigned block, unsigned thread) { total += cuda::digest_thread(arguments, block, blocks, thread); });
  return total;
}

TEST(CudaDigest, EqualsTheScalarOne) {
  constexpr std::uint64_t kSalt = 0x243F6A8885A308D3;
  for (const std::size_t elements : kGridLengths) {
    const auto values = awkward(elements, elements, 1);
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{0xFFFFFE00}, ~std::uint64_t{0} - 511}) {
      const std::uint64_t want = scalar_variant().digest(values.span(), first, kSalt);
      // With few blocks each takes many tiles, as with more than kDigestBlocks tiles.
      for (const unsigned blocks : {cuda::digest_blocks(elements), 1U, 3U})
        EXPECT_EQ(digest_on_grid({values.data(), elements, first, kSalt}, blocks), want) << elements << ", " << blocks;
    }
  }
  EXPECT_EQ(cuda::digest_blocks(cuda::kDigestTile * 5000), cuda::kDigestBlocks);
}

}  // namespace
}  // namespace tg::kernels::test
