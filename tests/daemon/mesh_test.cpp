// Two to three meshes in one process over real ZeroMQ sockets on loopback.

#include "daemon/mesh/mesh.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>
#include <zmq.hpp>

#include "daemon/node/event_queue.h"
#include "tests/daemon/control_fixture.h"

namespace tg::daemon {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kDeadline{20};
constexpr Seat kA{0}, kB{1};

// A mesh, what its hooks said, and a thread in the place of the node's.
class Endpoint {
 public:
  // queue: where its frames go, instead of frames_.
  Endpoint(schema::NodeConfig config, std::uint64_t incarnation, const std::string& build, EventQueue* queue = nullptr)
      : queue_(queue), log_(config.node, LogLevel::kError), mesh_(config, incarnation, build, pool_, log_, hooks()) {}
  ~Endpoint() { stop(); }

  Status start() {
    Status started = mesh_.start();
    if (started.ok()) ticker_ = std::thread([this] { tick(); });
    return started;
  }
  void stop() {
    stopping_ = true;
    if (ticker_.joinable()) ticker_.join();
    mesh_.stop_receiving();
  }
  void send(Seat to, const schema::FrameHeader& header, const schema::FrameBody& body) {
    send(to, schema::encode_frame(header, body, pool_));
  }
  void send(Seat to, schema::SharedFrame frame) {
    const std::lock_guard lock(mutex_);
    outgoing_.emplace_back(to, std::move(frame));
  }
  template <class Condition>
  bool wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, condition);
  }
  bool wait_until_up(Seat peer) {
    return wait([&] { return up_[peer]; });
  }

  // guarded by mutex_, read inside wait()
  std::map<Seat, bool> up_;
  std::vector<schema::Frame> frames_;
  std::vector<std::string> misbehaved_;
  std::size_t arrived_ = 0;  // frames for the queue
  std::vector<Seat> floods_;

  std::string problem(Seat peer) const { return mesh_.problem(peer); }

 private:
  Mesh::Hooks hooks() {
    return {[this](Seat from, schema::Frame frame, std::shared_ptr<const void> keep) {
              if (queue_ == nullptr) return note([&] { frames_.push_back(std::move(frame)); });
              const auto posted = queue_->post_frame({from, std::move(frame), std::move(keep), Clock::now()});
              note([&] {
                ++arrived_;
                if (posted == EventQueue::Posted::kFloods) floods_.push_back(from);
              });
            },
            [this](Seat peer, bool up) { note([&] { up_[peer] = up; }); },
            [this](Seat, const std::string& what) { note([&] { misbehaved_.push_back(what); }); }, [](Seat) {}};
  }
  template <class Change>
  void note(Change change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }
  void tick() {
    while (!stopping_) {
      std::vector<std::pair<Seat, schema::SharedFrame>> frames;
      {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, std::chrono::milliseconds(10), [this] { return !outgoing_.empty() || stopping_; });
        frames.swap(outgoing_);
      }
      for (const auto& [to, frame] : frames) EXPECT_FALSE(mesh_.send({to}, frame)) << "a peer takes no frames";
      mesh_.tick(static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count()));
    }
    mesh_.close(0);
  }

  EventQueue* const queue_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<Seat, schema::SharedFrame>> outgoing_;
  std::atomic<bool> stopping_{false};
  schema::FramePool pool_;
  Log log_;
  Mesh mesh_;
  std::thread ticker_;
};

std::vector<schema::NodeConfig> configs(std::size_t count) {
  const std::vector<std::uint16_t> ports = tests::free_ports(count);
  Per<Seat, schema::PeerAddress> peers;
  for (std::size_t i = 0; i < count; ++i)
    peers.push_back({"node-" + std::string(1, static_cast<char>('a' + i)), "127.0.0.1", ports[i]});
  std::vector<schema::NodeConfig> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    all[i].node = peers[Seat(i)].name;
    all[i].peers = peers;
  }
  return all;
}

TEST(Mesh, ConnectsBothWaysAndDeliversFrames) {
  const auto config = configs(2);
  Endpoint a(config[0], 11, "build"), b(config[1], 12, "build");
  ASSERT_TRUE(a.start().ok());
  ASSERT_TRUE(b.start().ok());
  ASSERT_TRUE(a.wait_until_up(kB));
  ASSERT_TRUE(b.wait_until_up(kA));
  a.send(kB, {7, 1, 3}, schema::Scalers{1, 0, 0, {0.5f, 0.25f}});
  ASSERT_TRUE(b.wait([&] { return !b.frames_.empty(); }));
  EXPECT_EQ(b.frames_[0].header.step, 3u);
  EXPECT_EQ(std::get<schema::Scalers>(b.frames_[0].body).scalers, (std::vector<float>{0.5f, 0.25f}));
}

TEST(Mesh, DifferentBuildsStayApartAndBothAreNamed) {
  const auto config = configs(2);
  Endpoint a(config[0], 11, "1.0"), b(config[1], 12, "2.0");
  ASSERT_TRUE(a.start().ok());
  ASSERT_TRUE(b.start().ok());
  const Clock::time_point deadline = Clock::now() + kDeadline;
  while (a.problem(kB).empty() && Clock::now() < deadline) std::this_thread::yield();
  const std::string problem = a.problem(kB);
  for (const char* part : {"builds differ", "node-b", "2.0", "node-a", "1.0"})
    EXPECT_NE(problem.find(part), std::string::npos) << problem;
  EXPECT_TRUE(a.wait([&] { return !a.up_[kB]; }));
}

