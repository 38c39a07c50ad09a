// Frames: round trips, bounds, unaligned input, and invalid bytes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "schema/frame/frame.h"
#include "tests/schema/samples.h"
#include "tests/seeds.h"

namespace tg::schema {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<std::byte> encoded(const FrameBody& body) {
  FramePool pool;
  return bytes_of(encode_frame(kSampleHeader, body, pool)->bytes());
}

bool inside(std::span<const std::byte> part, std::span<const std::byte> whole) {
  if (part.empty()) return true;
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

TEST(Frame, EveryKindComesBackAsItWas) {
  for (const FrameBody& body : sample_bodies()) {
    SCOPED_TRACE(frame_name(body));
    const auto bytes = encoded(body);
    const Result<Frame> frame = decode_frame(bytes);
    ASSERT_TRUE(frame.ok()) << frame.error().message;
    EXPECT_EQ(frame->header, kSampleHeader);
    EXPECT_EQ(describe(frame->body), describe(body));
  }
  EXPECT_EQ(sample_bodies().size(), std::variant_size_v<FrameBody>);
}

TEST(Frame, DecodesAtEveryAlignmentAndAliasesOnlyTheInput) {
  for (const FrameBody& body : sample_bodies()) {
    const auto bytes = encoded(body);
    for (std::size_t offset = 0; offset < 8; ++offset) {
      SCOPED_TRACE(std::string(frame_name(body)) + " at offset " + std::to_string(offset));
      const auto room = std::make_unique<std::byte[]>(bytes.size() + offset);  // new[] aligns to 16
      std::memcpy(room.get() + offset, bytes.data(), bytes.size());
      const std::span<const std::byte> input(room.get() + offset, bytes.size());
      const Result<Frame> frame = decode_frame(input);
      ASSERT_TRUE(frame.ok()) << frame.error().message;
      EXPECT_EQ(describe(frame->body), describe(body));
      if (const auto* chunk = std::get_if<Chunk>(&frame->body)) {
        EXPECT_TRUE(inside(chunk->payload, input));
      }
    }
  }
}

TEST(Frame, ChunkIsWrittenInPlaceAndShrinks) {
  FramePool pool;
  for (const std::size_t used : {0, 1, 7, 8, 9, 4095, 4096}) {
    ChunkFrameBuilder builder(kSampleHeader, 5, ChunkPhase::kContribution, 4096, pool);
    ASSERT_EQ(builder.payload().size(), 4096u);
    const std::byte* const place = builder.payload().data();
    for (std::size_t i = 0; i < 4096; ++i) builder.payload()[i] = static_cast<std::byte>(i * 7 + 1);
    const SharedFrame frame = builder.finish(used, PayloadFormat::kFloat32);
    EXPECT_EQ(frame->bytes().size(), 64 + (used + 7) / 8 * 8);
    const Result<Frame> decoded = decode_frame(frame->bytes());
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    const auto& chunk = std::get<Chunk>(decoded->body);
    EXPECT_EQ(chunk.chunk, 5u);
    EXPECT_EQ(chunk.format, PayloadFormat::kFloat32);
    ASSERT_EQ(chunk.payload.size(), used);
    for (std::size_t i = 0; i < used; ++i) ASSERT_EQ(chunk.payload[i], static_cast<std::byte>(i * 7 + 1)) << i;
    if (used > 0) {
      EXPECT_EQ(chunk.payload.data(), place) << "the payload was moved";
    }
  }
}

TEST(Frame, LargestChunkIsAFrame) {
  FramePool pool;
  ChunkFrameBuilder builder(kSampleHeader, kMaxChunks - 1, ChunkPhase::kTotal, kMaxChunkPayloadBytes, pool);
  std::memset(builder.payload().data(), 0x5a, builder.payload().size());
  const SharedFrame frame = builder.finish(kMaxChunkPayloadBytes, PayloadFormat::kFloat32);
  EXPECT_LE(frame->bytes().size(), kMaxFrameBytes);
  const Result<Frame> decoded = decode_frame(frame->bytes());
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(std::get<Chunk>(decoded->body).payload.size(), kMaxChunkPayloadBytes);
}

TEST(Frame, LargestStepFrameIsAFrame) {
  StepFrame step;
  step.digests.assign(kMaxDigests, 1);
  step.scalers.assign(kMaxSegments, 1.5f);
  step.statistics.assign(kMaxStatistics, -1.5f);
  const auto bytes = encoded(step);
  EXPECT_LE(bytes.size(), kMaxStepFrameBytes);
  const Result<Frame> frame = decode_frame(bytes);
  ASSERT_TRUE(frame.ok()) << frame.error().message;
  EXPECT_EQ(describe(frame->body), describe(step));
}

// The encoder has the same bound, but another sender may not.
TEST(Frame, AStatisticTooManyIsRefused) {
  StepFrame step;
  step.statistics.assign(kMaxStatistics, 1);
  std::vector<std::byte> bytes = encoded(step);
  ASSERT_TRUE(decode_frame(bytes).ok());
  // The list is the last thing in the frame: a word more, and two elements more in its pointer's count.
  constexpr std::size_t kPointer =
      8 + 8 + 24 + 8 + 24 + 16;  // table, root, frame, its pointer, step frame, two pointers
  std::uint64_t pointer = 0;
  std::memcpy(&pointer, bytes.data() + kPointer, sizeof pointer);
  ASSERT_EQ(pointer >> 35, kMaxStatistics);
  pointer += std::uint64_t{2} << 35;
  std::memcpy(bytes.data() + kPointer, &pointer, sizeof pointer);
  bytes.resize(bytes.size() + 8);
  const auto words = static_cast<std::uint32_t>(bytes.size() / 8 - 1);
  std::memcpy(bytes.data() + 4, &words, sizeof words);
  const Result<Frame> frame = decode_frame(bytes);
  ASSERT_FALSE(frame.ok());
  EXPECT_NE(frame.error().message.find("statistics"), std::string::npos) << frame.error().message;
}

void expect_refused(const FrameBody& body, const char* why) {
  const Result<Frame> frame = decode_frame(encoded(body));
  ASSERT_FALSE(frame.ok()) << why;
  EXPECT_EQ(frame.error().kind, ErrorKind::kCorrupt);
}

TEST(Frame, FieldsOutOfBoundsAreRefused) {
  const std::vector<std::string> kTwo{"a", "b"};
  expect_refused(Hello{1, "b", "Node", 1, 3, 4, 5}, "upper case");
  expect_refused(Hello{1, "b", "", 1, 3, 4, 5}, "no name");
  expect_refused(Hello{1, "b", "-a", 1, 3, 4, 5}, "dash first");
  expect_refused(Hello{1, "b", std::string(kMaxNameBytes + 1, 'a'), 1, 3, 4, 5}, "long name");
  expect_refused(Refusal{"Node", "why"}, "upper case of who refuses");
  expect_refused(Claim{"../etc"}, "a path as id");
  expect_refused(Claim{std::string(kMaxRunIdBytes + 1, 'a')}, "long id");
  expect_refused(Propose{"a", std::string(kMaxSpecBytes + 1, 'a')}, "long spec");
  expect_refused(Propose{"a", "steps = 1\x1b[2J"}, "escape in spec");
  expect_refused(Propose{"a", "steps = 1", {1, 0}, {}, {}, kTwo}, "no weight");
  expect_refused(Propose{"a", "steps = 1", {1, 1}, {}, {1, 0}, kTwo}, "members out of order");
  expect_refused(Propose{"a", "steps = 1", {1, 1}, {}, {2}, kTwo}, "a seat without a name");
  expect_refused(Propose{"a", "steps = 1", {1}, {}, {}, kTwo}, "a name without a weight");
  expect_refused(Propose{"a", "steps = 1", {1, 1}, {}, {}, {"a", "a"}}, "a name twice");
  expect_refused(Propose{"a", "steps = 1", {kMaxWeight + 1, 1}, {}, {}, kTwo}, "a great weight");
  Ended paused;
  paused.state = RunState::kPaused;
  expect_refused(paused, "a state that is not an end");
  expect_refused(Hello{1, "b", "node-a", 1, 3, 4, 5, 0}, "no weight");
  expect_refused(Hello{1, "b", "node-a", 1, 3, 4, 5, kMaxWeight + 1}, "a great weight");
  expect_refused(Vote{true, static_cast<ErrorKind>(11), "", 0, 0, 0, 0, 0, 0}, "unknown kind");
  expect_refused(Vote{true, ErrorKind::kFailed, "", 0, 0, 0, 0, -1, 0}, "negative time");
  expect_refused(Vote{true, ErrorKind::kFailed, "", 0, 0, 0, 0, kNan, 0}, "time is no number");
  expect_refused(Vote{true, ErrorKind::kFailed, "", 0, 0, 0, 0, 0, 0, 0, 0}, "nobody works");
  expect_refused(Vote{true, ErrorKind::kFailed, "", 0, 0, 0, 0, 0, 0, 0, kMaxExchangeThreads + 1}, "too many threads");
  expect_refused(Commit{static_cast<ExchangeKind>(2), Coding::kRaw, kMaxWindowBytes, kLargeChunkParameters},
                 "unknown exchange");
  expect_refused(Commit{.members = {{.seat = 1}, {.seat = 0}}, .names = kTwo}, "members out of order");
  expect_refused(Decide{{.number = kMaxViews + 1}}, "a view beyond all");
  expect_refused(Decide{{.number = 2, .members = {{.seat = 1}, {.seat = 1}}, .names = kTwo}}, "a member twice");
  expect_refused(Decide{{.number = 2, .members = {{.seat = 2}}, .names = kTwo}}, "a member without a name");
  expect_refused(Decide{{.number = 2, .members = {{.seat = 0}}, .names = {"a", "a"}}}, "a name twice");
  expect_refused(Offer{{}, "", 0, 0, {2}, kTwo}, "a voter without a name");
  expect_refused(Fail{ErrorKind::kFailed, "a b", "", ""}, "space in a name");
  expect_refused(Join{"../etc"}, "a path as id");
  expect_refused(Join{"a", false, {}, {"-a"}}, "no name");
  expect_refused(Join{"a", true, {true, static_cast<ErrorKind>(11), "", 0, 0, 0, 0, 0, 0}},
                 "unknown kind of a newcomer");
  expect_refused(Invite{"a", "steps = 1", {}, 1, 1, {.number = 0}}, "a view without a number");
  expect_refused(Invite{"a", "steps = 1", {0}, 1, 1, {.number = 2}}, "no weight of a member");
  expect_refused(Quiesce{"-a"}, "no name");
  expect_refused(SnapshotOffer{{}, std::vector<std::uint64_t>(kMaxSnapshotParts + 1)}, "too many parts");
  expect_refused(SnapshotDone{{}, {"-a"}}, "no name");
  expect_refused(StepFrame{0, 32, 0, 0, {}, {}}, "unknown flag");
  expect_refused(StepFrame{0, kNonFinite, kMaxDigests, 0, {}, {}}, "segment");
  expect_refused(StepFrame{0, 0, 0, 0, {}, {-0.5f}}, "negative scaler");
  expect_refused(StepFrame{0, 0, 0, 0, {}, {kInfinity}}, "infinite scaler");
  expect_refused(StepFrame{0, 0, 0, 0, {}, {kNan}}, "scaler is no number");
  expect_refused(StepFrame{0, 0, 0, kNan, {}, {}}, "loss is no number");
  expect_refused(StepFrame{0, 0, 0, 0, {}, {}, {1, kNan}}, "statistic is no number");
  expect_refused(StepFrame{0, 0, 0, 0, {}, {}, {-kInfinity}}, "infinite statistic");
  expect_refused(Scalers{kMaxBuckets, 0, 0, {}}, "bucket");
  expect_refused(Scalers{1, 0, 0, {kNan}}, "scaler is no number");
  expect_refused(Chunk{kMaxChunks, ChunkPhase::kTotal, PayloadFormat::kCodesRaw, {}}, "chunk");
  expect_refused(Chunk{0, static_cast<ChunkPhase>(2), PayloadFormat::kCodesRaw, {}}, "phase");
  expect_refused(Chunk{0, ChunkPhase::kTotal, static_cast<PayloadFormat>(6), {}}, "format");
  expect_refused(Report{true, 2, 0, 1, 0, {}}, "more right than asked");
  expect_refused(Report{true, 0, 2, 1, 0, {}}, "more right among five than asked");
}

TEST(Frame, NonFiniteValuesAreReadAsZeroWithTheFlag) {
  const auto bytes =
      encoded(StepFrame{0, kNonFinite, 3, kNan, {}, {kNan, kInfinity, -1.0f, 2.0f}, {kNan, -kInfinity, -1.0f}});
  const Result<Frame> frame = decode_frame(bytes);
  ASSERT_TRUE(frame.ok()) << frame.error().message;
  const auto& step = std::get<StepFrame>(frame->body);
  EXPECT_EQ(step.loss_sum, 0);
  EXPECT_EQ(step.scalers, (std::vector<float>{0, 0, 0, 2}));
  EXPECT_EQ(step.statistics, (std::vector<float>{0, 0, -1}));
  EXPECT_EQ(step.non_finite_segment, 3u);
}

TEST(Frame, SentencesAreCutAndCleanedBeforeTheyAreSent) {
  const auto bytes = encoded(Goodbye{std::string(kMaxReasonBytes + 50, 'x') + "\n"});
  const Result<Frame> frame = decode_frame(bytes);
  ASSERT_TRUE(frame.ok()) << frame.error().message;
  EXPECT_EQ(std::get<Goodbye>(frame->body).reason, std::string(kMaxReasonBytes, 'x'));
  const Result<Frame> cleaned = decode_frame(encoded(Fail{ErrorKind::kIo, "", "", "disk\nfull\x1b[2J"}));
  ASSERT_TRUE(cleaned.ok());
  EXPECT_EQ(std::get<Fail>(cleaned->body).message, "disk full [2J");
}

TEST(Frame, AResumeHasTheRequestedOrChosenState) {
  for (const Resume& resume :
       {Resume{}, Resume{3, 0}, Resume{4, 900, true}, Resume{2, {}, false, StateId{1, 2, 3, 4}}}) {
    const Result<Frame> frame = decode_frame(encoded(Propose{"first", "steps = 5\n", {1, 1}, resume, {}, {"a", "b"}}));
    ASSERT_TRUE(frame.ok()) << frame.error().message;
    EXPECT_EQ(std::get<Propose>(frame->body).resume, resume);
  }
  const Result<Frame> anew = decode_frame(encoded(Propose{"first", "steps = 5\n", {1, 1}, {}, {}, {"a", "b"}}));
  EXPECT_FALSE(std::get<Propose>(anew->body).resume);
  Offer full;
  full.states.assign(kMaxStates, {1, 1, 5, 7});
  EXPECT_EQ(std::get<Offer>(decode_frame(encoded(full))->body).states, full.states);
}

TEST(Frame, WrongShapesAreRefused) {
  const auto good = encoded(Claim{"first"});
  const auto refused = [](std::vector<std::byte> bytes) { return !decode_frame(bytes).ok(); };
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_TRUE(refused({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)})) << size;
  }
  auto longer = good;
  longer.resize(good.size() + 8);
  EXPECT_TRUE(refused(longer)) << "a word too many";
  auto segments = good;
  segments[0] = std::byte{1};
  EXPECT_TRUE(refused(segments)) << "two segments";
  auto words = good;
  words[4] = static_cast<std::byte>(std::to_integer<int>(words[4]) - 1);
  EXPECT_TRUE(refused(words)) << "a wrong count of words";
  EXPECT_TRUE(refused(std::vector<std::byte>(16))) << "a message of nothing but zeros says it has no words";
  std::vector<std::byte> huge(kMaxFrameBytes + 8);
  const std::uint32_t table[2] = {0, static_cast<std::uint32_t>(huge.size() / 8 - 1)};
  std::memcpy(huge.data(), table, sizeof table);
  EXPECT_TRUE(refused(huge)) << "beyond kMaxFrameBytes";
}

