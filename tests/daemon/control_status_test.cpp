// version and status over real sockets: three nodes' reports become one answer, within its deadline even if nodes are
// silent.
#include "control_fixture.h"
#include "run_samples.h"
#include "schema/limits.h"
#include "tests/elapsed.h"

namespace tg::tests {
namespace {

using schema::MeshStatus;
using schema::RunState;
using schema::StatusRequest;

class ControlStatus : public ControlMesh {
 protected:
  void write_everywhere(const std::string& id, RunState state = RunState::kRunning) {
    for (const Seat seat : peers_.places()) {
      ASSERT_TRUE(node(seat).store().write(sample_record(id, peers_[seat].name, state)).ok());
    }
  }
  // The names of the rows that have a digest.
  std::string rows_with_digest(Seat asked) {
    std::string names;
    const MeshStatus mesh = status(asked);
    if (mesh.runs.empty()) return "";
    for (const auto& row : mesh.runs[0].members) names += row.digest != 0 ? row.node + " " : "";
    return names;
  }
};

TEST_F(ControlStatus, Version) {
  start_mesh();
  const auto version = ask<schema::VersionReply>(kB, schema::VersionRequest{});
  EXPECT_EQ(version.node, "node-b");
  EXPECT_EQ(version.build, "0.1.0-test");
}

TEST_F(ControlStatus, AnyNodeAnswersForAll) {
  start_mesh();
  write_everywhere("run-1");
  wait_until_connected();
  for (const Seat asked : peers_.places()) {
    EXPECT_TRUE(eventually([&] { return rows_with_digest(asked) == "node-a node-b node-c "; })) << asked.index();
    const MeshStatus mesh = status(asked);
    EXPECT_EQ(mesh.node, peers_[asked].name);
    ASSERT_EQ(mesh.runs.size(), 1u);
    EXPECT_EQ(mesh.runs[0].members.size(), 3u);
    ASSERT_EQ(mesh.nodes.size(), 3u);
    EXPECT_EQ(mesh.nodes[2].address, "127.0.0.1:" + std::to_string(control_port(kC)));
  }
}

// Any node reports it for a run; for a dry run, which is no run, only the node itself.
TEST_F(ControlStatus, ReadingPicturesShowsHowManyAreLeft) {
  start_mesh();
  for (const Seat seat : peers_.places()) {
    daemon::RunRecord record = sample_record("run-1", peers_[seat].name, RunState::kStarting);
    record.status.reason.clear();
    ASSERT_TRUE(node(seat).store().write(record).ok());
  }
  wait_until_connected();
  node(kB).progress().images = 60'000;
  node(kB).progress().images_done = 1200;
  const std::string reads = "node-b reads 1,200 of 60,000 images";
  EXPECT_TRUE(eventually([&] { return status(kB).nodes[kB.index()].problem == reads; }));
  for (const Seat seat : peers_.places()) node(seat).server().watch("run-1", 60'000);
  for (const Seat asked : {kA, kB})
    EXPECT_TRUE(eventually([&] {
      const MeshStatus mesh = status(asked);
      return mesh.runs.size() == 1 && mesh.runs[0].reason == reads && mesh.nodes[kB.index()].problem.empty();
    })) << asked.index();
  node(kB).progress().images = 0;
  EXPECT_TRUE(eventually([&] { return status(kA).runs[0].reason.empty(); }));
}

TEST_F(ControlStatus, ARunIsFoundByPrefixOnAnyNode) {
  start_mesh();
  ASSERT_TRUE(node(kC).store().write(sample_record("only-on-c", "node-c")).ok());
  ASSERT_TRUE(node(kA).store().write(sample_record("other", "node-a")).ok());
  wait_until_connected();
  TestClient client(control_port(kA));
  schema::ReplyBody body;
  ASSERT_TRUE(eventually([&] {
    body = client.ask(StatusRequest{"only", false});
    return std::holds_alternative<MeshStatus>(body);
  }));
  ASSERT_EQ(as<MeshStatus>(body).runs.size(), 1u);
  EXPECT_EQ(as<MeshStatus>(body).runs[0].id, "only-on-c");
  EXPECT_EQ(client.ask<Error>(StatusRequest{"o", false}).kind, ErrorKind::kUsage);
  EXPECT_EQ(client.ask<MeshStatus>(StatusRequest{"o", true}).runs.size(), 1u) << "local: what node-a knows itself";
}

TEST_F(ControlStatus, AnUnknownRunIsNamed) {
  start_mesh();
  wait_until_connected();
  const Error error = ask<Error>(kA, StatusRequest{"nonsense", false});
  EXPECT_EQ(error.kind, ErrorKind::kNotFound);
  EXPECT_EQ(error.message, "no run 'nonsense' on any node; list them: tgctl list");
}

TEST_F(ControlStatus, ADeadNodeCausesNoDelayAndKeepsItsRow) {
  start_mesh(600);
  write_everywhere("run-1");
  wait_until_connected();
  ASSERT_TRUE(eventually([&] { return rows_with_digest(kA) == "node-a node-b node-c "; }));
  node(kC).stop();
  EXPECT_TRUE(eventually([&] { return states(kA) == "up up unreachable"; })) << states(kA);
  EXPECT_EQ(rows_with_digest(kA), "node-a node-b ");
  EXPECT_EQ(status(kA).runs.at(0).members.size(), 3u);
  ASSERT_TRUE(node(kC).start().ok()) << "the same port, at once";
  EXPECT_TRUE(eventually([&] { return rows_with_digest(kA) == "node-a node-b node-c "; }));
}

TEST_F(ControlStatus, ASilentNodeDelaysUntilTheDeadlineOnly) {
  start_mesh(10'000, {true, true, false});
  // Accepts connections and messages and never answers.
  zmq::context_t context{1};
  zmq::socket_t silent{context, zmq::socket_type::router};
  silent.set(zmq::sockopt::linger, 0);
  silent.bind("tcp://127.0.0.1:" + std::to_string(control_port(kC)));
  silent.set(zmq::sockopt::rcvtimeo, kPatienceMs);
  zmq::message_t beat;
  bool from_a = false;  // then a's request reaches it too
  while (!from_a) {
    ASSERT_TRUE(silent.recv(beat).has_value());
    const auto request = schema::decode_request({static_cast<const std::byte*>(beat.data()), beat.size()});
    from_a = request.ok() && std::get<schema::Heartbeat>(request->body).node == "node-a";
  }
  const std::uint64_t asked_ms = now_ms();
  const Elapsed elapsed;
  const MeshStatus mesh = status(kA);
  EXPECT_GE(now_ms() - asked_ms, static_cast<std::uint64_t>(schema::kPeerStatusMs) - 1);
  EXPECT_LT(elapsed.ms(), static_cast<std::uint64_t>(schema::kControlReplyMs));
  ASSERT_EQ(mesh.nodes.size(), 3u);
  EXPECT_EQ(mesh.nodes[2].state, schema::NodeState::kUnreachable);
}

}  // namespace
}  // namespace tg::tests
