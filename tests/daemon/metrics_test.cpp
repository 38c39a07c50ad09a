// The metrics that Prometheus reads, and what the metrics port answers and survives.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <regex>
#include <sstream>
#include <thread>

#include "daemon/metrics/metrics_server.h"
#include "schema/limits.h"
#include "tests/daemon/control_fixture.h"

namespace tg::daemon {
namespace {

using Clock = Metrics::Clock;
constexpr Seat kSelf{0}, kPeer{1}, kOtherPeer{2};

NodeInfo about() { return {{"node-a", "node-b", "node-c"}, kSelf, "0.1.0 \"x\"", "avx2"}; }

Numbers sample_numbers() {
  Numbers numbers;
  numbers.steps = 120;
  numbers.samples = 1920;
  numbers.loss = 0.25;
  numbers.data_wait_seconds = 1.25;
  numbers.nonzero_ratio = 0.07;
  numbers.accuracy = 0.5;
  numbers.accuracy_5 = 0.75;
  numbers.run_state = schema::RunState::kRunning;
  numbers.run_step = 20;
  numbers.view_changes = 3;
  numbers.members_away = 1;
  numbers.run_started = 1'700'000'000.5;
  numbers.checkpoint_every = 60;
  numbers.saved = 1'700'000'050;
  numbers.peers = {{}, {true, 1000, 2000, 1.5}, {false, 3, 4, 0}};
  numbers.rejected = {1, 2, 3, 4};
  for (const double seconds : {0.0005, 0.001, 0.0011, 2.0, 100.0}) numbers.observe(StepPart::kBackward, seconds);
  return numbers;
}

std::vector<std::string> lines_with(const std::string& text, const std::string& part) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.find(part) != std::string::npos && !line.starts_with('#')) found.push_back(line);
  return found;
}

using Lines = std::vector<std::string>;

TEST(MetricsText, ADeviceIsShownIfOneTrains) {
  NodeInfo node = about();
  EXPECT_EQ(lines_with(metrics_text(node, sample_numbers(), {}), "tgd_device"), Lines{});
  node.compute = [] { return schema::ComputeStatus{"cpu", "", "fp32", 0, 0, "", "no module", true}; };
  EXPECT_EQ(lines_with(metrics_text(node, sample_numbers(), {}), "tgd_device"), Lines{});
  node.compute = [] { return schema::ComputeStatus{"cuda", "GPU", "tf32", 70, 80, "", "", false}; };
  EXPECT_EQ(lines_with(metrics_text(node, sample_numbers(), {}), "tgd_device"),
            (Lines{"tgd_device_up{device=\"GPU\",math=\"tf32\"} 1",
                   "tgd_device_memory_bytes{device=\"GPU\",math=\"tf32\"} 80",
                   "tgd_device_memory_free_bytes{device=\"GPU\",math=\"tf32\"} 70"}));
  node.compute = [] { return schema::ComputeStatus{"cuda", "GPU", "tf32", 0, 0, "it is lost", "", false}; };
  EXPECT_EQ(lines_with(metrics_text(node, sample_numbers(), {}), "tgd_device_up").front().back(), '0');
}

TEST(MetricsText, ShowsTheCountsOfTheNode) {
  const std::string text = metrics_text(about(), sample_numbers(), {});
  EXPECT_EQ(lines_with(text, "tgd_build_info"),
            (Lines{"tgd_build_info{version=\"0.1.0 \\\"x\\\"\",protocol=\"" + std::to_string(schema::kProtocolVersion) +
                   "\",node=\"node-a\",kernels=\"avx2\"} 1"}));
  EXPECT_EQ(lines_with(text, "tgd_steps_total"), (Lines{"tgd_steps_total 120"}));
  EXPECT_EQ(lines_with(text, "tgd_samples_total"), (Lines{"tgd_samples_total 1920"}));
  EXPECT_EQ(lines_with(text, "tgd_data_wait_seconds_total"), (Lines{"tgd_data_wait_seconds_total 1.25"}));
  EXPECT_EQ(lines_with(text, "tgd_loss"), (Lines{"tgd_loss 0.25"}));
  EXPECT_EQ(lines_with(text, "tgd_accuracy"), (Lines{"tgd_accuracy{top=\"1\"} 0.5", "tgd_accuracy{top=\"5\"} 0.75"}));
  EXPECT_EQ(lines_with(text, "tgd_view_changes_total"), (Lines{"tgd_view_changes_total 3"}));
  EXPECT_EQ(lines_with(text, "tgd_members_away"), (Lines{"tgd_members_away 1"}));
  EXPECT_EQ(lines_with(text, "tgd_run_state").size(), words_of(schema::RunState()).size());
  EXPECT_EQ(lines_with(text, "tgd_run_state{state=\"RUNNING\"}"), (Lines{"tgd_run_state{state=\"RUNNING\"} 1"}));
  EXPECT_EQ(lines_with(text, "tgd_run_state{state=\"FAILED\"}"), (Lines{"tgd_run_state{state=\"FAILED\"} 0"}));
  EXPECT_EQ(lines_with(text, "tgd_peer_up"),
            (Lines{"tgd_peer_up{peer=\"node-b\"} 1", "tgd_peer_up{peer=\"node-c\"} 0"}))
      << "nobody is a peer of its own";
  EXPECT_EQ(lines_with(text, "tgd_wire_sent_bytes_total"),
            (Lines{"tgd_wire_sent_bytes_total{peer=\"node-b\"} 1000", "tgd_wire_sent_bytes_total{peer=\"node-c\"} 3"}));
  EXPECT_EQ(lines_with(text, "tgd_frames_rejected_total{reason=\"other_run\"}"),
            (Lines{"tgd_frames_rejected_total{reason=\"other_run\"} 4"}));
  EXPECT_EQ(lines_with(text, "tgd_checkpoint_last_success_timestamp_seconds").size(), 1u);
  EXPECT_TRUE(text.ends_with('\n'));
  EXPECT_TRUE(lines_with(text, "process_").empty()) << "what cannot be read is left out";
}

