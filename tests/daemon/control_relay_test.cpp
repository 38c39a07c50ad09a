// logs and fetch read the asked node's files, and those of other nodes by relaying the request.
#include <filesystem>

#include "control_fixture.h"
#include "run_samples.h"
#include "schema/limits.h"
#include "tests/elapsed.h"

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

TEST_F(ControlRelay, TheLogOfEveryNodeThroughEveryNode) {
  for (const Seat asked : peers_.places()) {
    TestClient client(control_port(asked));
    for (const Seat named : peers_.places()) {
      const auto slice = client.ask<SliceReply>(LogsRequest{"run", peers_[named].name, 2});
      EXPECT_EQ(slice.data, "line of " + peers_[named].name + "\n");
      EXPECT_EQ(slice.node, peers_[named].name);
      EXPECT_EQ(slice.run_id, "run-1");
      EXPECT_TRUE(slice.final);
    }
    EXPECT_EQ(client.ask<SliceReply>(LogsRequest{"run-1", "", 0}).node, peers_[asked].name);
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
    const auto slice = client.ask<SliceReply>(FetchRequest{"run-1", "node-c", "model.safetensors", fetched.size()});
    EXPECT_EQ(slice.total_bytes, model.size());
    ASSERT_FALSE(slice.data.empty());
    fetched += slice.data;
    final = slice.final;
  }
  EXPECT_EQ(replies, 3);
  EXPECT_EQ(fetched, model);
}

TEST_F(ControlRelay, ErrorsOfTheOtherNodeComeThrough) {
  const Error no_file = ask<Error>(kA, FetchRequest{"run-1", "node-b", "model.safetensors", 0});
  EXPECT_EQ(no_file.kind, ErrorKind::kNotFound);
  EXPECT_NE(no_file.message.find("node-b has no model.safetensors"), std::string::npos) << no_file.message;
  const Error no_run = ask<Error>(kA, LogsRequest{"nonsense", "node-b", 0});
  EXPECT_NE(no_run.message.find("no run 'nonsense' on node-b"), std::string::npos) << no_run.message;
}

TEST_F(ControlRelay, AnUnknownNodeIsRefusedWithTheKnownNames) {
  const Error error = ask<Error>(kA, LogsRequest{"run-1", "node-x", 0});
  EXPECT_EQ(error.kind, ErrorKind::kNotFound);
  EXPECT_EQ(error.message, "no node 'node-x'; the nodes are node-a, node-b, node-c");
}

TEST_F(ControlRelay, ADeadNodeIsAnErrorWithinTheDeadline) {
  node(kC).stop();
  const Elapsed elapsed;
  const Error error = ask<Error>(kA, FetchRequest{"run-1", "node-c", "run.json", 0});
  EXPECT_LT(elapsed.ms(), static_cast<std::uint64_t>(schema::kControlReplyMs));
  EXPECT_EQ(error.kind, ErrorKind::kUnreachable);
  EXPECT_EQ(error.message, "node-c does not answer");
}

TEST_F(ControlRelay, ARelayWaitsForARestartingNode) {
  node(kC).stop();
  TestClient client(control_port(kA));
  client.send({1, FetchRequest{"run-1", "node-c", "run.json", 0}});
  ASSERT_TRUE(node(kC).start().ok());
  EXPECT_EQ(client.receive_reply<SliceReply>(1).node, "node-c");
}

}  // namespace
}  // namespace tg::tests
