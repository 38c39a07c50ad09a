// Control messages: bounds and mutations. described_test.cpp has the round trips.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "schema/control/control.h"
#include "tests/schema/samples.h"
#include "tests/seeds.h"

namespace tg::schema {
namespace {

TEST(Control, UnevenSharesHaveAText) {
  EXPECT_EQ(uneven_shares({{"node-a", 48}, {"node-b", 16}}), "node-a 48, node-b 16");
  EXPECT_EQ(uneven_shares({{"node-a", 33}, {"node-b", 32}}), "");
}

TEST(Control, LargeMessagesAreOneSegment) {
  const Reply slice{9, SliceReply{"first", "node-a", kFileSliceBytes, std::string(kFileSliceBytes, 'x'), true}};
  const std::string bytes = encode_reply(slice);
  EXPECT_LE(bytes.size(), kMaxControlBytes);
  const Result<Reply> decoded = decode_reply(bytes_of(bytes));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(std::get<SliceReply>(decoded->body).data.size(), kFileSliceBytes);
}

TEST(Control, StatusTooLargeForAMessageLosesItsOldestRuns) {
  MeshStatus mesh{"node-a", "tgd", false, {}, {}};
  for (std::size_t i = 0; i < kMaxRunsKept; ++i) {
    RunStatus run;
    run.id = "run-" + std::to_string(i);
    run.reason = std::string(kMaxReasonBytes, 'r');
    run.members.resize(kMaxMembers);
    for (MemberStatus& member : run.members) member.node = std::string(kMaxNameBytes, 'n');
    mesh.runs.push_back(run);
  }
  const std::string bytes = encode_reply({1, mesh});
  EXPECT_LE(bytes.size(), kMaxControlBytes);
  const Result<Reply> decoded = decode_reply(bytes_of(bytes));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  const auto& runs = std::get<MeshStatus>(decoded->body).runs;
  ASSERT_GT(runs.size(), 0u);
  EXPECT_LT(runs.size(), kMaxRunsKept);
  EXPECT_EQ(runs.front().id, "run-0");
}

TEST(Control, FieldsOutOfBoundsAreRefused) {
  const auto refused = [](const RequestBody& body) {
    return !decode_request(bytes_of(encode_request({1, body}))).ok();
  };
  EXPECT_TRUE(refused(StatusRequest{"a b", false}));
  EXPECT_TRUE(refused(StopRequest{""}));
  EXPECT_TRUE(refused(StopRequest{"../x"}));
  EXPECT_TRUE(refused(StartRequest{std::string(kMaxSpecBytes + 1, 'a'), "", false}));
  EXPECT_TRUE(refused(StartRequest{"", "a/b", false}));
  EXPECT_TRUE(refused(ResumeRequest{"", "", true, 0, false}));
  EXPECT_TRUE(refused(ResumeRequest{"a", std::string(kMaxSpecBytes + 1, 'a'), true, 0, false}));
  EXPECT_FALSE(refused(ResumeRequest{"a", "", true, 0, false}));
  EXPECT_TRUE(refused(LogsRequest{"a", "NODE", 0}));
  EXPECT_TRUE(refused(FetchRequest{"a", "", "../run.json", 0}));
  EXPECT_TRUE(refused(FetchRequest{"a", "", ".hidden", 0}));
  EXPECT_TRUE(refused(FetchRequest{"a", "", "", 0}));
  EXPECT_TRUE(refused(Heartbeat{"node-a", 1, "", static_cast<Phase>(9), 0, 0}));
  EXPECT_TRUE(refused(Heartbeat{"", 1, "", Phase::kIdle, 0, 0}));
  EXPECT_FALSE(refused(StatusRequest{"", false}));
  EXPECT_FALSE(refused(Heartbeat{"node-a", 1, "", Phase::kSave, 0, 0}));
}

TEST(Control, StatesHaveNames) {
  for (int i = 0; i <= static_cast<int>(RunState::kPaused); ++i) {
    const auto state = static_cast<RunState>(i);
    const Result<RunState> parsed = parse_run_state(to_word(state));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, state);
  }
  EXPECT_EQ(*parse_run_state("completed"), RunState::kCompleted);
  EXPECT_FALSE(parse_run_state("done").ok());
  EXPECT_FALSE(is_final(RunState::kStopping));
  EXPECT_TRUE(is_final(RunState::kStopped) && is_final(RunState::kCompleted) && is_final(RunState::kFailed));
  EXPECT_FALSE(is_final(RunState::kInterrupted) || is_final(RunState::kPaused) || has_ended(RunState::kPaused));
  EXPECT_TRUE(has_ended(RunState::kInterrupted) && has_ended(RunState::kFailed));
  EXPECT_TRUE(is_authoritative(RunState::kStopped) && is_authoritative(RunState::kCompleted));
  EXPECT_FALSE(is_authoritative(RunState::kFailed) || is_authoritative(RunState::kInterrupted) ||
               is_authoritative(RunState::kRunning));
  EXPECT_STREQ(to_word(Phase::kScalerWait), "scaler wait");
  EXPECT_STREQ(to_word(Phase::kSave), "save");
}

template <class Decode>
void mutate(const std::string& good, std::mt19937_64& random, Decode decode) {
  constexpr int kMutations = 2000;
  for (int i = 0; i < kMutations; ++i) {
    const std::size_t offset = random() % 8;
    const auto room = std::make_unique<std::byte[]>(good.size() + offset);
    std::memcpy(room.get() + offset, good.data(), good.size());
    const std::span<std::byte> input(room.get() + offset, good.size());
    for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      if (random() % 4 == 0) {
        const std::uint64_t word = random();
        std::memcpy(input.data() + random() % (good.size() / 8) * 8, &word, sizeof word);
      } else {
        input[random() % good.size()] ^= static_cast<std::byte>(1u << random() % 8);
      }
    }
    decode(input);
  }
}

TEST(Control, MutatedMessagesNeverThrow) {
  const std::uint64_t seed = fresh_seed();
  TG_SEED(seed);
  std::mt19937_64 random(seed);
  std::size_t refused = 0;
  for (const Request& request : sample_requests()) {
    mutate(encode_request(request), random, [&](auto input) { refused += decode_request(input).ok() ? 0 : 1; });
  }
  for (const Reply& reply : sample_replies()) {
    mutate(encode_reply(reply), random, [&](auto input) { refused += decode_reply(input).ok() ? 0 : 1; });
  }
  EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace tg::schema
