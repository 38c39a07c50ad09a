// From a measurement to what predictions calculate with, and its file.
#include "daemon/forecast/machine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "daemon/forecast/bench/bench_file.h"
#include "daemon/forecast/bench/kernel_timer.h"
#include "daemon/forecast/bench/node_speed.h"
#include "kernels/host_memory_space.h"
#include "tests/daemon/temporary_directory.h"

namespace tg::daemon {
namespace {

schema::BenchReply sample_bench() {
  schema::BenchReply bench;
  bench.node = "node-a";
  bench.build = "1";
  bench.kernels = "avx2";
  bench.measured_ms = 1'700'000'000'000;
  bench.members = 2;
  bench.cores = 4;
  bench.threads = 2;
  bench.link_mbps = 940.5;
  bench.round_trip_seconds = 200e-6;
  bench.codec = rates_of(kAssumedCosts);
  bench.compute = {{"lenet", 64, 1e-3, 50}};
  return bench;
}

TEST(Machine, SumsCostWhatTheyHavePlanes) {
  EXPECT_DOUBLE_EQ(planes(2, 0), 2) << "no more than members";
  EXPECT_DOUBLE_EQ(planes(100, 0.92), kReach * std::sqrt(8.0));
  EXPECT_DOUBLE_EQ(planes(100, 1), 1);
  EXPECT_DOUBLE_EQ(planes(1, 0.5), 1);
  const KernelCosts here = costs_at(kAssumedCosts, kMeasuredMembers, kMeasuredZeros);
  EXPECT_DOUBLE_EQ(here.sums[1], kAssumedCosts.sums[1]) << "as measured";
  const KernelCosts many = costs_at(kAssumedCosts, 4 * kMeasuredMembers, kMeasuredZeros);
  EXPECT_NEAR(many.sums[0] / kAssumedCosts.sums[0], 2, 1e-9) << "as the root of the members";
  EXPECT_EQ(many.apply, kAssumedCosts.apply);
  EXPECT_EQ(many.codes[1], kAssumedCosts.codes[1]);
  EXPECT_GT(costs_at(kAssumedCosts, 8, 0.68).sums[0], here.sums[0]) << "fewer zeros, more planes";
}

TEST(Machine, FurtherThreadsAddAlmostAsMuch) {
  EXPECT_DOUBLE_EQ(crew_speed_up(1), 1);
  EXPECT_DOUBLE_EQ(crew_speed_up(2), 1 + kFurtherThread);
  EXPECT_DOUBLE_EQ(crew_speed_up(8), 1 + 7 * kFurtherThread);
}

TEST(Machine, TakesWhatTheNodeSaid) {
  const Machine machine = machine_of(sample_bench()).value();
  EXPECT_EQ(machine.cores, 4);
  EXPECT_EQ(machine.threads, 2);
  EXPECT_DOUBLE_EQ(machine.trip_seconds, 100e-6);
  EXPECT_DOUBLE_EQ(machine.kernels.apply, kAssumedCosts.apply);
  schema::BenchReply alone = sample_bench();
  alone.round_trip_seconds = 0;
  EXPECT_DOUBLE_EQ(machine_of(alone)->trip_seconds, kAssumedTripSeconds);
}

TEST(Machine, AKernelThatLacksIsAnError) {
  schema::BenchReply bench = sample_bench();
  bench.codec.pop_back();
  EXPECT_FALSE(machine_of(bench).ok());
  bench.codec.clear();
  EXPECT_FALSE(machine_of(bench).ok());
}

TEST(Machine, ADeviceComputesBesideTheCores) {
  schema::BenchReply bench = sample_bench();
  EXPECT_FALSE(machine_of(bench)->on_device);
  bench.device = "GPU";
  EXPECT_TRUE(machine_of(bench)->on_device);
}

schema::BenchReply conditions(const char* kernels, std::uint64_t cores, std::uint64_t threads, std::uint64_t members,
                              const char* device = "", const char* math = "") {
  schema::BenchReply now;
  now.kernels = kernels;
  now.cores = cores;
  now.threads = threads;
  now.members = members;
  now.device = device;
  now.math = math;
  return now;
}
const schema::BenchReply kNow = conditions("avx2", 4, 2, 2);  // those of sample_bench

TEST(BenchFile, ComesBackAsItWas) {
  const tests::TemporaryDirectory directory;
  const std::string path = bench_path(directory.path());
  EXPECT_FALSE(read_bench(path, kNow).bench.has_value());
  const schema::BenchReply bench = sample_bench();
  ASSERT_TRUE(write_bench(path, bench).ok());
  const auto read = read_bench(path, kNow).bench;
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->link_mbps, 940.5);
  EXPECT_EQ(read->codec.size(), bench.codec.size());
  EXPECT_EQ(read->codec.back().rate, bench.codec.back().rate);
  EXPECT_EQ(read->compute[0].model, "lenet");
  EXPECT_EQ(read->saved, path);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1) << "nothing is left over";
}

