// start and stop: handed to the node's thread, and answered to the client that asked.
#include <atomic>
#include <thread>

#include "control_fixture.h"
#include "schema/limits.h"

namespace tg::tests {
namespace {

using schema::PlanReply;
using schema::StartRequest;
using schema::StopReply;
using schema::StopRequest;

using ControlCalls = ControlMesh;

TEST_F(ControlCalls, EveryTokenAnswersItsOwnClient) {
  start_mesh();
  TestClient one(control_port(kA)), two(control_port(kA));
  one.send({11, StartRequest{"model = lenet\n", "mine", true}});
  const auto start = node(kA).next_call();
  ASSERT_TRUE(start.has_value());
  ASSERT_TRUE(std::holds_alternative<StartRequest>(start->body));
  EXPECT_EQ(std::get<StartRequest>(start->body).run_id, "mine");
  EXPECT_TRUE(std::get<StartRequest>(start->body).dry_run);
  two.send({22, StopRequest{"run-1"}});
  const auto stop = node(kA).next_call();
  ASSERT_TRUE(stop.has_value());
  ASSERT_TRUE(std::holds_alternative<StopRequest>(stop->body));

  // In the other order, beside tokens that nobody waits for.
  node(kA).server().reply(start->token + stop->token + 1, Error{ErrorKind::kFailed, "nobody asked"});
  node(kA).server().reply(stop->token, StopReply{"run-1"});
  node(kA).server().reply(stop->token, Error{ErrorKind::kFailed, "twice"});
  PlanReply plan;
  plan.run_id = "mine";
  node(kA).server().reply(start->token, plan);

  const auto to_two = two.receive(), to_one = one.receive();
  ASSERT_TRUE(to_one && to_two);
  EXPECT_EQ(to_one->id, 11u);
  ASSERT_TRUE(std::holds_alternative<PlanReply>(to_one->body));
  EXPECT_EQ(std::get<PlanReply>(to_one->body).run_id, "mine");
  EXPECT_EQ(to_two->id, 22u);
  EXPECT_TRUE(std::holds_alternative<StopReply>(to_two->body));
  // Whatever else was on its way would come before this.
  EXPECT_TRUE(std::holds_alternative<schema::VersionReply>(one.ask(schema::VersionRequest{})));
  two.send({23, schema::VersionRequest{}});
  const auto next = two.receive();
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->id, 23u) << "the second answer to one token goes nowhere";
}

TEST_F(ControlCalls, RepliesMayComeFromTheHookItself) {
  start_mesh(10'000, {true});
  std::atomic<bool> done{false};
  std::thread node_thread([&] {
    while (!done) {
      if (const auto call = node(kA).next_call()) node(kA).server().reply(call->token, StopReply{"run-1"});
    }
  });
  TestClient client(control_port(kA));
  for (int i = 0; i < 50; ++i) {
    if (i == 49) done = true;
    EXPECT_TRUE(std::holds_alternative<StopReply>(client.ask(StopRequest{"run-1"})));
  }
  node_thread.join();
}

TEST_F(ControlCalls, AClientThatLeftIsNoHarm) {
  start_mesh();
  auto gone = std::make_unique<TestClient>(control_port(kA));
  gone->send({1, StopRequest{"run-1"}});
  const auto call = node(kA).next_call();
  ASSERT_TRUE(call.has_value());
  gone.reset();
  node(kA).server().reply(call->token, StopReply{"run-1"});
  TestClient other(control_port(kA));
  EXPECT_TRUE(std::holds_alternative<schema::VersionReply>(other.ask(schema::VersionRequest{})));
}

TEST_F(ControlCalls, TooManyQuestionsAreRefused) {
  start_mesh();
  TestClient client(control_port(kA));
  // Fewer at a time than a connection holds.
  for (std::size_t i = 0; i < schema::kMostPendingQuestions; ++i) {
    client.send({i, StopRequest{"run-1"}});
    ASSERT_TRUE(node(kA).next_call().has_value());
  }
  const schema::ReplyBody body = client.ask(StopRequest{"run-1"});
  ASSERT_TRUE(std::holds_alternative<Error>(body));
  EXPECT_EQ(std::get<Error>(body).kind, ErrorKind::kRefused);
}

TEST_F(ControlCalls, WhoWaitsIsToldThatTheNodeGoes) {
  start_mesh();
  TestClient client(control_port(kA));
  client.send({5, StopRequest{"run-1"}});
  ASSERT_TRUE(node(kA).next_call().has_value());
  const std::uint64_t before_ms = now_ms();
  node(kA).stop();
  EXPECT_LT(now_ms() - before_ms, static_cast<std::uint64_t>(schema::kShutdownMs));
  const auto reply = client.receive();
  ASSERT_TRUE(reply.has_value());
  ASSERT_TRUE(std::holds_alternative<Error>(reply->body));
  EXPECT_EQ(std::get<Error>(reply->body).message, "node-a is shutting down");
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

TEST_F(ControlCalls, AnAddressThatIsNotOursIsNamed) {
  start_mesh();
  node(kA).stop();
  schema::NodeConfig config = config_of(kA);
  config.listen = "192.0.2.1";  // reserved for documentation: nobody's
  TestNode elsewhere(config);
  const Status started = elsewhere.start();
  ASSERT_FALSE(started.ok());
  EXPECT_NE(started.error().message.find("no such address"), std::string::npos) << started.error().message;
}

}  // namespace
}  // namespace tg::tests
