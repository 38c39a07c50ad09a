// A client during a rotation: key file and port change one after the other, and neither order is an error. A port that
// refuses a key, or ends a connection, and is silent then has not been silent from the start.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <zmq.hpp>

#include "ctl/client.h"
#include "schema/control/control.h"
#include "schema/keys/keys.h"
#include "tests/ctl/tgctl_process.h"

namespace tg::ctl {
namespace {

// A control port with keys. It accepts every client that has its key, and answers each request with a version.
class KeyedPort {
 public:
  explicit KeyedPort(const schema::Key& cluster) : socket_(context_, zmq::socket_type::router) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::curve_server, 1);
    gate_.set(zmq::sockopt::linger, 0);
    gate_.bind("inproc://zeromq.zap.01");
    use(cluster);
    socket_.bind("tcp://127.0.0.1:*");
    endpoint_ = socket_.get(zmq::sockopt::last_endpoint);
    thread_ = std::thread([this] { serve(); });
  }
  ~KeyedPort() {
    stopped_ = true;
    thread_.join();
  }
  std::string address() const { return endpoint_.substr(endpoint_.rfind('/') + 1); }

  // Changes the key: the port's own thread binds it again after its next refusal.
  void rotate_after_a_refusal(const schema::Key& cluster) {
    next_ = cluster;
    constexpr int kRefused = ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;
    ASSERT_EQ(zmq_socket_monitor(socket_.handle(), "inproc://events", kRefused), 0);
    refusals_ = zmq::socket_t(context_, zmq::socket_type::pair);
    refusals_.set(zmq::sockopt::linger, 0);
    refusals_.connect("inproc://events");
    rotating_ = true;
  }

  // Ends all connections, refuses so many, and then answers no handshake.
  void close_gate(int refusals) {
    gate_refusals_ = refusals;
    closing_ = true;
    while (closing_) std::this_thread::yield();
  }

 private:
  void use(const schema::Key& cluster) {
    const schema::Key secret = schema::control_keys(cluster).secret;
    ASSERT_EQ(zmq_setsockopt(socket_.handle(), ZMQ_CURVE_SECRETKEY, secret.data(), secret.size()), 0);
  }
  void rotate() {
    zmq::message_t event;
    if (!rotating_ || !refusals_.recv(event, zmq::recv_flags::dontwait)) return;
    rotating_ = false;
    zmq_socket_monitor(socket_.handle(), nullptr, 0);
    use(next_);
    bind_again();
  }
  void bind_again() {
    socket_.unbind(endpoint_);
    while (zmq_bind(socket_.handle(), endpoint_.c_str()) != 0 && !stopped_) std::this_thread::yield();
  }
  // Answers one ZAP request (RFC 27).
  void guard() {
    zmq::message_t part, id;
    (void)gate_.get(zmq::sockopt::events);  // lets ended connections go
    if (closed_ && gate_refusals_ == 0) return;
    if (!gate_.recv(part, zmq::recv_flags::dontwait)) return;
    if (!gate_.recv(id)) return;
    while (gate_.get(zmq::sockopt::rcvmore))
      if (!gate_.recv(part)) return;
    if (closed_) --gate_refusals_;
    for (const std::string& one : {std::string("1.0"), id.to_string(), std::string(closed_ ? "400" : "200"),
                                   std::string(), std::string("anyone")})
      gate_.send(zmq::buffer(one), zmq::send_flags::sndmore);
    gate_.send(zmq::message_t(), zmq::send_flags::none);
  }
  void serve() {
    while (!stopped_) {
      rotate();
      if (closing_) {
        closed_ = true;
        bind_again();
        closing_ = false;
      }
      guard();
      zmq::pollitem_t item{socket_.handle(), 0, ZMQ_POLLIN, 0};
      if (zmq::poll(&item, 1, std::chrono::milliseconds(10)) == 0) continue;
      zmq::message_t client, bytes;
      if (!socket_.recv(client) || !socket_.recv(bytes)) continue;
      const Result<schema::Request> request = schema::decode_request({bytes.data<std::byte>(), bytes.size()});
      ASSERT_TRUE(request.ok());
      socket_.send(client, zmq::send_flags::sndmore);
      const std::string reply = schema::encode_reply({request->id, schema::VersionReply{"node-a", "tgd"}});
      socket_.send(zmq::buffer(reply), zmq::send_flags::none);
    }
  }