TEST(MetricsText, AHistogramIsCumulative) {
  const std::string text = metrics_text(about(), sample_numbers(), {});
  const Lines lines = lines_with(text, "phase=\"backward\"");
  const auto value = [&](const std::string& label) {
    for (const std::string& line : lines)
      if (line.find(label) != std::string::npos) return line.substr(line.rfind(' ') + 1);
    return std::string("none");
  };
  EXPECT_EQ(value("le=\"0.001\""), "2") << "a bound is inside";
  EXPECT_EQ(value("le=\"0.0025\""), "3");
  EXPECT_EQ(value("le=\"1\""), "3");
  EXPECT_EQ(value("le=\"2.5\""), "4");
  EXPECT_EQ(value("le=\"30\""), "4");
  EXPECT_EQ(value("le=\"+Inf\""), "5");
  EXPECT_EQ(value("_count"), "5");
  EXPECT_NEAR(std::stod(value("_sum")), 102.0026, 1e-9);
}

TEST(MetricsText, UnknownValuesAreLeftOut) {
  Numbers fresh;
  fresh.peers.assign(3, {});
  const std::string text = metrics_text(about(), fresh, {});
  for (const char* name :
       {"tgd_loss", "tgd_accuracy", "tgd_checkpoint_last_success", "tgd_run_started", "tgd_gradient_nonzero"})
    EXPECT_TRUE(lines_with(text, name).empty()) << name;
  EXPECT_EQ(lines_with(text, "tgd_steps_total"), (Lines{"tgd_steps_total 0"})) << "a counter begins at zero";
  EXPECT_EQ(lines_with(text, "tgd_run_state{state=\"RUNNING\"}"), (Lines{"tgd_run_state{state=\"RUNNING\"} 0"}));
}

TEST(MetricsText, EveryFamilyHasHelpAndType) {
  std::istringstream lines(metrics_text(about(), sample_numbers(), process_numbers()));
  std::string family, before;
  std::size_t families = 0;
  for (std::string line; std::getline(lines, line); before = line) {
    if (line.starts_with("# TYPE ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(before.starts_with("# HELP " + family + " ")) << before;
      ++families;
    }
    EXPECT_TRUE(line.starts_with('#') || line.starts_with(family)) << line;
  }
  EXPECT_GE(families, 20u);
}

TEST(MetricsText, ShowsProcessMetrics) {
  const ProcessNumbers process = process_numbers();
  EXPECT_GT(process.resident_bytes.value(), 1e6);
  EXPECT_GE(process.open_descriptors.value(), 3);
  EXPECT_GT(process.max_descriptors.value(), process.open_descriptors.value());
  EXPECT_GE(process.threads.value(), 1);
  EXPECT_NEAR(process.start_seconds.value(), static_cast<double>(std::time(nullptr)), 3600);
}

TEST(Metrics, ReadersSeeWhatWasPublishedLast) {
  Metrics metrics(3);
  const Clock::time_point now = Clock::now();
  metrics.numbers().steps = 5;
  EXPECT_EQ(metrics.published().numbers.steps, 0u);
  EXPECT_TRUE(metrics.is_due(now));
  metrics.publish(now);
  metrics.numbers().steps = 6;
  EXPECT_EQ(metrics.published().numbers.steps, 5u);
  EXPECT_FALSE(metrics.is_due(now + Metrics::kPublishEvery / 2));
  EXPECT_TRUE(metrics.is_due(now + Metrics::kPublishEvery));
}

class HttpResponderTest : public testing::Test {
 protected:
  HttpResponderTest() {
    metrics_.numbers() = sample_numbers();
    metrics_.publish(start_);
  }
  Metrics metrics_{3};
  Progress progress_;
  HttpResponder responder_{about(), metrics_, progress_};
  const Clock::time_point start_ = Clock::now();
};

TEST_F(HttpResponderTest, ReadyWhenAllPeersAreUpElseNamesTheMissing) {
  HttpResponse answer = responder_.respond("/readyz", start_);
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body, "not up: node-c\n");
  metrics_.numbers().peers[kOtherPeer].up = true;
  metrics_.publish(start_);
  EXPECT_EQ(responder_.respond("/readyz", start_).status, 200);
  metrics_.numbers().peers[kPeer].up = metrics_.numbers().peers[kOtherPeer].up = false;
  metrics_.publish(start_);
  EXPECT_EQ(responder_.respond("/readyz", start_).body, "not up: node-b, node-c\n");
}

