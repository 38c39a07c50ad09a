// Requests for the node's thread, such as start and stop, are answered to the client that sent them.
#include <thread>

#include "control_fixture.h"
#include "schema/limits.h"
#include "tests/elapsed.h"

namespace tg::tests {
namespace {

using schema::StartReply;
using schema::StartRequest;
using schema::StopReply;
using schema::StopRequest;
using schema::VersionReply;
using schema::VersionRequest;

using ControlCalls = ControlMesh;

TEST_F(ControlCalls, EveryTokenAnswersItsOwnClient) {
  start_mesh();
  TestClient one(control_port(kA)), two(control_port(kA));
  one.send({11, StartRequest{"model = lenet\n", "mine", true}});
  const auto [start_token, start] = node(kA).next_call<StartRequest>();
  EXPECT_EQ(start.run_id, "mine");
  EXPECT_TRUE(start.dry_run);
  two.send({22, StopRequest{"run-1"}});
  const std::uint64_t stop_token = node(kA).next_call<StopRequest>().first;

  // In the other order, besides unknown tokens.
  node(kA).server().reply(start_token + stop_token + 1, Error{ErrorKind::kFailed, "nobody asked"});
  node(kA).server().reply(stop_token, StopReply{"run-1"});
  node(kA).server().reply(stop_token, Error{ErrorKind::kFailed, "twice"});
  StartReply start_reply;
  start_reply.run_id = "mine";
  node(kA).server().reply(start_token, start_reply);

  two.receive_reply<StopReply>(22);
  EXPECT_EQ(one.receive_reply<StartReply>(11).run_id, "mine");
  // A second answer to a token would arrive before this one.
  one.ask<VersionReply>(VersionRequest{});
  two.send({23, VersionRequest{}});
  two.receive_reply<VersionReply>(23);
}

// Each member of a PAUSED run stops by itself.
TEST_F(ControlCalls, AStopIsRelayedToAnotherNode) {
  start_mesh();
  TestClient client(control_port(kA));
  client.send({1, StopRequest{"run-1", "node-b"}});
  const auto [token, stop] = node(kB).next_call<StopRequest>();
  EXPECT_EQ(stop.run, "run-1");
  EXPECT_EQ(stop.node, "");
  node(kB).server().reply(token, StopReply{"run-1", schema::RunState::kStopping});
  EXPECT_EQ(client.receive_reply<StopReply>(1).run_id, "run-1");
}

TEST_F(ControlCalls, AResumeIsAnsweredByTheNode) {
  start_mesh();
  TestClient client(control_port(kA));
  client.send({1, schema::ResumeRequest{"run-1", "steps = 9\n", false, 600, true}});
  const auto [token, resume] = node(kA).next_call<schema::ResumeRequest>();
  EXPECT_EQ(resume.run, "run-1");
  EXPECT_EQ(resume.settings, "steps = 9\n");
  EXPECT_TRUE(!resume.from_newest && resume.from_step == 600 && resume.any_build);
  StartReply reply;
  reply.from_step = 600;
  node(kA).server().reply(token, reply);
  EXPECT_EQ(client.receive_reply<StartReply>(1).from_step, 600u);
}

TEST_F(ControlCalls, AHookMayReplyAtOnce) {
  start_mesh(10'000, {true});
  constexpr int kCalls = 50;
  std::thread node_thread([&] {
    for (int i = 0; i < kCalls; ++i)
      if (const auto call = node(kA).next_call()) node(kA).server().reply(call->token, StopReply{"run-1"});
  });
  TestClient client(control_port(kA));
  for (int i = 0; i < kCalls; ++i) client.ask<StopReply>(StopRequest{"run-1"});
  node_thread.join();
}

TEST_F(ControlCalls, AClientThatDisconnectsDoesNoHarm) {
  start_mesh();
  auto gone = std::make_unique<TestClient>(control_port(kA));
  gone->send({1, StopRequest{"run-1"}});
  const std::uint64_t token = node(kA).next_call<StopRequest>().first;
  gone.reset();
  node(kA).server().reply(token, StopReply{"run-1"});
  ask<VersionReply>(kA, VersionRequest{});
}

TEST_F(ControlCalls, TooManyRequestsAreRefused) {
  start_mesh();
  TestClient client(control_port(kA));
  // Fewer at a time than one connection buffers.
  for (std::size_t i = 0; i < schema::kMaxPendingRequests; ++i) {
    client.send({i, StopRequest{"run-1"}});
    ASSERT_TRUE(node(kA).next_call().has_value());
  }
  EXPECT_EQ(client.ask<Error>(StopRequest{"run-1"}).kind, ErrorKind::kRefused);
}

TEST_F(ControlCalls, WaitingClientsLearnOfAShutdown) {
  start_mesh();
  TestClient client(control_port(kA));
  client.send({5, StopRequest{"run-1"}});
  ASSERT_TRUE(node(kA).next_call().has_value());
  const Elapsed elapsed;
  node(kA).stop();
  EXPECT_LT(elapsed.ms(), static_cast<std::uint64_t>(schema::kShutdownMs));
  EXPECT_EQ(client.receive_reply<Error>(5).message, "node-a is shutting down");
}

TEST_F(ControlCalls, APortInUseIsNamed) {
  start_mesh();
  // The same addresses, another process's node-a.
  TestNode second(config_of(kA));
  const Status started = second.start();
  ASSERT_FALSE(started.ok());
  const std::string port = std::to_string(control_port(kA));
  EXPECT_NE(started.error().message.find("control port 127.0.0.1:" + port), std::string::npos)
      << started.error().message;
  EXPECT_NE(started.error().message.find("address in use; another tgd?"), std::string::npos);
}

TEST_F(ControlCalls, AnAddressOfAnotherMachineIsNamed) {
  start_mesh();
  node(kA).stop();
  schema::NodeConfig config = config_of(kA);
  config.listen = "192.0.2.1";  // reserved for documentation
  TestNode elsewhere(config);
  const Status started = elsewhere.start();
  ASSERT_FALSE(started.ok());
  EXPECT_NE(started.error().message.find("does not have this address"), std::string::npos) << started.error().message;
}

}  // namespace
}  // namespace tg::tests
