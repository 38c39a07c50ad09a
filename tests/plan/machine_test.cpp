// From a measurement to what predictions calculate with, and its file.
#include "daemon/forecast/machine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "daemon/forecast/bench/bench_file.h"
#include "daemon/forecast/bench/codec_timer.h"
#include "daemon/forecast/bench/crew_costs.h"
#include "daemon/forecast/bench/large_arrays.h"
#include "daemon/forecast/bench/node_speed.h"
#include "daemon/forecast/bench/roofs.h"
#include "tests/daemon/temporary_directory.h"
#include "tests/plan/samples.h"

namespace tg::daemon {
namespace {

CodecPoint point(double zeros, std::size_t members, std::size_t elements, double nanoseconds) {
  CodecPoint one{zeros, members, elements, sample_machine().codec[0].costs};
  one.costs.statistics = one.costs.encode_sums[1] = one.costs.apply = nanoseconds * 1e-9;
  return one;
}

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
  for (const CodecPoint& one : {point(0.5, 2, 1000, 1), point(0.9, 2, 1000, 2), point(0.5, 8, 1000, 3),
                                point(0.9, 8, 1000, 4), point(0.9, 8, 16000, 9)})
    for (schema::KernelRate& rate : rates_of(one)) bench.codec.push_back(rate);
  bench.compute = {{"lenet", 64, 1e-3, 50}};
  return bench;
}

TEST(Machine, CostsAreInterpolatedAndNoFurther) {
  const Machine machine = machine_of(sample_bench()).value();
  EXPECT_EQ(machine.codec.size(), 4u);
  EXPECT_EQ(machine.large.size(), 1u);
  const auto sums = [&](double zeros, std::size_t members) {
    return costs_at(machine, zeros, members, 1000).encode_sums[1] * 1e9;
  };
  EXPECT_NEAR(sums(0.5, 2), 1, 1e-9);
  EXPECT_NEAR(sums(0.7, 2), 1.5, 1e-9);
  EXPECT_NEAR(sums(0.5, 4), 2, 1e-9) << "half-way between 2 and 8 by their logarithms";
  EXPECT_NEAR(sums(0.1, 1), 1, 1e-9);
  EXPECT_NEAR(sums(0.99, 100), 4, 1e-9);
  EXPECT_NEAR(costs_at(machine, 0.5, 2, 4000).statistics * 1e9, 5, 1e-9) << "half-way to large arrays";
  EXPECT_NEAR(costs_at(machine, 0.5, 2, 1'000'000).apply * 1e9, 9, 1e-9);
  EXPECT_NEAR(costs_at(machine, 0.5, 2, 1'000'000).encode_sums[1] * 1e9, 1, 1e-9) << "chunks stay in a cache";
}

TEST(Machine, NodesThatShareItShareItsCaches) {
  Machine machine;
  machine.cores = 4;
  EXPECT_EQ(parameters_in_caches(machine, 4, 1000), 1000U);
  EXPECT_EQ(parameters_in_caches(machine, 1, 1000), 4000U);
  EXPECT_EQ(parameters_in_caches(machine, 8, 1000), 1000U) << "a larger machine has one node, too";
}

TEST(Machine, PassesAreInterpolatedBetweenAllSizes) {
  schema::BenchReply bench = sample_bench();
  for (schema::KernelRate& rate : rates_of(point(0.9, 8, 4000, 5))) bench.codec.push_back(rate);
  const Machine machine = machine_of(bench).value();
  ASSERT_EQ(machine.large.size(), 2u);
  const auto apply = [&](std::size_t parameters) { return costs_at(machine, 0.5, 2, parameters).apply * 1e9; };
  EXPECT_NEAR(apply(1000), 1, 1e-9);
  EXPECT_NEAR(apply(2000), 3, 1e-9);
  EXPECT_NEAR(apply(4000), 5, 1e-9);
  EXPECT_NEAR(apply(8000), 7, 1e-9);
  EXPECT_NEAR(apply(100'000), 9, 1e-9);
}

TEST(Machine, TakesWhatTheNodeSaid) {
  const Machine machine = machine_of(sample_bench()).value();
  EXPECT_EQ(machine.cores, 4);
  EXPECT_EQ(machine.threads, 2);
  EXPECT_DOUBLE_EQ(machine.trip_seconds, 100e-6);
}

TEST(Machine, AKernelThatLacksIsAnError) {
  schema::BenchReply bench = sample_bench();
  bench.codec.pop_back();
  EXPECT_FALSE(machine_of(bench).ok());
  bench.codec.clear();
  EXPECT_FALSE(machine_of(bench).ok());
}

const BenchConditions kNow{"avx2", 4, 2, 2};  // those of sample_bench

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
  const std::pair<BenchConditions, const char*> others[] = {
      {{"avx512", 4, 2, 2}, "kernels avx2 then, avx512 now"},
      {{"avx2", 8, 2, 2}, "cores 4 then, 8 now"},
      {{"avx2", 4, 1, 2}, "compute threads 2 then, 1 now"},
      {{"avx2", 4, 2, 3}, "nodes 2 then, 3 now"},
      {{"avx2", 2, 1, 2}, "cores 4 then, 2 now, compute threads 2 then, 1 now"},
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
  other_version.replace(other_version.find("\"schema_version\": 3"), 19, "\"schema_version\": 1");
  for (const std::string& text : {std::string(), good.substr(0, good.size() / 2), std::string("[]"), other_version,
                                  std::string(1 << 20, ' '), std::string("{\"schema_version\": \"1\"}")}) {
    std::ofstream(path, std::ios::trunc) << text;
    EXPECT_FALSE(read_bench(path, kNow).bench.has_value()) << text.substr(0, 40);
  }
}

TEST(CrewCosts, AreThoseOfAllThreadsTogether) {
  const kernels::Kernels& kernels = *kernels::available().front();
  const CodecCosts one = measure_crew(kernels, 1, {1 << 20, 4, 0.9}), two = measure_crew(kernels, 2, {1 << 20, 4, 0.9});
  for (const KernelCost& kernel : kKernelCosts) {
    CodecCosts a = one, b = two;
    EXPECT_GT(*kernel.field(a), 0) << kernel.name;
    EXPECT_GT(*kernel.field(b), 0) << kernel.name;
  }
  EXPECT_EQ(one.per_byte, two.per_byte);
}

// A stop at any moment: whoever sees it leaves the barrier to the others, or this never comes back.
TEST(CrewCosts, AStopBetweenKernelsLeavesNobodyWaiting) {
  const kernels::Kernels& kernels = *kernels::available().front();
  for (int wait = 0; wait < 24; wait += 3) {
    std::stop_source source;
    std::jthread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(wait));
      source.request_stop();
    });
    (void)measure_crew(kernels, 2, {1 << 20, 4, 0.9}, {.stop = source.get_token()});
  }
}

