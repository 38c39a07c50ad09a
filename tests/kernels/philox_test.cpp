#include <gtest/gtest.h>

#include <array>

#include "kernels/kernels.h"

namespace tg::kernels::test {
namespace {

using Words = std::array<std::uint32_t, 4>;

struct KnownAnswer {
  Words counter;
  std::uint64_t key;
  Words out;
};

// The vectors that Random123 publishes for philox4x32 with 10 rounds.
constexpr KnownAnswer kKnownAnswers[] = {
    {{0, 0, 0, 0}, 0, {0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}},
    {{0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF},
     0xFFFFFFFFFFFFFFFF,
     {0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}},
    {{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344},
     0x299F31D0A4093822,
     {0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}},
};

TEST(Philox, GivesThePublishedWords) {
  for (const KnownAnswer& known : kKnownAnswers) {
    Words out{};
    philox4x32(known.counter.data(), known.key, out.data());
    EXPECT_EQ(out, known.out);
  }
}

}  // namespace
}  // namespace tg::kernels::test
