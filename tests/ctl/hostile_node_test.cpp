// tgctl against a hostile node: the real program asks a ROUTER socket that answers with forged control messages.
// Records bound what tgctl accepts, every wait ends, and no byte from others controls the terminal.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>
#include <zmq.hpp>

#include "ctl/client.h"
#include "ctl/fetch/slices.h"
#include "ctl/terminal/visible.h"
#include "schema/control/control.h"
#include "tests/ctl/tgctl_process.h"

namespace tg::ctl {
namespace {

using schema::FetchRequest;
using schema::LogsRequest;
using schema::Request;
using schema::SliceReply;

constexpr std::uint64_t kModelBytes = 1'000'000;
constexpr std::uint64_t kEndless = std::uint64_t{1} << 50;
const std::string kTurned = "\xe2\x80\xae";  // U+202E turns the text after it from right to left

class HostileNode {
 public:
  // Runs on the node's own thread for each request.
  using Answer = std::function<void(HostileNode&, const Request&)>;

  explicit HostileNode(Answer answer) : answer_(std::move(answer)), socket_(context_, zmq::socket_type::router) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.bind("tcp://127.0.0.1:*");
    const std::string endpoint = socket_.get(zmq::sockopt::last_endpoint);
    address_ = endpoint.substr(endpoint.rfind('/') + 1);
    thread_ = std::thread([this] { serve(); });
  }
  ~HostileNode() {
    stopped_ = true;
    thread_.join();
  }
  const std::string& address() const { return address_; }

  // For use in `answer`.
  bool stopped() const { return stopped_; }
  void reply(std::uint64_t id, const schema::ReplyBody& body) { send(schema::encode_reply({id, body})); }
  void send(const std::string& bytes) {
    socket_.send(zmq::buffer(client_), zmq::send_flags::sndmore);
    socket_.send(zmq::buffer(bytes), zmq::send_flags::none);
  }

 private:
  void serve() {
    while (!stopped_) {
      zmq::pollitem_t item{socket_.handle(), 0, ZMQ_POLLIN, 0};
      if (zmq::poll(&item, 1, std::chrono::milliseconds(20)) == 0) continue;
      zmq::message_t client, bytes;
      if (!socket_.recv(client) || !socket_.recv(bytes)) continue;
      client_ = client.to_string();
      const Result<Request> request =
          schema::decode_request({static_cast<const std::byte*>(bytes.data()), bytes.size()});
      if (request) answer_(*this, *request);
    }
  }

  const Answer answer_;
  zmq::context_t context_;
  zmq::socket_t socket_;
  std::string address_, client_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

schema::MeshStatus mesh_of(std::vector<schema::MemberStatus> members) {
  schema::RunStatus run;
  run.id = "first";
  run.state = schema::RunState::kCompleted;
  run.started_ms = run.since_ms = 1'700'000'000'000;
  run.step = run.steps = 10;
  run.members = std::move(members);
  return {"node-a", "tgd", false, {{"node-a", "127.0.0.1:7701", schema::NodeState::kUp, ""}}, {run}};
}

schema::MemberStatus member(const char* node) { return {node, schema::RunState::kCompleted, 10, 5, 10, 0}; }

std::string record() {
  const std::string mark = R"({"bytes":)" + std::to_string(kModelBytes) + R"(,"sha256":"00"})";
  return R"({"id":"first","own":{"node":"node-a","digest":"0000000000000005","digest_step":10},"files":{)"
         R"("model.safetensors":)" +
         mark + R"(,"model-raw.safetensors":)" + mark + R"(,"metrics.jsonl":)" + mark + "}}";
}

class Hostile : public testing::Test {
 protected:
  Outcome ask(const HostileNode& node, std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--address", node.address()});
    return tgctl_.run(std::move(arguments));
  }
  std::string output() const { return tgctl_.folder() + "/model"; }
  std::size_t files() const {
    std::error_code code;
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(output(), code), {}));
  }

