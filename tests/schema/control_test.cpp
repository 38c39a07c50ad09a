// Control messages: round trips, bounds, mutations.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "schema/control/control.h"
#include "tests/schema/samples.h"
#include "tests/seeds.h"

namespace tg::schema {
namespace {

// Encoding is a function of every field, so equal bytes mean equal values, once decoding reads each of them.
TEST(Control, EveryRequestComesBackAsItWas) {
  for (const Request& request : sample_requests()) {
    SCOPED_TRACE(request.id);
    const std::string bytes = encode_request(request);
    const Result<Request> decoded = decode_request(bytes_of(bytes));
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_EQ(decoded->id, request.id);
    EXPECT_EQ(decoded->body.index(), request.body.index());
    EXPECT_EQ(encode_request(*decoded), bytes);
  }
  EXPECT_EQ(sample_requests().size(), std::variant_size_v<RequestBody>);
}

TEST(Control, EveryReplyComesBackAsItWas) {
  for (const Reply& reply : sample_replies()) {
    SCOPED_TRACE(reply.id);
    const std::string bytes = encode_reply(reply);
    const Result<Reply> decoded = decode_reply(bytes_of(bytes));
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_EQ(decoded->id, reply.id);
    EXPECT_EQ(decoded->body.index(), reply.body.index());
    EXPECT_EQ(encode_reply(*decoded), bytes);
  }
  EXPECT_EQ(sample_replies().size(), std::variant_size_v<ReplyBody>);
}

TEST(Control, FieldsKeepTheirPlaces) {
  const Reply sample = sample_replies()[1];
  const Result<Reply> decoded = decode_reply(bytes_of(encode_reply(sample)));
  ASSERT_TRUE(decoded.ok());
  const auto& mesh = std::get<MeshStatus>(decoded->body);
  EXPECT_TRUE(mesh.insecure);
  EXPECT_EQ(mesh.nodes[1].state, NodeState::kUnreachable);
  EXPECT_EQ(mesh.nodes[1].problem, "nothing answers");
  const ComputeStatus& compute = mesh.nodes[0].compute;
  EXPECT_EQ(compute.engine + ", " + compute.device + ", " + compute.math, "cuda, NVIDIA H100 (device 0), tf32");
  EXPECT_EQ(compute.free_bytes, 70u);
  EXPECT_EQ(compute.total_bytes, 80u);
  EXPECT_EQ(compute.problem + ", " + compute.why_cpu, "it is lost, no reason");
  EXPECT_TRUE(compute.module_missing);
  EXPECT_EQ(mesh.nodes[1].compute.engine, "");
  const RunStatus& run = mesh.runs[0];
  EXPECT_EQ(run.state, RunState::kFailed);
  EXPECT_EQ(run.reason, "node-c was lost in reduce");
  EXPECT_EQ(run.since_ms, 1'700'000'000'123);
  EXPECT_EQ(run.loss, 0.25);
  EXPECT_EQ(run.evaluation_accuracy, 0.9875);
  EXPECT_EQ(run.evaluation_accuracy_5, 0.999);
  EXPECT_EQ(run.code_bits_per_parameter, 0.51);
  EXPECT_EQ(run.sent_bits_per_parameter, 1.75);
  EXPECT_EQ(run.zeros, 0.93);
  EXPECT_EQ(run.digest, 0xfedcba9876543210);
  EXPECT_EQ(run.members[1].state, RunState::kRunning);
  EXPECT_EQ(run.members[1].digest_step, 11u);
  EXPECT_EQ(run.members[1].phase, Phase::kSave);
  EXPECT_EQ(run.members[1].data_wait_share, 0.25);
  const auto start_reply = decode_reply(bytes_of(encode_reply(sample_replies()[2])));
  const auto& start = std::get<StartReply>(start_reply->body);
  EXPECT_EQ(start.compute_seconds, 0.004);
  EXPECT_EQ(start.coding, "raw");
  EXPECT_EQ(start.link_mbps, 941.5);
  EXPECT_EQ(start.predicted.step, sample_outcome(1).step);
  EXPECT_EQ(start.predicted.speed_up, sample_outcome(1).speed_up);
  EXPECT_EQ(start.measured_ms, 1'700'000'000'123);
  EXPECT_EQ(start.unpredicted, "no peer answered");
  EXPECT_EQ(uneven_shares(start.shares), "node-a 48, node-b 16");
  EXPECT_EQ(run.members[1].samples, 48u);
  EXPECT_EQ(start.memory_bytes, 40'000'000u);
}

TEST(Control, LargeMessagesAreOneSegment) {
  const Reply slice{9, SliceReply{"first", "node-a", kFileSliceBytes, std::string(kFileSliceBytes, 'x'), true}};
  const std::string bytes = encode_reply(slice);
  EXPECT_LE(bytes.size(), kMostControlBytes);
  const Result<Reply> decoded = decode_reply(bytes_of(bytes));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(std::get<SliceReply>(decoded->body).data.size(), kFileSliceBytes);
}

TEST(Control, StatusTooLargeForAMessageLosesItsOldestRuns) {
  MeshStatus mesh{"node-a", "tgd", false, {}, {}};
  for (std::size_t i = 0; i < kMostRunsKept; ++i) {
    RunStatus run;
    run.id = "run-" + std::to_string(i);
    run.reason = std::string(kMostReasonBytes, 'r');
    run.members.resize(kMostMembers);
    for (MemberStatus& member : run.members) member.node = std::string(kMostNameBytes, 'n');
    mesh.runs.push_back(run);
  }
  const std::string bytes = encode_reply({1, mesh});
  EXPECT_LE(bytes.size(), kMostControlBytes);
  const Result<Reply> decoded = decode_reply(bytes_of(bytes));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  const auto& runs = std::get<MeshStatus>(decoded->body).runs;
  ASSERT_GT(runs.size(), 0u);
  EXPECT_LT(runs.size(), kMostRunsKept);
  EXPECT_EQ(runs.front().id, "run-0");
}

TEST(Control, FieldsBeyondTheirBoundsAreRefused) {
  const auto refused = [](const RequestBody& body) {
    return !decode_request(bytes_of(encode_request({1, body}))).ok();
  };
  EXPECT_TRUE(refused(StatusRequest{"a b", false}));
  EXPECT_TRUE(refused(StopRequest{""}));
  EXPECT_TRUE(refused(StopRequest{"../x"}));
  EXPECT_TRUE(refused(StartRequest{std::string(kMostSpecBytes + 1, 'a'), "", false}));
  EXPECT_TRUE(refused(StartRequest{"", "a/b", false}));
  EXPECT_TRUE(refused(LogsRequest{"a", "NODE", 0}));
  EXPECT_TRUE(refused(FetchRequest{"a", "", "../run.json", 0}));
  EXPECT_TRUE(refused(FetchRequest{"a", "", ".hidden", 0}));
  EXPECT_TRUE(refused(FetchRequest{"a", "", "", 0}));
  EXPECT_TRUE(refused(Beat{"node-a", 1, "", static_cast<Phase>(9), 0, 0}));
  EXPECT_TRUE(refused(Beat{"", 1, "", Phase::kIdle, 0, 0}));
  EXPECT_FALSE(refused(StatusRequest{"", false}));
  EXPECT_FALSE(refused(Beat{"node-a", 1, "", Phase::kSave, 0, 0}));
}

TEST(Control, StatesHaveNames) {
  for (int i = 0; i <= static_cast<int>(RunState::kFailed); ++i) {
    const auto state = static_cast<RunState>(i);
    const Result<RunState> parsed = parse_run_state(to_word(state));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, state);
  }
  EXPECT_EQ(*parse_run_state("completed"), RunState::kCompleted);
  EXPECT_FALSE(parse_run_state("done").ok());
  EXPECT_FALSE(is_final(RunState::kStopping));
  EXPECT_TRUE(is_final(RunState::kStopped) && is_final(RunState::kCompleted) && is_final(RunState::kFailed));
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