TEST(Frame, UnknownUnionMemberIsRefused) {
  auto bytes = encoded(Commit{ExchangeKind::kDirect, Coding::kRaw, kMaxWindowBytes, kLargeChunkParameters});
  // The root's data section follows the table and the root pointer: run, view, step, then the union's u16.
  constexpr std::size_t kUnionOffset = 8 + 8 + 16;
  ASSERT_EQ(std::to_integer<int>(bytes[kUnionOffset]), 5);
  bytes[kUnionOffset] = std::byte{15};
  EXPECT_FALSE(decode_frame(bytes).ok());
  bytes[kUnionOffset + 1] = std::byte{0xff};
  EXPECT_FALSE(decode_frame(bytes).ok());
}

// Flips bits, and sets words to values that are hard on pointers. The copy has exactly the frame's size, so that a
// sanitizer sees a read past it.
TEST(Frame, MutatedFramesNeverThrowNorAliasOutside) {
  constexpr int kMutations = 4000;
  const std::uint64_t seed = fresh_seed();
  TG_SEED(seed);
  std::mt19937_64 random(seed);
  std::size_t accepted = 0;
  std::size_t refused = 0;
  for (const FrameBody& body : sample_bodies()) {
    const auto good = encoded(body);
    for (int i = 0; i < kMutations; ++i) {
      const std::size_t offset = random() % 8;
      const auto room = std::make_unique<std::byte[]>(good.size() + offset);
      std::memcpy(room.get() + offset, good.data(), good.size());
      const std::span<std::byte> input(room.get() + offset, good.size());
      for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
        if (random() % 4 == 0) {
          const std::uint64_t word = random() % 2 == 0 ? random() : ~std::uint64_t{0} >> random() % 64;
          std::memcpy(input.data() + random() % (good.size() / 8) * 8, &word, sizeof word);
        } else {
          input[random() % good.size()] ^= static_cast<std::byte>(1u << random() % 8);
        }
      }
      const Result<Frame> frame = decode_frame(input);
      ++(frame.ok() ? accepted : refused);
      if (!frame.ok()) continue;
      if (const auto* chunk = std::get_if<Chunk>(&frame->body)) {
        ASSERT_TRUE(inside(chunk->payload, input));
      }
      if (const auto* step = std::get_if<StepFrame>(&frame->body)) {
        for (const float scaler : step->scalers) ASSERT_TRUE(std::isfinite(scaler) && scaler >= 0);
        for (const float statistic : step->statistics) ASSERT_TRUE(std::isfinite(statistic));
      }
    }
  }
  EXPECT_GT(accepted, 0u);
  EXPECT_GT(refused, accepted / 100) << "mutations that are never refused test nothing";
}

}  // namespace
}  // namespace tg::schema