  // Answers status and run.json correctly; `slice` makes the slices of all other files.
  Outcome fetch(const std::function<SliceReply(const FetchRequest&)>& slice) {
    slices_ = 0;
    const HostileNode node([&](HostileNode& self, const Request& request) {
      const auto* file = std::get_if<FetchRequest>(&request.body);
      if (file == nullptr) return self.reply(request.id, mesh_of({member("node-a")}));
      if (file->file == "run.json" && !bad_record_)
        return self.reply(request.id, SliceReply{"first", "node-a", record().size(), record(), true});
      ++slices_;
      self.reply(request.id, slice(*file));
    });
    return ask(node, {"fetch", "first", "-o", output()});
  }
  void refused(const Outcome& fetched, const std::string& words, std::size_t most_slices) const {
    EXPECT_EQ(fetched.code, 1);
    EXPECT_NE(fetched.err.find(words), std::string::npos) << fetched.err;
    EXPECT_LE(slices_, most_slices);
    EXPECT_EQ(files(), 0u);
  }

  const TgctlProcess tgctl_{"hostile_test"};
  std::atomic<std::size_t> slices_ = 0;
  bool bad_record_ = false;
};

const std::string kFull(schema::kFileSliceBytes, 'x');

TEST_F(Hostile, AModelLargerThanItsRecordSaysIsRefusedBeforeAByteIsWritten) {
  const auto more = fetch([](const FetchRequest&) { return SliceReply{"first", "node-a", kEndless, kFull, false}; });
  refused(more, "node-a's model.safetensors is damaged: it has 1125899906842624 bytes instead of 1000000", 1);
}

TEST_F(Hostile, SlicesWithoutEndAreRefused) {
  const auto endless = [](const FetchRequest&) { return SliceReply{"first", "node-a", kModelBytes, kFull, false}; };
  refused(fetch(endless), "1048576 of 1000000 bytes arrived", 2);
}

TEST_F(Hostile, SlicesWithoutProgressAreRefused) {
  for (const std::string& data : {std::string(), std::string("x")}) {
    const auto slow = [&](const FetchRequest&) { return SliceReply{"first", "node-a", kModelBytes, data, false}; };
    refused(fetch(slow), std::to_string(data.size()) + " of 1000000 bytes arrived", 1);
  }
}

TEST_F(Hostile, ATotalThatChangesIsRefused) {
  const auto grows = [&](const FetchRequest& asked) {
    return SliceReply{"first", "node-a", kModelBytes + asked.offset, kFull, false};
  };
  refused(fetch(grows), "it has 1524288 bytes instead of 1000000", 2);
}

TEST_F(Hostile, ARecordWithoutEndIsRefused) {
  bad_record_ = true;
  const auto endless = [](const FetchRequest&) { return SliceReply{"first", "node-a", kEndless, kFull, false}; };
  refused(fetch(endless), "node-a's run.json: it has 1125899906842624 bytes, and there is room for 262144",
          2);  // the model without a record is requested too
}

TEST_F(Hostile, TwoMembersOfOneNameAreRefused) {
  const HostileNode node([](HostileNode& self, const Request& request) {
    self.reply(request.id, mesh_of({member("node-a"), member("node-b"), member("node-a")}));
  });
  refused(ask(node, {"fetch", "first", "-o", output()}), "two members named node-a", 0);
}

