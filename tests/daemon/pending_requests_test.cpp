#include "daemon/control/pending_requests.h"

#include <gtest/gtest.h>

#include "schema/limits.h"

namespace tg::daemon {
namespace {

using schema::MeshStatus;
using schema::Reply;
using schema::SliceReply;

constexpr Seat kB{1}, kC{2};

MeshStatus part(const std::string& node) {
  MeshStatus status;
  status.node = node;
  for (const char* name : {"node-a", "node-b", "node-c"})
    status.nodes.push_back({name, "", schema::NodeState::kUnreachable, ""});
  return status;
}

std::string states(const Answer& answer) {
  std::string text;
  for (const auto& node : std::get<MeshStatus>(answer.body).nodes) text += std::string(to_word(node.state)) + " ";
  return text;
}

class PendingRequestsTest : public testing::Test {
 protected:
  std::uint64_t gather() { return *requests.gather({"client", 7}, {}, part("node-a"), {kB, kC}, 1000); }
  PendingRequests requests{{"node-a", "node-b", "node-c"}};
};

TEST_F(PendingRequestsTest, ADiskThatDoesNotAnswerIsNamedInTime) {
  const auto token = requests.disk_call({"one", 1}, 1000, "the disk is late");
  EXPECT_TRUE(requests.take_expired(1000 + kDiskReplyMs - 1).empty());
  const std::vector<Answer> late = requests.take_expired(1000 + kDiskReplyMs);
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(std::get<Error>(late[0].body).message, "the disk is late");
  EXPECT_FALSE(requests.on_node_reply(*token, schema::DoneReply{}).has_value());
}

TEST_F(PendingRequestsTest, ACallIsAnsweredOnceAndOnlyByItsToken) {
  const auto first = requests.call({"one", 1}, 0), second = requests.call({"two", 2}, 0);
  EXPECT_FALSE(requests.on_node_reply(*second + 1, Error{}).has_value());
  const auto answer = requests.on_node_reply(*second, schema::StopReply{"r"});
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->client.identity, "two");
  EXPECT_EQ(answer->client.request_id, 2u);
  EXPECT_FALSE(requests.on_node_reply(*second, Error{}).has_value());
  EXPECT_TRUE(requests.on_node_reply(*first, Error{}).has_value());
  EXPECT_EQ(requests.pending(), 0u);
}

TEST_F(PendingRequestsTest, AGatherEndsWithItsLastPart) {
  const std::uint64_t token = gather();
  EXPECT_FALSE(requests.on_peer_reply(kC, {token, part("node-c")}).has_value());
  EXPECT_FALSE(requests.on_peer_reply(kC, {token, part("node-c")}).has_value()) << "twice is once";
  const auto answer = requests.on_peer_reply(kB, {token, part("node-b")});
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(states(*answer), "unreachable up up ");
  EXPECT_EQ(requests.pending(), 0u);
}

TEST_F(PendingRequestsTest, AGatherEndsAtItsDeadlineWithWhatItHas) {
  const std::uint64_t token = gather();
  EXPECT_FALSE(requests.on_peer_reply(kC, {token, part("node-c")}).has_value());
  EXPECT_TRUE(requests.take_expired(1000 + schema::kPeerStatusMs - 1).empty());
  const auto answers = requests.take_expired(1000 + schema::kPeerStatusMs);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(states(answers[0]), "unreachable unreachable up ");
  EXPECT_FALSE(requests.on_peer_reply(kB, {token, part("node-b")}).has_value()) << "too late";
}

TEST_F(PendingRequestsTest, APeerThatCannotBeAskedIsSkipped) {
  const std::uint64_t token = gather();
  EXPECT_FALSE(requests.on_peer_unavailable(token, kB).has_value());
  EXPECT_FALSE(requests.on_peer_unavailable(token, kB).has_value());
  const auto answer = requests.on_peer_reply(kC, {token, part("node-c")});
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(states(*answer), "unreachable unreachable up ");
}

TEST_F(PendingRequestsTest, AnAnswerUnderAnotherNameIsIgnored) {
  const std::uint64_t token = gather();
  EXPECT_FALSE(requests.on_peer_reply(kB, {token, part("node-c")}).has_value());
  const auto answer = requests.on_peer_reply(kC, {token, part("node-c")});
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(states(*answer), "unreachable unreachable up ");
}

TEST_F(PendingRequestsTest, ARelayAcceptsOnlyItsPeersAnswer) {
  const auto token = requests.relay({"client", 9}, kB, schema::LogsRequest{"r", "", 0}, 1000);
  ASSERT_EQ(requests.unsent_relays().size(), 1u);
  EXPECT_EQ(requests.unsent_relays()[0].peer, kB);
  EXPECT_EQ(requests.unsent_relays()[0].request.id, *token);
  requests.mark_sent(*token);
  EXPECT_TRUE(requests.unsent_relays().empty());
  EXPECT_FALSE(requests.on_peer_reply(kC, {*token, SliceReply{}}).has_value());
  EXPECT_FALSE(requests.on_peer_reply(kB, {*token, part("node-b")}).has_value()) << "not what was asked for";
  EXPECT_FALSE(requests.on_node_reply(*token, Error{}).has_value());
  SliceReply slice;
  slice.data = "line\n";
  const auto answer = requests.on_peer_reply(kB, {*token, slice});
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(std::get<SliceReply>(answer->body).data, "line\n");
  EXPECT_EQ(answer->client.request_id, 9u);
  // A stop is relayed to another node too.
  const auto stop = requests.relay({"client", 10}, kB, schema::StopRequest{"r"}, 1000);
  const auto stopped = requests.on_peer_reply(kB, {*stop, schema::StopReply{"r", schema::RunState::kStopping}});
  ASSERT_TRUE(stopped.has_value());
  EXPECT_TRUE(std::holds_alternative<schema::StopReply>(stopped->body));
}

TEST_F(PendingRequestsTest, AResumeElsewhereTakesAsLongAsOneHere) {
  const auto resume = requests.relay({"client", 9}, kB, schema::ResumeRequest{"r", "", true, 0, false}, 1000);
  EXPECT_TRUE(requests.take_expired(1000 + schema::kRelayReplyMs).empty());
  EXPECT_TRUE(requests.on_peer_reply(kB, {*resume, schema::StartReply()}).has_value());
}

TEST_F(PendingRequestsTest, ARelayThatIsNotAnsweredNamesItsNode) {
  ASSERT_TRUE(requests.relay({"client", 9}, kC, schema::LogsRequest{"r", "", 0}, 1000));
  EXPECT_TRUE(requests.take_expired(1000 + schema::kRelayReplyMs - 1).empty());
  const auto answers = requests.take_expired(1000 + schema::kRelayReplyMs);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(std::get<Error>(answers[0].body).message, "node-c does not answer");
  EXPECT_EQ(std::get<Error>(answers[0].body).kind, ErrorKind::kUnreachable);
}

TEST_F(PendingRequestsTest, TooManyAreRefused) {
  for (std::size_t i = 0; i < schema::kMaxPendingRequests; ++i) ASSERT_TRUE(requests.call({"client", i}, 0));
  EXPECT_FALSE(requests.call({"client", 1}, 0));
  EXPECT_FALSE(requests.gather({"client", 1}, {}, part("node-a"), {kB}, 0));
  EXPECT_FALSE(requests.relay({"client", 1}, kB, schema::LogsRequest{}, 0));
  EXPECT_EQ(requests.take_expired(schema::kMaxCallMs).size(), schema::kMaxPendingRequests);
  EXPECT_TRUE(requests.call({"client", 1}, 0));
}

// Repeated status requests to a node with a long history while one peer is silent.
TEST_F(PendingRequestsTest, GathersAreBoundedAndEachIsAnswered) {
  MeshStatus full = part("node-a");
  full.runs.assign(schema::kMaxRunsKept, {});
  for (schema::RunStatus& run : full.runs) run.members.assign(schema::kMaxMembers, {});
  std::vector<std::uint64_t> tokens;
  std::size_t refused = 0;
  while (requests.pending() + refused < schema::kMaxPendingRequests) {
    const auto token = requests.gather({"client", 1}, {}, full, {kB, kC}, 0);
    token ? tokens.push_back(*token) : void(++refused);
    ASSERT_LE(requests.gathered_bytes(), kMaxGatheredBytes);
  }
  EXPECT_GT(refused, 0u) << "this test asks for too little";
  EXPECT_FALSE(tokens.empty());
  EXPECT_TRUE(requests.call({"other", 1}, 0)) << "others are still asked";
  EXPECT_EQ(requests.take_expired(schema::kPeerStatusMs).size(), tokens.size());
  EXPECT_EQ(requests.gathered_bytes(), 0u);
}

TEST_F(PendingRequestsTest, APartBeyondTheBoundIsLeftOut) {
  std::vector<std::uint64_t> tokens;
  const std::size_t count = 2 * kMaxGatheredBytes / schema::kMaxControlBytes;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(gather());
  MeshStatus of_c = part("node-c");
  of_c.runs.emplace_back().id = "run-1";
  for (const std::uint64_t token : tokens) {
    EXPECT_FALSE(requests.on_peer_reply(kC, {token, of_c}, schema::kMaxControlBytes).has_value());
    ASSERT_LE(requests.gathered_bytes(), kMaxGatheredBytes);
  }
  const auto last = requests.on_peer_reply(kB, {tokens.back(), part("node-b")});
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(states(*last), "unreachable up unreachable ");
  EXPECT_TRUE(std::get<MeshStatus>(last->body).runs.empty());
  const auto first = requests.on_peer_reply(kB, {tokens.front(), part("node-b")});
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(std::get<MeshStatus>(first->body).runs.size(), 1u);
}

TEST_F(PendingRequestsTest, CancellingAnswersAllClients) {
  gather();
  ASSERT_TRUE(requests.call({"other", 1}, 0));
  const auto answers = requests.cancel_all("node-a is shutting down");
  ASSERT_EQ(answers.size(), 2u);
  for (const Answer& answer : answers) EXPECT_EQ(std::get<Error>(answer.body).message, "node-a is shutting down");
  EXPECT_EQ(requests.pending(), 0u);
}

class SurveyTest : public PendingRequestsTest {
 protected:
  std::uint64_t survey() {
    return *requests.survey({"client", 7}, {Per<Seat, std::string>{"node-a", "node-b", "node-c"}, Seat(0), 3, 0, {}},
                            1000);
  }
  static schema::Examination of(const std::string& node) {
    schema::Examination one;
    one.node = node;
    return one;
  }
  static std::string not_examined(const Answer& answer) {
    std::string nodes;
    for (const schema::Finding& one : std::get<schema::Diagnosis>(answer.body).findings)
      if (one.check == schema::Check::kNodes && one.verdict != schema::Verdict::kPass)
        nodes += one.node + ": " + one.seen + " ";
    return nodes;
  }
};

TEST_F(SurveyTest, EndsWithTheLastPartInAnyOrder) {
  const std::uint64_t token = survey();
  EXPECT_FALSE(requests.on_peer_reply(kC, {token, of("node-c")}).has_value());
  EXPECT_FALSE(requests.on_node_reply(token, of("node-a")).has_value());
  EXPECT_FALSE(requests.on_node_reply(token, of("node-a")).has_value());
  EXPECT_FALSE(requests.on_peer_reply(kC, {token, of("node-c")}).has_value());
  const auto answer = requests.on_peer_reply(kB, {token, of("node-b")});
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->client.request_id, 7u);
  EXPECT_EQ(not_examined(*answer), "");
  EXPECT_EQ(requests.pending(), 0u);
}

