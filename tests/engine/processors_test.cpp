#include "engine/host/processors.h"

#include <gtest/gtest.h>

#include <thread>

#include "engine/host/cgroup.h"
#include "engine/host/memory.h"

namespace tg::engine {
namespace {

TEST(Cgroup, ReadsTheQuotaOfVersionTwo) {
  EXPECT_EQ(processors_in_cpu_max("200000 100000\n"), 2);
  EXPECT_EQ(processors_in_cpu_max("350000 100000\n"), 3);
  EXPECT_EQ(processors_in_cpu_max("50000 100000\n"), 1);
  EXPECT_EQ(processors_in_cpu_max("120000 20000"), 6);
}

TEST(Cgroup, NoLimitAndOddTextSayNothing) {
  for (const char* text : {"max 100000\n", "", "\n", "200000", "200000 0", "-1 100000", "12x 100000", "0 100000",
                           "99999999999999999999 1"}) {
    EXPECT_EQ(processors_in_cpu_max(text), std::nullopt) << text;
  }
}

TEST(Cgroup, ReadsTheQuotaOfVersionOne) {
  EXPECT_EQ(processors_in_cfs("400000\n", "100000\n"), 4);
  EXPECT_EQ(processors_in_cfs("-1\n", "100000\n"), std::nullopt);
  EXPECT_EQ(processors_in_cfs("", ""), std::nullopt);
}

TEST(Cgroup, WalksUpToTheMount) {
  using Paths = std::vector<std::string>;
  EXPECT_EQ(cgroup_directories("0::/system.slice/tgd.service\n", "/m"),
            (Paths{"/m/system.slice/tgd.service", "/m/system.slice", "/m"}));
  EXPECT_EQ(cgroup_directories("0::/\n", "/m"), (Paths{"/m"}));
  EXPECT_EQ(cgroup_directories("12:cpu:/a\n0::/b\n", "/m"), (Paths{"/m/b", "/m"}));
  EXPECT_EQ(cgroup_directories("", "/m"), (Paths{"/m"}));
}

TEST(Cgroup, SaysWhatMemoryIsLeft) {
  EXPECT_EQ(memory_left_in_group("1000000\n", "300000\n", "anon 5\ninactive_file 90000\nactive_file 10000\n"), 800000U);
  EXPECT_EQ(memory_left_in_group("1000000\n", "300000\n", ""), 700000U);
  EXPECT_EQ(memory_left_in_group("1000\n", "3000\n", ""), 0U) << "over its limit";
  EXPECT_EQ(memory_left_in_group("1000\n", "300\n", "inactive_file 400\n"), 1000U);
  EXPECT_EQ(memory_left_in_group("0\n", "300\n", ""), 0U);
  EXPECT_EQ(memory_left_in_group("1000\n", "0\n", ""), 1000U);
  for (const char* text : {"max\n", "", "12x\n", "-1"})
    EXPECT_EQ(memory_left_in_group(text, "300\n", ""), std::nullopt) << text;
  EXPECT_EQ(memory_left_in_machine("MemTotal: 24 kB\nMemFree:  1 kB\nMemAvailable:   20 kB\n"), 20480U);
  EXPECT_EQ(memory_left_in_machine("MemTotal: 24 kB\n"), std::nullopt);
  EXPECT_EQ(memory_left_in_machine("MemAvailable: many kB\n"), std::nullopt);
}

TEST(Memory, IsThere) {
  EXPECT_GT(available_memory(), 1U << 20);
  EXPECT_LT(available_memory(), std::uint64_t{1} << 50);
}

TEST(Processors, AreBetweenOneAndThoseOfTheMachine) {
  EXPECT_GE(usable_processors(), 1);
  EXPECT_LE(usable_processors(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace tg::engine