  zmq::context_t context_;
  zmq::socket_t socket_, refusals_, gate_{context_, zmq::socket_type::rep};
  std::string endpoint_;
  schema::Key next_{};
  bool closed_ = false;
  std::atomic<int> gate_refusals_{0};
  std::atomic<bool> rotating_{false}, closing_{false}, stopped_{false};
  std::thread thread_;
};

class ClientKeys : public testing::Test {
 protected:
  // Replaces the file as tgctl keygen does.
  void write(const schema::Key& cluster) const {
    const std::string beside = path_ + ".new";
    std::ofstream(beside) << schema::format_cluster(cluster);
    std::filesystem::permissions(beside, std::filesystem::perms::owner_read);
    std::filesystem::rename(beside, path_);
  }
  Result<schema::VersionReply> ask(Client& client) const {
    return client.ask_for<schema::VersionReply>(schema::VersionRequest{});
  }

  const TgctlProcess tgctl_{"client_keys_test"};
  const std::string path_ = tgctl_.folder() + "/cluster.key";
  const schema::Key before_ = schema::draw_cluster_key(), after_ = schema::draw_cluster_key();
};

// The client read the file before the rotation, and connects after it.
TEST_F(ClientKeys, ReadsItsFileAgainBeforeItBelievesARefusal) {
  const KeyedPort port(after_);
  write(before_);
  Result<Client> client = Client::connect(port.address(), path_);
  ASSERT_TRUE(client.ok());
  write(after_);
  const Result<schema::VersionReply> reply = ask(*client);
  EXPECT_TRUE(reply.ok()) << reply.error().message;
}

// The file changes before the port.
TEST_F(ClientKeys, WaitsForThePortWhereTheFileIsNew) {
  KeyedPort port(before_);
  port.rotate_after_a_refusal(after_);
  write(after_);
  Result<Client> client = Client::connect(port.address(), path_);
  ASSERT_TRUE(client.ok());
  const Result<schema::VersionReply> reply = ask(*client);
  EXPECT_TRUE(reply.ok()) << reply.error().message;
}

TEST_F(ClientKeys, ReportsAKeyThatWasRotatedOut) {
  const KeyedPort port(before_);
  write(after_);
  Result<Client> client = Client::connect(port.address(), path_);
  ASSERT_TRUE(client.ok());
  const Result<schema::VersionReply> reply = ask(*client);
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().kind, ErrorKind::kForbidden);
  EXPECT_NE(reply.error().message.find("another cluster key"), std::string::npos) << reply.error().message;
}

TEST_F(ClientKeys, ASilenceAfterTheEndOfAConnectionIsNamedByWhatCameBefore) {
  write(before_);
  for (const int refusals : {1, 0}) {
    KeyedPort port(before_);
    Result<Client> client = Client::connect(port.address(), path_);
    ASSERT_TRUE(client.ok());
    ASSERT_TRUE(ask(*client).ok());
    port.close_gate(refusals);
    const Result<schema::VersionReply> reply = ask(*client);
    ASSERT_FALSE(reply.ok());
    EXPECT_EQ(reply.error().kind, refusals > 0 ? ErrorKind::kForbidden : ErrorKind::kUnreachable);
    const char* const words = refusals > 0 ? "no longer accepts this key" : "it ended the connection";
    EXPECT_NE(reply.error().message.find(words), std::string::npos) << reply.error().message;
  }
}

}  // namespace
}  // namespace tg::ctl
