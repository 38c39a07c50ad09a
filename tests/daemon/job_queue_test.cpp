#include "daemon/step/threads/job_queue.h"

#include <gtest/gtest.h>

#include <latch>

namespace tg::daemon {
namespace {

TEST(JobQueue, SaysHowLongItsOldestJobWaitsAndTakesABoundedNumber) {
  std::size_t done = 0;
  std::latch begun(1), goes_on(1);
  {
    JobQueue queue;
    EXPECT_EQ(queue.oldest_ms(), std::nullopt);
    EXPECT_TRUE(queue.post([&] {
      begun.count_down();
      goes_on.wait();
      ++done;
    }));
    begun.wait();
    EXPECT_TRUE(queue.oldest_ms()) << "the job in progress counts";
    for (std::size_t i = 0; i < JobQueue::kMaxJobs; ++i) ASSERT_TRUE(queue.post([&done] { ++done; }));
    EXPECT_FALSE(queue.post([&done] { ++done; }));
    goes_on.count_down();
  }
  EXPECT_EQ(done, JobQueue::kMaxJobs + 1) << "those that were taken are done";
}

}  // namespace
}  // namespace tg::daemon
