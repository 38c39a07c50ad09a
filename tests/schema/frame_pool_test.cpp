// The pool: blocks come back, idle memory is bounded, handles outlive it, threads may share it.
#include <gtest/gtest.h>

#include <thread>

#include "schema/frame/frame.h"

namespace tg::schema {
namespace {

SharedFrame chunk_of(FramePool& pool, std::size_t bytes) {
  ChunkFrameBuilder builder({}, 0, ChunkPhase::kTotal, bytes, pool);
  for (std::byte& byte : builder.payload()) byte = std::byte{0x11};
  return builder.finish(bytes, PayloadFormat::kFloat32);
}

TEST(FramePool, RecyclesBlocks) {
  FramePool pool;
  chunk_of(pool, 65536).reset();
  const std::size_t after_one = pool.allocated_bytes();
  EXPECT_GE(after_one, 65536u);
  for (int i = 0; i < 100; ++i) chunk_of(pool, 65536).reset();
  EXPECT_EQ(pool.allocated_bytes(), after_one);
}

TEST(FramePool, RecycledBlockLeaksNothingIntoAFrame) {
  FramePool pool;
  chunk_of(pool, 200).reset();
  const SharedFrame frame = encode_frame({}, Claim{"first"}, pool);
  for (const std::byte byte : frame->bytes()) EXPECT_NE(byte, std::byte{0x11});
  EXPECT_TRUE(decode_frame(frame->bytes()).ok());
}

TEST(FramePool, IdleMemoryIsBounded) {
  FramePool pool;
  std::vector<SharedFrame> frames;
  for (std::size_t i = 0; i < 2 * kMaxIdlePoolBytes / kMaxChunkPayloadBytes; ++i) {
    frames.push_back(chunk_of(pool, kMaxChunkPayloadBytes));
  }
  EXPECT_GT(pool.allocated_bytes(), kMaxIdlePoolBytes);
  frames.clear();
  EXPECT_LE(pool.allocated_bytes(), kMaxIdlePoolBytes);
  EXPECT_GT(pool.allocated_bytes(), 0u);
}

// Sparse gradients need only a small part of a chunk's bound.
TEST(FramePool, AFrameKeepsNoBlockManyTimesItsSize) {
  FramePool pool;
  for (const std::size_t used :
       {std::size_t{5'000}, std::size_t{30'000}, std::size_t{300'000}, kMaxChunkPayloadBytes}) {
    std::vector<SharedFrame> frames;
    const std::size_t idle_before = pool.allocated_bytes();
    for (std::size_t i = 0; i < 40; ++i) {
      ChunkFrameBuilder builder({}, 7, ChunkPhase::kTotal, kMaxChunkPayloadBytes, pool);
      for (std::size_t b = 0; b < used; ++b) builder.payload()[b] = static_cast<std::byte>(b + i);
      frames.push_back(builder.finish(used, PayloadFormat::kSumsRans));
    }
    EXPECT_LE(pool.allocated_bytes(),
              idle_before + kMaxFrameBytes + frames.size() * kMaxBlockPerFrame * frames[0]->bytes().size())
        << used;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const Result<Frame> frame = decode_frame(frames[i]->bytes());
      ASSERT_TRUE(frame.ok());
      const std::span<const std::byte> payload = std::get<Chunk>(frame->body).payload;
      ASSERT_EQ(payload.size(), used);
      for (std::size_t b = 0; b < used; ++b) ASSERT_EQ(payload[b], static_cast<std::byte>(b + i));
    }
  }
}

TEST(FramePool, FramesOutliveIt) {
  SharedFrame frame;
  {
    FramePool pool;
    frame = chunk_of(pool, 1000);
  }
  EXPECT_TRUE(decode_frame(frame->bytes()).ok());
}

TEST(FramePool, ThreadsShareIt) {
  FramePool pool;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (std::size_t i = 0; i < 100; ++i) {
        const SharedFrame frame = chunk_of(pool, 100 + i * 37 % 5000 + static_cast<std::size_t>(t));
        std::thread([frame] { EXPECT_TRUE(decode_frame(frame->bytes()).ok()); }).join();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(pool.allocated_bytes(), kMaxIdlePoolBytes);
}

}  // namespace
}  // namespace tg::schema