TEST_F(HttpResponderTest, HealthyWhileTheNodesThreadMakesProgress) {
  const auto moment = std::chrono::milliseconds(1);
  EXPECT_EQ(responder_.respond("/healthz", start_ + HttpResponder::kMaxSilence - moment).status, 200);
  EXPECT_EQ(responder_.respond("/healthz", start_ + HttpResponder::kMaxSilence).status, 503);
  EXPECT_EQ(responder_.respond("/healthz", start_ + HttpResponder::kMaxSilence).body,
            "the node's thread has made no progress for 15 s\n");
  ++progress_.count;  // it writes a long file
  const Clock::time_point later = start_ + 3 * HttpResponder::kMaxSilence;
  EXPECT_EQ(responder_.respond("/healthz", later).status, 200);
  EXPECT_EQ(responder_.respond("/healthz", later + HttpResponder::kMaxSilence).status, 503);
  metrics_.publish(later + HttpResponder::kMaxSilence);
  EXPECT_EQ(responder_.respond("/healthz", later + HttpResponder::kMaxSilence).status, 200);
}

TEST_F(HttpResponderTest, OtherPathsAreNotFound) {
  for (const char* path : {"/", "", "/metrics/", "/../etc/passwd"})
    EXPECT_EQ(responder_.respond(path, start_).status, 404);
  EXPECT_EQ(responder_.respond("/metrics", start_).type, kMetricsType);
}

// --- the port ---

class HttpConnection {
 public:
  explicit HttpConnection(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  ~HttpConnection() { ::close(socket_); }
  HttpConnection(const HttpConnection&) = delete;
  void send(const std::string& text) { (void)!::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  bool open_after(std::chrono::milliseconds wait) {
    pollfd look{socket_, POLLIN, 0};
    return ::poll(&look, 1, static_cast<int>(wait.count())) == 0;
  }
  std::string rest() {
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = ::recv(socket_, buffer, sizeof buffer, 0)) > 0;)
      text.append(buffer, static_cast<std::size_t>(got));
    return text;
  }

 private:
  const int socket_;
};

std::string ask(std::uint16_t port, const std::string& path, const std::string& method = "GET") {
  HttpConnection connection(port);
  connection.send(method + " " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
  if (connection.open_after(std::chrono::milliseconds(tests::kPatienceMs))) return "no answer";
  return connection.rest();
}

class MetricsPort : public HttpResponderTest {
 protected:
  MetricsPort() {
    const Status started = server_.start("127.0.0.1", port_);
    EXPECT_TRUE(started.ok()) << started.error().message;
  }
  const std::uint16_t port_ = tests::free_ports(1).front();
  MetricsServer server_{responder_};
};

TEST_F(MetricsPort, AMalformedRequestIsNotEchoed) {
  for (const std::string request : {"GET / HTM-TP/1.1\r\nHost: x\r\nTr`nsfer: y\r\n\r\n", "GET /\r\n\r\n",
                                    "\x01\x02\r\n\r\n", "GET /metrics HTTP/9.9\r\nHost: x\r\n\r\n"}) {
    HttpConnection connection(port_);
    connection.send(request);
    EXPECT_FALSE(connection.open_after(std::chrono::milliseconds(tests::kPatienceMs)));
    const std::string answer = connection.rest();
    EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.1 5")) << answer;
    EXPECT_EQ(answer.find("TP/1.1", 5), std::string::npos) << answer;
  }
}

// The connections accepted on that port.
std::size_t accepted_on(std::uint16_t port) {
  constexpr int kMaxDescriptors = 4096;
  std::size_t count = 0;
  for (int descriptor = 0; descriptor < kMaxDescriptors; ++descriptor) {
    sockaddr_in own{}, other{};
    socklen_t size = sizeof own;
    if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &size) != 0 || ntohs(own.sin_port) != port)
      continue;
    size = sizeof other;
    count += ::getpeername(descriptor, reinterpret_cast<sockaddr*>(&other), &size) == 0 ? 1 : 0;
  }
  return count;
}