// A node that joins cannot stop the run, and one that was wiped cannot resume it: the request is for one that can.
TEST_F(Hostile, AnyNodeCanBeAskedToStopOrResumeARun) {
  schema::MeshStatus mesh = mesh_of({member("node-a"), member("node-b"), member("node-c")});
  mesh.nodes.push_back({"node-b", "127.0.0.1:7711", schema::NodeState::kUnreachable, ""});
  mesh.nodes.push_back({"node-c", "127.0.0.1:7721", schema::NodeState::kUp, ""});
  schema::RunStatus& run = mesh.runs.front();
  const auto told = [&](const std::vector<std::string>& command) {
    std::string nodes;
    {
      const HostileNode node([&](HostileNode& self, const Request& request) {
        if (const auto* stop = std::get_if<schema::StopRequest>(&request.body)) {
          nodes += stop->node + " ";
          if (stop->node == "node-c") run.state = schema::RunState::kStopped;
          return self.reply(request.id, stop->node == "node-c"
                                            ? schema::ReplyBody(schema::StopReply{"first", run.state})
                                            : schema::ReplyBody(Error{ErrorKind::kRefused, "about to join"}));
        }
        if (const auto* resume = std::get_if<schema::ResumeRequest>(&request.body)) {
          nodes += resume->node + " ";
          schema::StartReply begun;
          begun.run_id = "first";
          return self.reply(request.id, begun);
        }
        self.reply(request.id, mesh);
      });
      EXPECT_EQ(ask(node, command).code, 0) << nodes;
    }
    return nodes;
  };
  for (const schema::RunState own : {schema::RunState::kStarting, schema::RunState::kRunning}) {
    run.state = run.members[1].state = run.members[2].state = schema::RunState::kRunning;
    run.members[0].state = own;
    EXPECT_EQ(told({"stop", "first"}), own == schema::RunState::kStarting ? "node-c " : "node-a node-c ");
  }
  for (schema::MemberStatus& row : run.members) row.state = schema::RunState::kInterrupted;
  run.state = schema::RunState::kInterrupted;
  EXPECT_EQ(told({"resume", "first", "--detach"}), "node-a ");
  run.members[0].problem = "has no copy of the run";
  EXPECT_EQ(told({"resume", "first", "--detach"}), "node-c ");
}

TEST(Slices, WithoutARecordThereIsRoomForSoMuch) {
  EXPECT_TRUE(Slices({}, 10).add({"first", "node-a", 10, std::string(10, 'x'), true}).ok());
  EXPECT_TRUE(Slices({}, 10).add({"first", "node-a", 0, "", true}).ok());
  EXPECT_FALSE(Slices({}, 10).add({"first", "node-a", 11, std::string(11, 'x'), true}).ok());
  EXPECT_FALSE(Slices(11, 20).add({"first", "node-a", 10, std::string(10, 'x'), true}).ok());
  EXPECT_FALSE(Slices({}, 20).add({"first", "node-a", 10, std::string(10, 'x'), false}).ok()) << "the run goes on";
  EXPECT_FALSE(Slices({}, 20).add({"first", "node-a", 20, std::string(10, 'x'), true}).ok());
  Slices slices({}, 2 * kFull.size());
  EXPECT_TRUE(slices.add({"first", "node-a", kFull.size() + 1, kFull, false}).ok());
  EXPECT_EQ(slices.offset(), kFull.size());
  EXPECT_FALSE(Slices(slices).add({"first", "node-a", kFull.size() + 2, "xy", true}).ok()) << "it grew";
  EXPECT_TRUE(slices.add({"first", "node-a", kFull.size() + 1, "x", true}).ok());
  EXPECT_TRUE(slices.whole());
}

// `slice` answers each request for the log.
std::function<void(HostileNode&, const Request&)> logs_of(std::function<SliceReply(const LogsRequest&)> slice) {
  return [slice = std::move(slice)](HostileNode& self, const Request& request) {
    const auto* log = std::get_if<LogsRequest>(&request.body);
    log == nullptr ? self.reply(request.id, mesh_of({member("node-a")})) : self.reply(request.id, slice(*log));
  };
}

TEST_F(Hostile, ALogDoesNotControlTheTerminal) {
  const std::string text =
      "a\tb\x1b[2J\x1b]0;title\x07\xc2\x9b"
      "1m\x9b"
      "2m\r" +
      kTurned + "\xf3\xa0\x80\x81\xf0\x9f\x98\x80\xc3\xa4\n";
  const HostileNode node(logs_of([&](const LogsRequest&) {
    return SliceReply{"first", "node-a", text.size(), text, true};
  }));
  const Outcome logs = ask(node, {"logs", "first"});
  EXPECT_EQ(logs.code, 0) << logs.err;
  EXPECT_EQ(
      logs.out,
      "a\tb\\u001b[2J\\u001b]0;title\\u0007\\u009b1m\\x9b2m\\u000d\\u202e\\udb40\\udc01\xf0\x9f\x98\x80\xc3\xa4\n");
}

