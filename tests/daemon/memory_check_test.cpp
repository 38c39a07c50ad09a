// What an engine may not plan with of a device's memory.
#include "daemon/run/memory_check.h"

#include <gtest/gtest.h>

#include "daemon/step/job_data.h"
#include "daemon/step/worker.h"

namespace tg::daemon {
namespace {

std::uint64_t rooms(const schema::JobSpec& job, std::size_t members, std::uint64_t threads) {
  return device_reserve(job, engine::make_model(job.model), members, threads) - kLazyDeviceBytes;
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
