// What an engine may not plan with of a device's memory.
#include "daemon/run/memory_check.h"

#include <gtest/gtest.h>

#include "daemon/run/rebuild.h"
#include "daemon/step/job_data.h"
#include "daemon/step/worker.h"
#include "engine/models/builder.h"

namespace tg::daemon {
namespace {

std::uint64_t rooms(const schema::JobSpec& job, std::size_t members, std::uint64_t threads) {
  return device_reserve(job, engine::make_model(job.model), members, threads) - kLazyDeviceBytes;
}

// A batch normalization of one pixel needs two samples: in every view that can follow.
TEST(LaterShares, AreCheckedForEveryViewThatDeathsLeave) {
  const auto refusal = [&](std::uint64_t batch, const Per<Rank, std::uint16_t>& weights, int pixels = 1) {
    const engine::Model model =
        engine::ModelBuilder("m", {3, 1, pixels}).batch_normalization("bn1", {}).dense("fc", 2, {}).build().value();
    const Status checked = check_later_shares({Rank(0), weights, batch}, model);
    return checked.ok() ? std::string() : checked.error().message;
  };
  EXPECT_EQ(refusal(6, {1, 1, 1}), "");
  EXPECT_EQ(refusal(5, {1, 1, 1}, 2), "");
  EXPECT_NE(refusal(5, {1, 1, 1}).find("bn1 normalizes over one value"), std::string::npos);
  // All have two, but not if one dies.
  const std::vector<std::uint16_t> weights = {11, 21, 9, 9, 21, 21};
  for (const engine::Share& share : engine::split(15, weights)) EXPECT_GE(share.count, 2);
  const std::vector<std::uint16_t> left = {11, 21, 9, 21, 21};
  EXPECT_EQ(engine::split(15, left)[2].count, 1);
  EXPECT_NE(refusal(15, {11, 21, 9, 9, 21, 21}), "");
}

TEST(DeviceReserve, IsTheRoomOfEveryWorkerForTheLongestChunk) {
  schema::JobSpec job;
  job.model = ModelKind::kAlexnet;
  job.exchange = schema::ExchangeKind::kDirect;
  job.chunk_parameters = 512 * 1024;
  job.last_layer = GradientFormat::kTernary;
  const std::uint64_t one = rooms(job, 8, 1);
  EXPECT_EQ(one, 8u * 512 * 1024 / 4) << "the planes of eight members";
  EXPECT_EQ(rooms(job, 8, 4), 4 * one);
  EXPECT_EQ(rooms(job, 8, 64), kMaxWorkers * one);
  EXPECT_EQ(rooms(job, 2, 1), 512u * 1024) << "sums, a byte each";
  job.exchange = schema::ExchangeKind::kSharded;
  EXPECT_EQ(rooms(job, 8, 1), 512u * 1024);
  job.gradients = GradientFormat::kFloat32;
  EXPECT_EQ(rooms(job, 8, 1), 1u << 20) << "floats: a chunk's payload";
}

}  // namespace
}  // namespace tg::daemon
