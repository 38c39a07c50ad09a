// logs and fetch: the asked node's own files, and other nodes' on the client's behalf.
#include <filesystem>

#include "control_fixture.h"
#include "run_samples.h"
#include "schema/limits.h"

namespace tg::tests {
namespace {

using schema::FetchRequest;
using schema::LogsRequest;
using schema::RunState;
using schema::SliceReply;

class ControlRelay : public ControlMesh {
 protected:
  void SetUp() override {
    start_mesh();
    for (const Seat seat : peers_.places()) {
      const std::string& name = peers_[seat].name;
      ASSERT_TRUE(node(seat).store().write(sample_record("run-1", name, RunState::kCompleted)).ok());
      write_text(node(seat).run_file("run-1", "log.txt"), "a line of " + name + "\n");
    }
  }
};

const Error* error_of(const schema::ReplyBody& body) { return std::get_if<Error>(&body); }

TEST_F(ControlRelay, TheLogOfEveryNodeThroughEveryNode) {
  for (const Seat asked : peers_.places()) {
    TestClient client(control_port(asked));
    for (const Seat named : peers_.places()) {
      const schema::ReplyBody body = client.ask(LogsRequest{"run", peers_[named].name, 2});
      ASSERT_TRUE(std::holds_alternative<SliceReply>(body)) << error_of(body)->message;
      const auto& slice = std::get<SliceReply>(body);
      EXPECT_EQ(slice.data, "line of " + peers_[named].name + "\n");
      EXPECT_EQ(slice.node, peers_[named].name);
      EXPECT_EQ(slice.run_id, "run-1");
      EXPECT_TRUE(slice.final);
    }
    const schema::ReplyBody own = client.ask(LogsRequest{"run-1", "", 0});
    ASSERT_TRUE(std::holds_alternative<SliceReply>(own));
    EXPECT_EQ(std::get<SliceReply>(own).node, peers_[asked].name);
  }
}

TEST_F(ControlRelay, AFileLargerThanOneReply) {
  std::string model;
  while (model.size() < 2 * schema::kFileSliceBytes + 1234) model += std::to_string(model.size());
  write_text(node(kC).run_file("run-1", "model.safetensors"), model);
  TestClient client(control_port(kA));
  std::string fetched;
  int replies = 0;
  for (bool final = false; !final; ++replies) {
    const schema::ReplyBody body = client.ask(FetchRequest{"run-1", "node-c", "model.safetensors", fetched.size()});
    ASSERT_TRUE(std::holds_alternative<SliceReply>(body)) << error_of(body)->message;
    const auto& slice = std::get<SliceReply>(body);
    EXPECT_EQ(slice.total_bytes, model.size());
    ASSERT_FALSE(slice.data.empty());
    fetched += slice.data;
    final = slice.final;
  }
  EXPECT_EQ(replies, 3);
  EXPECT_EQ(fetched, model);
}

TEST_F(ControlRelay, ErrorsOfTheOtherNodeComeThrough) {
  TestClient client(control_port(kA));
  schema::ReplyBody body = client.ask(FetchRequest{"run-1", "node-b", "model.safetensors", 0});
  ASSERT_NE(error_of(body), nullptr);
  EXPECT_EQ(error_of(body)->kind, ErrorKind::kNotFound);
  EXPECT_NE(error_of(body)->message.find("node-b has no model.safetensors"), std::string::npos)
      << error_of(body)->message;
  body = client.ask(LogsRequest{"nonsense", "node-b", 0});
  ASSERT_NE(error_of(body), nullptr);
  EXPECT_NE(error_of(body)->message.find("no run 'nonsense' on node-b"), std::string::npos);
}

TEST_F(ControlRelay, AnUnknownNodeIsNamedWithThoseThatAre) {
  TestClient client(control_port(kA));
  const schema::ReplyBody body = client.ask(LogsRequest{"run-1", "node-x", 0});
  ASSERT_NE(error_of(body), nullptr);
  EXPECT_EQ(error_of(body)->kind, ErrorKind::kNotFound);
  EXPECT_EQ(error_of(body)->message, "no node 'node-x'; the nodes are node-a, node-b, node-c");
}

TEST_F(ControlRelay, ADeadNodeIsAnErrorWithinTheDeadline) {
  node(kC).stop();
  TestClient client(control_port(kA));
  const std::uint64_t asked_ms = now_ms();
  const schema::ReplyBody body = client.ask(FetchRequest{"run-1", "node-c", "run.json", 0});
  EXPECT_LT(now_ms() - asked_ms, static_cast<std::uint64_t>(schema::kControlReplyMs));
  ASSERT_NE(error_of(body), nullptr);
  EXPECT_EQ(error_of(body)->kind, ErrorKind::kUnreachable);
  EXPECT_EQ(error_of(body)->message, "node-c does not answer");
}

TEST_F(ControlRelay, ANodeThatIsJustComingBackIsWaitedFor) {
  node(kC).stop();
  TestClient client(control_port(kA));
  client.send({1, FetchRequest{"run-1", "node-c", "run.json", 0}});
  ASSERT_TRUE(node(kC).start().ok());
  const auto reply = client.receive();
  ASSERT_TRUE(reply.has_value());
  ASSERT_TRUE(std::holds_alternative<SliceReply>(reply->body)) << error_of(reply->body)->message;
  EXPECT_EQ(std::get<SliceReply>(reply->body).node, "node-c");
}

}  // namespace
}  // namespace tg::tests