struct TimerArrays {
  AlignedArray<float> gradient, parameters_from, parameters_to, slot_from, slot_to;
  explicit TimerArrays(std::size_t count)
      : gradient(count), parameters_from(count), parameters_to(count), slot_from(count), slot_to(count) {
    draw_gradient(gradient.span(), 0.9);
  }
  CodecArrays spans() {
    return {gradient.span(), parameters_from.span(), parameters_to.span(), slot_from.span(), slot_to.span()};
  }
};

TEST(CodecTimer, RoundsThatWereNotKeptOrStoppedDoNotCount) {
  const kernels::Kernels& kernels = *kernels::available().front();
  TimerArrays arrays(64 * 1024);
  std::stop_source source;
  int calls = 0;
  CodecTimer timer(kernels, {4, false}, arrays.spans(), {[&] { ++calls; }, source.get_token()});
  timer.warm_round();
  EXPECT_EQ(static_cast<std::size_t>(calls), kKernelCosts.size());
  CodecCosts none = timer.medians();
  for (const KernelCost& kernel : kKernelCosts) EXPECT_EQ(*kernel.field(none), 0) << kernel.name;
  timer.round();
  CodecCosts one = timer.medians();
  for (const KernelCost& kernel : kKernelCosts) EXPECT_GT(*kernel.field(one), 0) << kernel.name;
  source.request_stop();
  timer.round();
  CodecCosts still = timer.medians();
  for (const KernelCost& kernel : kKernelCosts) EXPECT_EQ(*kernel.field(still), *kernel.field(one)) << kernel.name;
}

TEST(CodecTimer, TimersShareArrays) {
  const kernels::Kernels& kernels = *kernels::available().front();
  TimerArrays arrays(128 * 1024);
  CodecTimer all(kernels, {2, false}, arrays.spans(), {}),
      half(kernels, {64, true}, arrays.spans().first(64 * 1024), {});
  for (int round = 0; round < 3; ++round) {
    all.round();
    half.round();
  }
  EXPECT_GT(all.medians().apply, 0);
  EXPECT_GT(half.medians().decode_sums[1], 0);
}