// Silent connections that return as soon as they are cut.
TEST_F(MetricsPort, TwiceAsManyConnectionsTakeNoMoreDescriptors) {
  std::vector<std::unique_ptr<HttpConnection>> silent(2 * schema::kMetricsDescriptors);
  std::size_t most = 0;
  for (int round = 0; round < 3; ++round)
    for (auto& connection : silent) {
      connection = std::make_unique<HttpConnection>(port_);
      most = std::max(most, accepted_on(port_));
    }
  EXPECT_GT(most, static_cast<std::size_t>(MetricsServer::kThreads));
  EXPECT_LE(most, schema::kMetricsDescriptors);
  EXPECT_TRUE(ask(port_, "/healthz").starts_with("HTTP/1.1 200"));
}

TEST_F(MetricsPort, AnswersOverHttp) {
  const std::string metrics = ask(port_, "/metrics");
  EXPECT_TRUE(metrics.starts_with("HTTP/1.1 200 OK\r\n")) << metrics;
  EXPECT_NE(metrics.find(std::string("Content-Type: ") + kMetricsType + "\r\n"), std::string::npos);
  const std::size_t body = metrics.find("\r\n\r\n") + 4;
  EXPECT_NE(metrics.find("Content-Length: " + std::to_string(metrics.size() - body) + "\r\n"), std::string::npos);
  EXPECT_EQ(lines_with(metrics, "tgd_steps_total"), (Lines{"tgd_steps_total 120"}));
  EXPECT_TRUE(ask(port_, "/readyz?verbose=1").starts_with("HTTP/1.1 503"));
  EXPECT_TRUE(ask(port_, "/etc/passwd").starts_with("HTTP/1.1 404"));
  EXPECT_TRUE(ask(port_, "/metrics", "POST").starts_with("HTTP/1.1 405"));
  const std::string head = ask(port_, "/metrics", "HEAD");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n")) << head;
}

TEST_F(MetricsPort, ABusyPortIsAnErrorThatNamesIt) {
  MetricsServer second(responder_);
  const Status status = second.start("127.0.0.1", port_);
  ASSERT_FALSE(status.ok());
  const std::string& message = status.error().message;
  EXPECT_NE(message.find("metrics = 127.0.0.1:" + std::to_string(port_)), std::string::npos) << message;
  EXPECT_NE(message.find("Address already in use"), std::string::npos) << message;
  EXPECT_TRUE(ask(port_, "/healthz").starts_with("HTTP/1.1 200")) << "the first one goes on";
}

TEST_F(MetricsPort, SilentAndFloodingClientsAreCutAndOthersAreAnswered) {
  std::vector<std::unique_ptr<HttpConnection>> silent;
  for (int i = 0; i < 3 * MetricsServer::kThreads; ++i) silent.push_back(std::make_unique<HttpConnection>(port_));
  for (auto& connection : silent) connection->send("GET /metrics HTTP/1.1\r\nX: ");
  EXPECT_TRUE(ask(port_, "/healthz").starts_with("HTTP/1.1 200"));
  EXPECT_FALSE(ask(port_, "/" + std::string(2 * MetricsServer::kMaxRequestBytes, 'a')).starts_with("HTTP/1.1 200"));
  for (auto& connection : silent) EXPECT_FALSE(connection->rest().starts_with("HTTP/1.1 200"));
}

TEST_F(MetricsPort, ManySlowClientsDoNotStarveOthers) {
  std::atomic<bool> done{false};
  std::vector<std::thread> dribbling;
  for (int i = 0; i < 40; ++i)
    dribbling.emplace_back([&] {
      while (!done) {
        HttpConnection connection(port_);
        for (bool open = true; open && !done;) {
          connection.send("X");
          open = connection.open_after(std::chrono::milliseconds(50));
        }
      }
    });
  for (const char* path : {"/healthz", "/metrics", "/healthz"})
    EXPECT_TRUE(ask(port_, path).starts_with("HTTP/1.1 200")) << path;
  done = true;
  for (std::thread& one : dribbling) one.join();
}

TEST_F(MetricsPort, ReadersDoNotDelayTheNodesThread) {
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i)
    readers.emplace_back([&] {
      for (int k = 0; k < 20; ++k) EXPECT_TRUE(ask(port_, "/metrics").starts_with("HTTP/1.1 200"));
    });
  std::thread node([&] {
    while (!done) {
      ++metrics_.numbers().steps;
      metrics_.numbers().observe(StepPart::kForward, 0.01);
      ++progress_.count;
      metrics_.publish(Clock::now());
    }
  });
  for (std::thread& reader : readers) reader.join();
  done = true;
  node.join();
}

}  // namespace
}  // namespace tg::daemon