TEST(BenchFile, OfOtherConditionsIsNoneAndSaysWhy) {
  const tests::TemporaryDirectory directory;
  const std::string path = bench_path(directory.path());
  ASSERT_TRUE(write_bench(path, sample_bench()).ok());
  const std::pair<schema::BenchReply, const char*> others[] = {
      {conditions("avx512", 4, 2, 2), "kernels avx2 then, avx512 now"},
      {conditions("avx2", 8, 2, 2), "cores 4 then, 8 now"},
      {conditions("avx2", 4, 1, 2), "compute threads 2 then, 1 now"},
      {conditions("avx2", 4, 2, 3), "nodes 2 then, 3 now"},
      {conditions("avx2", 4, 2, 2, "GPU", "tf32"), "device none then, GPU now, math none then, tf32 now"},
      {conditions("avx2", 2, 1, 2), "cores 4 then, 2 now, compute threads 2 then, 1 now"},
  };
  for (const auto& [now, why] : others) {
    const KeptBench kept = read_bench(path, now);
    EXPECT_FALSE(kept.bench.has_value()) << why;
    EXPECT_EQ(kept.outdated, why);
  }
  EXPECT_EQ(read_bench(path, kNow).outdated, "");
}

TEST(BenchFile, WhatIsDamagedIsNone) {
  const tests::TemporaryDirectory directory;
  const std::string path = bench_path(directory.path());
  ASSERT_TRUE(write_bench(path, sample_bench()).ok());
  std::ifstream file(path);
  const std::string good{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::string other_version = good;
  other_version.replace(other_version.find("\"schema_version\": 6"), 19, "\"schema_version\": 1");
  for (const std::string& text : {std::string(), good.substr(0, good.size() / 2), std::string("[]"), other_version,
                                  std::string(1 << 20, ' '), std::string("{\"schema_version\": \"1\"}")}) {
    std::ofstream(path, std::ios::trunc) << text;
    EXPECT_FALSE(read_bench(path, kNow).bench.has_value()) << text.substr(0, 40);
  }
  std::ofstream(path, std::ios::trunc) << other_version;
  EXPECT_EQ(read_bench(path, kNow).outdated, "its file's version 1 then, 6 now");
}

kernels::HostMemorySpace host(*kernels::available().front());
const engine::ComputeDevice processor(host);

TEST(KernelTimer, TimesEveryKernelUnlessItIsStopped) {
  const kernels::Kernels& kernels = *kernels::available().front();
  std::stop_source source;
  KernelCosts costs = time_kernels(kernels, host, source.get_token());
  for (const KernelCost& kernel : kKernelCosts) EXPECT_GT(*kernel.field(costs), 0) << kernel.name;
  source.request_stop();
  EXPECT_EQ(time_kernels(kernels, host, source.get_token()).apply, 0);
}

TEST(NodeSpeed, WithoutMemoryOrStoppedIsAnError) {
  schema::BenchReply bench;
  const kernels::Kernels& kernels = *kernels::available().front();
  const Status poor =
      measure_node({.kernels = kernels, .compute = processor, .threads = 1, .memory_bytes = 1 << 20}, bench);
  ASSERT_FALSE(poor.ok());
  EXPECT_NE(poor.error().message.find("memory-mib"), std::string::npos) << poor.error().message;
  std::stop_source source;
  source.request_stop();
  const Status stopped = measure_node(
      {.kernels = kernels, .compute = processor, .threads = 1, .memory_bytes = 400 << 20, .stop = source.get_token()},
      bench);
  ASSERT_FALSE(stopped.ok());
  EXPECT_NE(stopped.error().message.find("stopped"), std::string::npos) << stopped.error().message;
  EXPECT_TRUE(bench.codec.empty());
}

// The least memory that a bench takes: every kernel is there, and none is endlessly fast.
TEST(NodeSpeed, WithLittleMemoryMeasuresEveryKernelOnce) {
  schema::BenchReply bench;
  const kernels::Kernels& kernels = *kernels::available().front();
  ASSERT_TRUE(
      measure_node({.kernels = kernels, .compute = processor, .threads = 1, .memory_bytes = 256 << 20}, bench).ok());
  EXPECT_EQ(bench.codec.size(), kKernelCosts.size());
  for (const schema::KernelRate& rate : bench.codec) EXPECT_TRUE(std::isfinite(rate.rate) && rate.rate > 0);
  EXPECT_EQ(bench.compute.size(), 2u);
  EXPECT_TRUE(machine_of(bench).ok());
}

}  // namespace
}  // namespace tg::daemon
