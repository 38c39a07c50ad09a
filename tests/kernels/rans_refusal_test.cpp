// Entropy-coded payloads that decode to something, but that no right encoder writes: each must be refused.
#include "tests/kernels/variants.h"

namespace tg::kernels::test {
namespace {

using Payload = std::vector<std::byte>;
using Runs = std::vector<std::size_t>;

// A deliberately dumb encoder from the contract's formulas, of planes that need not be what an encoder would write.
struct ModelPlane {
  std::vector<bool> bits;  // padding included
  unsigned probability;
};

Payload model_payload(const std::vector<ModelPlane>& runs, const std::vector<ModelPlane>& levels,
                      const Payload& signs) {
  constexpr std::size_t kLanes = 64;
  unsigned states[kLanes];
  for (std::size_t l = 0; l < kLanes; ++l) states[l] = 256 + (l < signs.size() ? static_cast<unsigned>(signs[l]) : 0);
  Payload stream;
  const auto code = [&](const ModelPlane& plane) {
    const unsigned rare = plane.probability & 127;
    if (rare == 0) return;
    for (std::size_t i = 0; i < plane.bits.size(); ++i) {
      const bool is_rare = plane.bits[i] != (plane.probability >= 128);
      const unsigned f = is_rare ? rare : 256 - rare, c = is_rare ? 0 : rare;
      unsigned& x = states[i % kLanes];
      if (x >= 256 * f) {
        stream.push_back(static_cast<std::byte>(x % 256));
        x /= 256;
      }
      x = x / f * 256 + x % f + c;
    }
  };
  for (std::size_t l = levels.size(); l-- > 0;) code(levels[l]);
  for (const ModelPlane& run : runs) code(run);
  Payload payload;
  for (const unsigned x : states) payload.push_back(static_cast<std::byte>(x / 256));
  for (const unsigned x : states) payload.push_back(static_cast<std::byte>(x % 256));
  for (const ModelPlane& run : runs) payload.push_back(static_cast<std::byte>(run.probability));
  for (const ModelPlane& level : levels) payload.push_back(static_cast<std::byte>(level.probability));
  for (std::size_t l = kLanes; l < signs.size(); ++l) payload.push_back(signs[l]);
  payload.insert(payload.end(), stream.begin(), stream.end());
  return payload;
}

class RansRefusalTest : public EveryVariant {};
TG_TEST_EVERY_VARIANT(RansRefusalTest);

// Two members; 1000 of 8192 elements are 1, of which the first 300 are 2.
TEST_P(RansRefusalTest, RefusesBytesOfABadEncoder) {
  const Runs runs = {8192};
  AlignedArray<std::int8_t> sums(8192), decoded(8192);
  std::vector<ModelPlane> mask = {{std::vector<bool>(8192), 31}};   // 256 * 1000 / 8192
  std::vector<ModelPlane> level = {{std::vector<bool>(1024), 75}};  // 256 * 300 / 1024
  for (std::size_t i = 0; i < 1000; ++i) {
    sums[i] = i < 300 ? 2 : 1;
    mask[0].bits[i] = true;
    level[0].bits[i] = i < 300;
  }
  const Payload signs(125);
  const Payload good = model_payload(mask, level, signs);
  Payload encoded(sums_bound(sums.size(), 2));
  encoded.resize(kernels().encode_sums_rans(sums.span(), 2, runs, encoded));
  ASSERT_EQ(good, encoded) << "or the model is wrong";
  const auto taken = [&](const Payload& payload) {
    return kernels().decode_sums_rans(payload, 2, runs, decoded.span());
  };
  EXPECT_TRUE(taken(good));

  auto padded_level = level;
  padded_level[0].bits[1010] = true;
  EXPECT_FALSE(taken(model_payload(mask, padded_level, signs))) << "a bit in the padding";
  auto other = mask;
  other[0].probability = 32;
  EXPECT_FALSE(taken(model_payload(other, level, signs))) << "not the nearest probability";
  auto off = level;
  off[0].probability = 76;
  EXPECT_FALSE(taken(model_payload(mask, off, signs)));
  EXPECT_FALSE(taken(model_payload(mask, {{std::vector<bool>(1024, true), 0x80}}, signs))) << "all ones, padding too";
  EXPECT_FALSE(taken(model_payload(mask, {}, signs))) << "no level";
  auto more = level;
  more.push_back({std::vector<bool>(320), 0});
  EXPECT_FALSE(taken(model_payload(mask, more, signs))) << "a level more than two members have";
  Payload between = good;
  between.insert(between.begin() + 130 + 61, std::byte{0});
  EXPECT_FALSE(taken(between)) << "a byte between signs and stream";
  EXPECT_FALSE(taken(model_payload(mask, level, Payload(126)))) << "signs of more elements than there are";
  Payload last = signs;
  last[124] = std::byte{1};
  EXPECT_TRUE(taken(model_payload(mask, level, last))) << "element 992 is negative";
  PlaneArrays planes(512);
  EXPECT_FALSE(kernels().decode_codes_rans(model_payload({{{}, 0}}, {}, {}), Runs{512}, planes.planes()))
      << "129 bytes where raw has 64";
}

}  // namespace
}  // namespace tg::kernels::test