TEST(CrewCosts, StopOnAllThreads) {
  std::stop_source source;
  int calls = 0;
  const auto stop_at_third = [&] {
    if (++calls == 3) source.request_stop();
  };
  const kernels::Kernels& kernels = *kernels::available().front();
  (void)measure_codec(kernels, {1 << 20, 4, 0.9}, {.before_call = stop_at_third, .stop = source.get_token()});
  EXPECT_EQ(calls, 3) << "nothing is timed after a stop";
  (void)measure_crew(kernels, 2, {1 << 20, 4, 0.9}, {.stop = source.get_token()});  // comes back
}

TEST(LargeArrays, AreTwiceTheCacheAsFarAsMemoryGoes) {
  constexpr std::uint64_t kMebibyte = 1 << 20, kPlenty = 64'000 * kMebibyte;
  const auto mebibytes = [](std::uint64_t cache, std::uint64_t memory) {
    return large_elements(cache, memory).value() * sizeof(float) / kMebibyte;
  };
  EXPECT_EQ(mebibytes(105 * kMebibyte, kPlenty), 210u);
  EXPECT_EQ(mebibytes(0, kPlenty), 64u) << "unknown";
  EXPECT_EQ(mebibytes(8 * kMebibyte, kPlenty), 64u);
  EXPECT_EQ(mebibytes(384 * kMebibyte, kPlenty), 256u);
  EXPECT_EQ(mebibytes(~std::uint64_t{0}, ~std::uint64_t{0}), 256u);
  EXPECT_EQ(mebibytes(105 * kMebibyte, 1000 * kMebibyte), 100u) << "five of them in half of the memory";
  EXPECT_EQ(mebibytes(105 * kMebibyte, 320 * kMebibyte), 32u);
  const auto none = large_elements(105 * kMebibyte, 319 * kMebibyte);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("needs 320 MiB of memory and 319 MiB"), std::string::npos)
      << none.error().message;
}

TEST(NodeSpeed, WithoutMemoryOrStoppedIsAnError) {
  schema::BenchReply bench;
  const kernels::Kernels& kernels = *kernels::available().front();
  const Status poor = measure_node({.kernels = kernels, .threads = 1, .memory_bytes = 1 << 20}, bench);
  ASSERT_FALSE(poor.ok());
  EXPECT_NE(poor.error().message.find("memory-mib"), std::string::npos) << poor.error().message;
  std::stop_source source;
  source.request_stop();
  const Status stopped =
      measure_node({.kernels = kernels, .threads = 1, .memory_bytes = 400 << 20, .stop = source.get_token()}, bench);
  ASSERT_FALSE(stopped.ok());
  EXPECT_NE(stopped.error().message.find("stopped"), std::string::npos) << stopped.error().message;
  EXPECT_TRUE(bench.codec.empty());
}

// The least memory that a bench takes: what costs_at looks for is all there, and nothing is endlessly fast.
TEST(NodeSpeed, WithLittleMemoryMeasuresEveryPoint) {
  schema::BenchReply bench;
  const kernels::Kernels& kernels = *kernels::available().front();
  ASSERT_TRUE(measure_node({.kernels = kernels, .threads = 1, .memory_bytes = 320 << 20}, bench).ok());
  for (const schema::KernelRate& rate : bench.codec) EXPECT_TRUE(std::isfinite(rate.rate) && rate.rate > 0);
  EXPECT_GT(bench.read_rate, 0);
  EXPECT_GT(bench.copy_rate, 0);
  EXPECT_EQ(bench.crew_speed_up, 1);
  const Machine machine = machine_of(bench).value();
  std::set<double> zeros;
  std::set<std::size_t> members;
  for (const CodecPoint& point : machine.codec) {
    zeros.insert(point.zeros);
    members.insert(point.members);
  }
  EXPECT_EQ(machine.codec.size(), zeros.size() * members.size()) << "each with each";
  EXPECT_GE(zeros.size(), 2u);
  EXPECT_GE(members.size(), 3u);
  ASSERT_EQ(machine.large.size(), 1u);
  EXPECT_EQ(machine.large[0].elements, 8u << 20);
}

TEST(Roofs, AreRates) {
  AlignedArray<float> from(1 << 20), to(1 << 20);
  from[7] = 3;
  EXPECT_GT(read_rate(from.span()), 0);
  EXPECT_GT(copy_rate(from.span(), to.span()), 0);
  EXPECT_EQ(to[7], 3) << "it copies";
  EXPECT_LT(peak_gflops(1), 1e4) << "no core does that many";
}

}  // namespace
}  // namespace tg::daemon
