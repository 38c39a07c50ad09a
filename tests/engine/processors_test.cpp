#include "engine/resources/processors.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "engine/resources/cgroup.h"
#include "engine/resources/memory.h"

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

constexpr const char* kUnified =
    "23 1 0:21 / /proc rw - proc proc rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* kFirstVersion =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

TEST(Cgroup, WalksUpToTheMount) {
  using Paths = std::vector<std::string>;
  const std::string mount = "/sys/fs/cgroup";
  EXPECT_EQ(cgroup_directories("0::/system.slice/tgd.service\n", kUnified, ""),
            (Paths{mount + "/system.slice/tgd.service", mount + "/system.slice", mount}));
  EXPECT_EQ(cgroup_directories("0::/\n", kUnified, ""), (Paths{mount}));
  EXPECT_EQ(cgroup_directories("12:cpu:/a\n0::/b\n", kUnified, ""), (Paths{mount + "/b", mount}));
  EXPECT_EQ(cgroup_directories("", kUnified, ""), (Paths{mount}));
  EXPECT_EQ(cgroup_directories("0::/../../other\n", kUnified, ""), (Paths{mount})) << "outside of this namespace";
  EXPECT_EQ(cgroup_directories("0::/b\n", "", ""), Paths{}) << "nothing is mounted";
  EXPECT_EQ(cgroup_directories("odd\n0:\n::\n", "odd - \n - cgroup2\n", ""), (Paths{""}));

  const std::string self = "4:memory:/user/tgd\n1:cpu,cpuacct:/slice\n0::/\n";
  EXPECT_EQ(cgroup_directories(self, kFirstVersion, "memory"),
            (Paths{mount + "/memory/user/tgd", mount + "/memory/user", mount + "/memory"}));
  EXPECT_EQ(cgroup_directories(self, kFirstVersion, "cpu"),
            (Paths{mount + "/cpu,cpuacct/slice", mount + "/cpu,cpuacct"}));
  EXPECT_EQ(cgroup_directories(self, kFirstVersion, ""), Paths{});
  EXPECT_EQ(cgroup_directories(self, kUnified, "memory"), Paths{});
}

TEST(Cgroup, AContainerSeesItsOwnGroupsMount) {
  using Paths = std::vector<std::string>;
  const std::string mounts = "35 31 0:32 /docker/abc /cg rw - cgroup cgroup rw,memory\n";
  EXPECT_EQ(cgroup_directories("4:memory:/docker/abc/job\n", mounts, "memory"), (Paths{"/cg/job", "/cg"}));
  EXPECT_EQ(cgroup_directories("4:memory:/docker/abc\n", mounts, "memory"), (Paths{"/cg"}));
  EXPECT_EQ(cgroup_directories("4:memory:/docker/abcd\n", mounts, "memory"), (Paths{"/cg"}));
}

// A file system of its own, with the files that Linux would show.
class HostTree : public testing::Test {
 protected:
  ~HostTree() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& content) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << content;
  }
  static constexpr std::uint64_t kMebi = 1u << 20;
  std::string root_ = [] {
    std::string path = testing::TempDir() + "/tgd-host-XXXXXX";
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    return path;
  }();
};

TEST_F(HostTree, TheOwnGroupOfVersionTwoLimits) {
  write("/proc/meminfo", "MemAvailable: 8388608 kB\n");
  write("/proc/self/mountinfo", kUnified);
  write("/proc/self/cgroup", "0::/lab/tgd\n");
  EXPECT_EQ(available_memory(root_), 8192 * kMebi);
  write("/sys/fs/cgroup/lab/tgd/memory.max", "1048576000\n");
  write("/sys/fs/cgroup/lab/tgd/memory.current", "104857600\n");
  EXPECT_EQ(available_memory(root_), 900 * kMebi);
  write("/sys/fs/cgroup/lab/memory.max", "314572800\n");
  write("/sys/fs/cgroup/lab/memory.current", "209715200\n");
  EXPECT_EQ(available_memory(root_), 100 * kMebi) << "the group around it has less left";
  write("/sys/fs/cgroup/lab/tgd/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/lab/cpu.max", "100000 100000\n");
  EXPECT_EQ(usable_processors(root_), 1);
}

TEST_F(HostTree, TheOwnGroupOfVersionOneLimits) {
  write("/proc/meminfo", "MemAvailable: 8388608 kB\n");
  write("/proc/self/mountinfo", kFirstVersion);
  write("/proc/self/cgroup", "4:memory:/lab/tgd\n1:cpu,cpuacct:/lab\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "409715200\n");
  EXPECT_EQ(available_memory(root_), 8192 * kMebi);
  write("/sys/fs/cgroup/memory/lab/tgd/memory.limit_in_bytes", "1048576000\n");
  write("/sys/fs/cgroup/memory/lab/tgd/memory.usage_in_bytes", "209715200\n");
  write("/sys/fs/cgroup/memory/lab/tgd/memory.stat", "inactive_file 104857600\n");
  EXPECT_EQ(available_memory(root_), 900 * kMebi);
  write("/sys/fs/cgroup/cpu,cpuacct/lab/cpu.cfs_quota_us", "100000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/lab/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable_processors(root_), 1);
}

TEST(Cgroup, ReportsTheMemoryLeft) {
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