TEST_F(Hostile, ALogThatIsCutWithinACharacterIsShownWhole) {
  std::string text(schema::kLogSliceBytes - 11, 'x');
  for (int i = 0; i < 20; ++i) text += "\xc3\xa4";
  text += "\n";
  const HostileNode node(logs_of([&](const LogsRequest& asked) {
    const std::string data = text.substr(asked.offset, schema::kLogSliceBytes - 1);
    return SliceReply{"first", "node-a", text.size(), data, asked.offset + data.size() == text.size()};
  }));
  const HostileNode full(logs_of([&](const LogsRequest& asked) {
    const std::string data = text.substr(asked.offset, schema::kLogSliceBytes);
    return SliceReply{"first", "node-a", text.size(), data, asked.offset + data.size() == text.size()};
  }));
  EXPECT_EQ(ask(full, {"logs", "first"}).out, text);
  EXPECT_EQ(ask(node, {"logs", "first"}).code, 0) << "a slice that is not full is the last";
}

TEST_F(Hostile, ALogWithoutEndEnds) {
  const std::string full(schema::kLogSliceBytes, 'x');
  const HostileNode endless(logs_of([&](const LogsRequest&) {
    return SliceReply{"first", "node-a", kEndless, full, false};
  }));
  const Outcome refused = ask(endless, {"logs", "first", "--follow"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("reports a log of 1125899906842624 bytes"), std::string::npos) << refused.err;
  // The log's length at the first request is the bound, whatever is added poll.
  const HostileNode grows(logs_of([&](const LogsRequest& asked) {
    return SliceReply{"first", "node-a", asked.offset + 3 * full.size(), full, false};
  }));
  EXPECT_EQ(ask(grows, {"logs", "first"}).out.size(), 3 * full.size());
  const HostileNode more(logs_of([&](const LogsRequest&) { return SliceReply{"first", "node-a", 5, full, false}; }));
  EXPECT_EQ(ask(more, {"logs", "first"}).code, 1) << "more than the total that it reports";
  for (const std::string& data : {std::string(), std::string("x")}) {
    const HostileNode slow(logs_of([&](const LogsRequest&) {
      return SliceReply{"first", "node-a", 1000, data, false};
    }));
    EXPECT_EQ(ask(slow, {"logs", "first"}).out, data);
  }
}

TEST_F(Hostile, NoTextOfANodeControlsTheTerminal) {
  const HostileNode tells([](HostileNode& self, const Request& request) {
    schema::MeshStatus mesh = mesh_of({member("node-a")});
    mesh.runs[0].reason = mesh.nodes[0].problem = "drow" + kTurned + "word";
    self.reply(request.id, mesh);
  });
  const HostileNode errs([](HostileNode& self, const Request& request) {
    self.reply(request.id, Error{ErrorKind::kFailed, "drow" + kTurned + "word"});
  });
  for (const HostileNode* node : {&tells, &errs})
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"status"},
                                               {"status", "first"},
                                               {"status", "--json"},
                                               {"list"},
                                               {"stop", "first"},
                                               {"wait", "first"},
                                               {"fetch", "first", "-o", output()},
                                               {"export", "first", "--to", "csv", "-o", output()},
                                               {"doctor"},
                                               {"version"},
                                               {"delete", "first"}}) {
      const Outcome said = ask(*node, words);
      EXPECT_EQ((said.out + said.err).find(kTurned), std::string::npos) << words[0];
      if (node == &errs || words[0] == "status" || words[0] == "list") {
        EXPECT_NE((said.out + said.err).find("drow\\u202eword"), std::string::npos) << words[0] << said.out << said.err;
      }
    }
}

TEST_F(Hostile, UnrelatedRepliesDoNotExtendTheDeadline) {
  const HostileNode node([](HostileNode& self, const Request& request) {
    const std::string other = schema::encode_reply({request.id + 1'000'000, mesh_of({member("node-a")})});
    while (!self.stopped()) self.send(other);
  });
  const Outcome status = ask(node, {"status"});
  EXPECT_EQ(status.code, 3);
  EXPECT_NE(status.err.find("no tgd answers"), std::string::npos) << status.err;
}

