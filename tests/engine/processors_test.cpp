#include "engine/processors.h"

#include <gtest/gtest.h>

#include <thread>

#include "engine/cgroup.h"

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

TEST(Processors, AreBetweenOneAndThoseOfTheMachine) {
  EXPECT_GE(usable_processors(), 1);
  EXPECT_LE(usable_processors(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace tg::engine
