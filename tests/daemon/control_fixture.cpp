#include "control_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/elapsed.h"

namespace tg::tests {

std::vector<std::uint16_t> free_ports(std::size_t count) {
  std::vector<int> sockets;
  std::vector<std::uint16_t> ports;
  while (ports.size() < count) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockets.push_back(fd);  // kept open until all are drawn, so that they differ
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) continue;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) continue;
    ports.push_back(ntohs(address.sin_port));
  }
  for (const int fd : sockets) ::close(fd);
  return ports;
}

std::uint64_t now_ms() {
  using namespace std::chrono;
  return static_cast<std::uint64_t>(duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count());
}

bool eventually(const std::function<bool()>& condition) {
  const Elapsed elapsed;
  while (!condition()) {
    if (elapsed.ms() > static_cast<std::uint64_t>(kPatienceMs)) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // between two polls
  }
  return true;
}

TestClient::TestClient(std::uint16_t control_port) {
  socket_.set(zmq::sockopt::linger, 0);
  socket_.connect("tcp://127.0.0.1:" + std::to_string(control_port));
}

void TestClient::send_bytes(const std::vector<std::string>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto flags = i + 1 < parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none;
    ASSERT_TRUE(socket_.send(zmq::buffer(parts[i]), flags).has_value());
  }
}

std::optional<schema::Reply> TestClient::receive(int timeout_ms) {
  socket_.set(zmq::sockopt::rcvtimeo, timeout_ms);
  zmq::message_t message;
  if (!socket_.recv(message)) return std::nullopt;
  auto reply = schema::decode_reply({static_cast<const std::byte*>(message.data()), message.size()});
  EXPECT_TRUE(reply.ok()) << reply.error().message;
  if (!reply) return std::nullopt;
  return std::move(*reply);
}

schema::ReplyBody TestClient::ask(schema::RequestBody body) {
  const std::uint64_t id = ++last_id_;
  send({id, std::move(body)});
  while (std::optional<schema::Reply> reply = receive()) {
    if (reply->id == id) return std::move(reply->body);
  }
  ADD_FAILURE() << "no reply";
  return Error{ErrorKind::kTimeout, "no reply"};
}

TestNode::TestNode(schema::NodeConfig config) : config_(std::move(config)), log_(config_.node, LogLevel::kWarning) {
  config_.state_dir = directory_.path();
  keyring_ = std::move(daemon::Keyring::open(config_)).value();
  std::vector<std::string> warnings;
  auto store = daemon::RunStore::open(directory_.path(), config_.node, warnings);
  if (!store) throw std::runtime_error(store.error().message);
  store_ = std::move(*store);
  log_.set_sink([this](std::string_view line) {
    const std::lock_guard lock(mutex_);
    lines_.emplace_back(line);
  });
}

Status TestNode::start() {
  daemon::ControlServer::Hooks hooks;
  hooks.on_call = [this](daemon::ControlCall call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
    changed_.notify_all();
  };
  hooks.on_suspicion = [this](daemon::Suspicion verdict) {
    const std::lock_guard lock(mutex_);
    verdicts_.push_back(std::move(verdict));
    changed_.notify_all();
  };
  server_ =
      std::make_unique<daemon::ControlServer>(config_, 1, "0.1.0-test", *keyring_, *store_, progress_, log_, hooks);
  return server_->start();
}

template <class Item>
std::optional<Item> TestNode::take(std::vector<Item>& items) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, std::chrono::milliseconds(kPatienceMs), [&] { return !items.empty(); })) return {};
  Item first = std::move(items.front());
  items.erase(items.begin());
  return first;
}

std::optional<daemon::ControlCall> TestNode::next_call() { return take(calls_); }
std::optional<daemon::Suspicion> TestNode::next_verdict() { return take(verdicts_); }

std::size_t TestNode::verdict_count() {
  const std::lock_guard lock(mutex_);
  return verdicts_.size();
}

std::vector<std::string> TestNode::log_lines() {
  const std::lock_guard lock(mutex_);
  return lines_;
}

void ControlMesh::start_mesh(std::uint64_t peer_timeout_ms, std::vector<bool> started) {
  peer_timeout_ms_ = peer_timeout_ms;
  // Another process may take a port before this one binds it.
  for (int attempt = 0; attempt < 10; ++attempt) {
    nodes_.clear();
    peers_.clear();
    const auto ports = free_ports(started.size());
    for (const Seat seat : places<Seat>(started.size())) {
      peers_.push_back({std::string("node-") + static_cast<char>('a' + seat.index()), "127.0.0.1",
                        static_cast<std::uint16_t>(ports[seat.index()] - 1)});
    }
    bool all = true;
    for (const Seat seat : places<Seat>(started.size())) {
      nodes_.push_back(std::make_unique<TestNode>(config_of(seat)));
      if (started[seat.index()]) all = all && nodes_.back()->start().ok();
    }
    if (all) return;
  }
  FAIL() << "found no free ports";
}

schema::NodeConfig ControlMesh::config_of(Seat seat) const {
  schema::NodeConfig config;
  config.node = peers_[seat].name;
  config.peers = peers_;
  config.nodes = schema::NodeList(peers_);
  config.peer_timeout_ms = peer_timeout_ms_;
  return config;
}

schema::MeshStatus ControlMesh::status(Seat asked, const std::string& run) {
  return ask<schema::MeshStatus>(asked, schema::StatusRequest{run, false});
}

std::string ControlMesh::states(Seat asked) {
  std::string text;
  for (const schema::NodeStatus& node : status(asked).nodes)
    text += std::string(text.empty() ? "" : " ") + to_word(node.state);
  return text;
}

void ControlMesh::wait_until_connected() {
  for (const Seat seat : nodes_.places()) {
    ASSERT_TRUE(eventually([&] { return states(seat) == "up up up"; })) << states(seat);
  }
}

}  // namespace tg::tests