// libzmq sends only complete messages, so this speaks ZMTP 3.0 itself, and sends parts until it is disconnected.
class EndlessParts {
 public:
  EndlessParts() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  ~EndlessParts() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  const std::string& address() const { return address_; }
  std::uint64_t sent() const { return sent_; }

 private:
  void serve() {
    const int connection = ::accept(listener_, nullptr, nullptr);
    if (connection < 0) return;
    std::string greeting("\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL", 16);
    greeting.resize(64);
    const std::string ready("\x04\x29\5READY\x0bSocket-Type\0\0\0\6ROUTER\x08Identity\0\0\0\0", 43);
    std::string part("\3\0\0\0\0\0\4\0\0", 9);  // more to come; 256 KiB
    part.resize(9 + 256 * 1024);
    constexpr std::uint64_t kMost = std::uint64_t{4} << 30;
    bool open = write(connection, greeting + ready);
    while (open && sent_ < kMost) open = write(connection, part);
    ::close(connection);
  }
  bool write(int connection, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (written <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(written));
      sent_ += static_cast<std::uint64_t>(written);
    }
    return true;
  }

  const int listener_;
  std::string address_;
  std::atomic<std::uint64_t> sent_ = 0;
  std::thread thread_;
};

// A start may take as long as the node reports progress.
TEST_F(Hostile, ProgressExtendsTheDeadline) {
  for (const bool at_work : {true, false}) {
    std::uint64_t asked = 0;
    int told = 0;
    const HostileNode node([&](HostileNode& self, const Request& request) {
      if (asked == 0) asked = request.id;
      if (request.id == asked) return;
      self.reply(request.id, mesh_of({}));
      if (++told == 4) self.reply(asked, schema::StopReply{"first", schema::RunState::kStopped});
    });
    Result<Client> client = Client::connect(node.address(), "");
    ASSERT_TRUE(client.ok());
    const ProgressPoll poll{schema::StatusRequest{}, [&](const schema::ReplyBody&) { return at_work; }};
    const Result<schema::ReplyBody> answer = client->ask_with_probes(schema::StopRequest{"first"}, 1500, &poll);
    EXPECT_EQ(answer.ok(), at_work);
    if (!at_work) {
      EXPECT_EQ(answer.error().kind, ErrorKind::kTimeout);
    }
  }
}

TEST_F(Hostile, OneLostAnswerEndsNoWait) {
  std::atomic<int> asked = 0;
  const HostileNode node([&](HostileNode& self, const Request& request) {
    schema::MeshStatus mesh = mesh_of({member("node-a")});
    ++asked;
    if (asked == 1) mesh.runs[0].state = schema::RunState::kRunning;
    if (asked != 2) self.reply(request.id, mesh);
  });
  const Outcome waited = ask(node, {"wait", "first"});
  EXPECT_EQ(waited.code, 0) << waited.err;
  EXPECT_EQ(waited.out, "COMPLETED\n");
}

TEST_F(Hostile, AMessageWithoutEndIsCut) {
  const EndlessParts node;
  const Outcome status = tgctl_.run({"status", "--address", node.address()});
  EXPECT_EQ(status.code, 1);
  EXPECT_NE(status.err.find("its reply does not end"), std::string::npos) << status.err;
  EXPECT_LT(status.most_bytes, std::size_t{400} << 20) << node.sent() << " bytes sent";
}

TEST(Visible, TextStaysAsItIs) {
  for (const std::string text : {"", "plain\ttext\n", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"})
    EXPECT_EQ(visible(text), text);
}

TEST(Visible, InvalidUtf8IsEscapedByteByByte) {
  EXPECT_EQ(visible("\xc0\x80"), "\\xc0\\x80") << "overlong";
  EXPECT_EQ(visible("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(visible("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond Unicode";
  EXPECT_EQ(visible("\xe2\x80"), "\\xe2\\x80") << "cut";
  EXPECT_EQ(visible("\xff"
                    "a"),
            "\\xffa");
  EXPECT_EQ(visible(std::string("\0", 1) + "\x7f\xc2\x85\xe2\x81\xa6\xef\xbb\xbf"),
            "\\u0000\\u007f\\u0085\\u2066\\ufeff");
}

}  // namespace
}  // namespace tg::ctl