TEST_F(SurveyTest, AnUnexaminedNodeHasItsReason) {
  const std::uint64_t token = survey();
  EXPECT_FALSE(requests.on_peer_unavailable(token, kB).has_value());
  EXPECT_FALSE(
      requests.on_peer_reply(kC, {token, Error{ErrorKind::kRefused, "node-c is being examined already"}}).has_value());
  const auto answer = requests.on_node_reply(token, of("node-a"));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(not_examined(*answer),
            "node-b: not examined: its control port cannot be reached node-c: not examined: node-c is being examined "
            "already ");
}

TEST_F(SurveyTest, AnswersOfAnotherNodeAndSilence) {
  const std::uint64_t token = survey();
  EXPECT_FALSE(requests.on_node_reply(token, of("node-a")).has_value());
  EXPECT_FALSE(requests.on_peer_reply(kB, {token, of("node-c")}).has_value());
  const auto most =
      static_cast<std::uint64_t>(schema::examine_ms(3, 3) + schema::kExamineGraceMs + schema::kPeerStatusMs);
  EXPECT_TRUE(requests.take_expired(1000 + most - 1).empty());
  const std::vector<Answer> late = requests.take_expired(1000 + most);
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(not_examined(late[0]),
            "node-b: not examined: another node answers at its address node-c: not examined: it does not answer ");
}

TEST_F(SurveyTest, TheAskedNodesRefusalEndsIt) {
  const std::uint64_t token = survey();
  const auto answer = requests.on_node_reply(token, Error{ErrorKind::kRefused, "node-a is being examined already"});
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(std::holds_alternative<Error>(answer->body));
  EXPECT_EQ(requests.pending(), 0u);
}

}  // namespace
}  // namespace tg::daemon