TEST(Mesh, ARestartedPeerIsReportedAndConnectsAgain) {
  const auto config = configs(2);
  Endpoint a(config[0], 11, "build");
  ASSERT_TRUE(a.start().ok());
  {
    Endpoint b(config[1], 12, "build");
    ASSERT_TRUE(b.start().ok());
    ASSERT_TRUE(a.wait_until_up(kB));
  }
  Endpoint again(config[1], 13, "build");
  ASSERT_TRUE(again.start().ok());
  ASSERT_TRUE(a.wait([&] { return !a.misbehaved_.empty(); }));
  EXPECT_EQ(a.misbehaved_[0], "node-b was restarted");
  EXPECT_TRUE(a.wait_until_up(kB));
  EXPECT_TRUE(again.wait_until_up(kA));
}

TEST(Mesh, ASenderOfMalformedFramesIsCutOff) {
  const auto config = configs(2);
  Endpoint a(config[0], 11, "build"), b(config[1], 12, "build");
  ASSERT_TRUE(a.start().ok());
  ASSERT_TRUE(b.start().ok());
  ASSERT_TRUE(a.wait_until_up(kB));
  b.stop();
  zmq::context_t context;
  zmq::socket_t impostor(context, zmq::socket_type::dealer);
  impostor.set(zmq::sockopt::routing_id, "node-b");
  impostor.set(zmq::sockopt::linger, 0);
  impostor.connect(config[0].peers[kA].mesh_endpoint());
  for (int i = 0; i < schema::kMostBadFrames; ++i) impostor.send(zmq::buffer("no frame at all"), zmq::send_flags::none);
  ASSERT_TRUE(a.wait([&] { return !a.misbehaved_.empty(); }));
  EXPECT_NE(a.misbehaved_[0].find("node-b sent 5 malformed frames"), std::string::npos) << a.misbehaved_[0];
  // Cut off: a valid frame of that incarnation is not heard any more. The hello of a new incarnation, sent after it,
  // proves that the frame was read.
  schema::FramePool pool;
  const auto valid = schema::encode_frame({7, 1, 3}, schema::Goodbye{"bye"}, pool);
  impostor.send(zmq::buffer(valid->bytes().data(), valid->bytes().size()), zmq::send_flags::none);
  const auto hello = schema::encode_frame(
      {}, schema::Hello{schema::kProtocolVersion, "build", "node-b", 14, schema::names_hash(config[0].peers), 11},
      pool);
  impostor.send(zmq::buffer(hello->bytes().data(), hello->bytes().size()), zmq::send_flags::none);
  ASSERT_TRUE(a.wait([&] { return a.misbehaved_.size() == 2; }));  // the new incarnation is news, and welcome again
  EXPECT_TRUE(a.wait([&] { return a.frames_.empty(); }));
}

std::size_t resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6)) * 1024;
  return 0;
}

// node-b sends 400 MB to a node whose thread takes nothing: what waits there is its share, and node-c is heard.
TEST(Mesh, AMembersFloodTakesItsShareOfMemoryAndHoldsBackNobody) {
  const auto config = configs(3);
  constexpr Seat kC{2};
  EventQueue queue(3);
  Endpoint a(config[0], 11, "build", &queue), b(config[1], 12, "build"), c(config[2], 13, "build");
  for (Endpoint* one : {&a, &b, &c}) ASSERT_TRUE(one->start().ok());
  for (Endpoint* one : {&b, &c}) ASSERT_TRUE(one->wait_until_up(kA));
  schema::FramePool pool;
  schema::ChunkFrameBuilder builder({7, 1, 3}, 0, schema::ChunkPhase::kContribution, schema::kMostChunkPayloadBytes,
                                    pool);
  const schema::SharedFrame chunk = builder.finish(schema::kMostChunkPayloadBytes, schema::PayloadFormat::kCodesRaw);
  const std::size_t before = resident_bytes();
  for (int i = 0; i < 400; ++i) b.send(kA, chunk);
  ASSERT_TRUE(a.wait([&] { return a.arrived_ == 400; }));
  const std::size_t more = resident_bytes() - before;
  ASSERT_EQ(a.floods_.size(), 1u);
  EXPECT_EQ(a.floods_[0], kB);
  c.send(kA, {7, 1, 3}, schema::Scalers{1, 0, 0, {0.5f, 0.25f}});
  ASSERT_TRUE(a.wait([&] { return a.arrived_ == 401; }));
  std::size_t of_b = 0, of_c = 0;
  while (const std::optional<Event> event = queue.pop(std::chrono::milliseconds(0)))
    ++(std::get<FrameArrived>(*event).from == kB ? of_b : of_c);
  EXPECT_EQ(of_b, schema::kMostQueuedBytesPerPeer / (chunk->bytes().size() + schema::kQueuedEventBytes));
  EXPECT_EQ(of_c, 1u);
  std::printf("400 MB sent: %zu chunks waited, %zu MB more\n", of_b, more >> 20);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep what was freed
  EXPECT_LT(more, schema::kMostQueuedBytesPerPeer + (32u << 20));
#endif
}

TEST(Mesh, APortInUseIsNamed) {
  auto config = configs(2);
  Endpoint a(config[0], 11, "build");
  ASSERT_TRUE(a.start().ok());
  Endpoint same(config[0], 12, "build");
  const Status started = same.start();
  ASSERT_FALSE(started.ok());
  EXPECT_NE(started.error().message.find(std::to_string(config[0].self().port)), std::string::npos)
      << started.error().message;
}

}  // namespace
}  // namespace tg::daemon
