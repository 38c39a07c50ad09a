// Control servers over real sockets on loopback, and a client for them. Ports are free ones; waits are for conditions
// with a deadline, never for time to pass.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "daemon/control/control_server.h"
#include "temporary_directory.h"

namespace tg::tests {

inline constexpr int kPatienceMs = 20'000;  // for what must happen; generous, since only a failure costs it

// Ports that were free a moment ago.
std::vector<std::uint16_t> free_ports(std::size_t count);
bool eventually(const std::function<bool()>& condition);
std::uint64_t now_ms();

// The body as that kind. Another kind fails the test at the caller, with the message of an error.
using Where = std::source_location;
template <class Kind, class Body>
Kind as(const Body& body, const Where& where = Where::current()) {
  if (const Kind* one = std::get_if<Kind>(&body)) return *one;
  std::string said = "it is of kind " + std::to_string(body.index());
  if constexpr (std::is_same_v<Body, schema::ReplyBody>)
    if (const Error* error = std::get_if<Error>(&body)) said += ": " + error->message;
  ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line())) << said;
  return {};
}

class TestClient {
 public:
  explicit TestClient(std::uint16_t control_port);
  void send(const schema::Request& request) { send_bytes({schema::encode_request(request)}); }
  void send_bytes(const std::vector<std::string>& parts);
  // The next reply, whatever its id; no value if none arrives in time.
  std::optional<schema::Reply> receive(int timeout_ms = kPatienceMs);
  // Sends and waits for the reply of the same id. The test fails if none arrives, or one of another kind.
  schema::ReplyBody ask(schema::RequestBody body);
  template <class Kind>
  Kind ask(schema::RequestBody body, const Where& where = Where::current()) {
    return as<Kind>(ask(std::move(body)), where);
  }
  // The next reply, which must be that to this request.
  template <class Kind>
  Kind receive_reply(std::uint64_t id, const Where& where = Where::current()) {
    const std::optional<schema::Reply> reply = receive();
    if (reply && reply->id == id) return as<Kind>(reply->body, where);
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
        << (reply ? "a reply to " + std::to_string(reply->id) : "no reply") << ", not to " << id;
    return {};
  }

 private:
  zmq::context_t context_{1};
  zmq::socket_t socket_{context_, zmq::socket_type::dealer};
  std::uint64_t last_id_ = 100;
};

// One node's store, progress and server; collects the server's calls for the node's thread.
class TestNode {
 public:
  explicit TestNode(schema::NodeConfig config);
  Status start();
  void stop() { server_.reset(); }
  daemon::ControlServer& server() { return *server_; }
  daemon::RunStore& store() { return *store_; }
  daemon::Progress& progress() { return progress_; }
  std::uint16_t control_port() const { return static_cast<std::uint16_t>(config_.self().port + 1); }
  std::string run_file(const std::string& id, const std::string& file) { return store_->directory(id) + "/" + file; }

  std::optional<daemon::ControlCall> next_call();  // waits
  // The next call, which must be such a request: its token, the request.
  template <class Kind>
  std::pair<std::uint64_t, Kind> next_call(const Where& where = Where::current()) {
    const daemon::ControlCall call = next_call().value_or(daemon::ControlCall{0, schema::VersionRequest{}});
    return {call.token, as<Kind>(call.body, where)};
  }
  std::optional<daemon::Suspicion> next_verdict();  // waits
  std::size_t verdict_count();
  std::vector<std::string> log_lines();

 private:
  template <class Item>
  std::optional<Item> take(std::vector<Item>& items);

  schema::NodeConfig config_;
  TemporaryDirectory directory_;
  std::unique_ptr<daemon::Keyring> keyring_;
  std::unique_ptr<daemon::RunStore> store_;
  daemon::Progress progress_;
  Log log_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<daemon::ControlCall> calls_;
  std::vector<daemon::Suspicion> verdicts_;
  std::vector<std::string> lines_;
  std::unique_ptr<daemon::ControlServer> server_;
};

inline constexpr Seat kA{0}, kB{1}, kC{2};

// node-a, node-b, node-c on loopback.
class ControlMesh : public testing::Test {
 protected:
  // Nodes that are not `started` have a configuration and an address without a process.
  void start_mesh(std::uint64_t peer_timeout_ms = 10'000, std::vector<bool> started = {true, true, true});
  schema::NodeConfig config_of(Seat seat) const;
  TestNode& node(Seat seat) { return *nodes_[seat]; }
  std::uint16_t control_port(Seat seat) const { return static_cast<std::uint16_t>(peers_[seat].port + 1); }
  schema::MeshStatus status(Seat asked, const std::string& run = "");
  std::string states(Seat asked);  // "up up unreachable"
  // Sends a new client's request to that node.
  template <class Kind>
  Kind ask(Seat asked, schema::RequestBody body, const Where& where = Where::current()) {
    return TestClient(control_port(asked)).ask<Kind>(std::move(body), where);
  }
  // Waits until each started node sees each other one.
  void wait_until_connected();

  Per<Seat, schema::PeerAddress> peers_;
  std::uint64_t peer_timeout_ms_ = 0;
  Per<Seat, std::unique_ptr<TestNode>> nodes_;
};

}  // namespace tg::tests
