#include "tests/schema/samples.h"

#include <bit>
#include <sstream>

#include "tests/schema/described.h"

namespace tg::schema {
namespace {

constexpr std::byte kPayload[] = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{0xff}, std::byte{5}};
constexpr std::byte kFiller[3] = {};

struct Describe {
  std::ostringstream text;

  void put(const std::string& value) { text << value.size() << ':' << value << ' '; }
  void put(float value) { text << std::bit_cast<std::uint32_t>(value) << ' '; }
  void put(double value) { text << std::bit_cast<std::uint64_t>(value) << ' '; }
  template <class Value>
  void put(const std::vector<Value>& values) {
    text << '[';
    for (const Value value : values) put(value);
    text << "] ";
  }
  template <class Value>
  requires std::is_integral_v<Value> || std::is_enum_v<Value>
  void put(Value value) { text << static_cast<std::uint64_t>(value) << ' '; }
  template <class... Values>
  void all(const Values&... values) {
    (put(values), ...);
  }

  template <Described Body>
  void operator()(const Body& body) {
    for (const auto& [name, value] : told(body)) all(name, value);
  }
  template <Described Part>
  void put(const Part& part) {
    (*this)(part);
  }
  void operator()(const SnapshotChunk& b) {
    all(b.at, b.payload.size());
    for (const std::byte byte : b.payload) put(static_cast<std::uint8_t>(byte));
  }
  void put(const StateId& state) { all(state.lineage, state.view, state.step, state.digest); }
  template <class Value>
  void put(const std::optional<Value>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  void put(const Resume& resume) { all(resume.lineage, resume.from_step, resume.any_build, resume.start); }
  void operator()(const Propose& b) { all(b.run_id, b.spec, b.weights, b.resume, b.members); }
  void operator()(const Offer& b) {
    put(b.states.size());
    for (const StateId& state : b.states) put(state);
    put(b.problem);
  }
  void operator()(const StepFrame& b) {
    all(b.rate_bits, b.flags, b.non_finite_segment, b.loss_sum, b.digests, b.scalers, b.statistics);
  }
  void operator()(const Scalers& b) { all(b.bucket, b.flags, b.non_finite_segment, b.scalers); }
  void operator()(const Chunk& b) {
    all(b.chunk, b.phase, b.format, b.payload.size());
    for (const std::byte byte : b.payload) put(static_cast<std::uint8_t>(byte));
  }
  void operator()(const Credit& b) { all(b.taken_bytes); }
  void operator()(const Probe& b) { all(b.burst, b.last, b.filler.size()); }
};

RunStatus young_run() {
  RunStatus run;
  run.id = "second";
  return run;
}

RunStatus sample_run() {
  RunStatus run;
  run.id = "first-2";
  run.state = RunState::kFailed;
  run.reason = "node-c was lost in reduce";
  run.since_ms = 1'700'000'000'123;
  run.started_ms = 1'700'000'000'000;
  run.model = "lenet";
  run.data = "mnist";
  run.exchange = "sharded";
  run.coding = "entropy";
  run.gradients = "ternary";
  run.last_layer = "float32";
  run.step = 12;
  run.steps = 2000;
  run.loss = 0.25;
  run.learning_rate = 0.01;
  run.evaluated = true;
  run.evaluation_step = 10;
  run.evaluation_accuracy = 0.9875;
  run.evaluation_accuracy_5 = 0.999;
  run.evaluation_loss = 0.04;
  run.samples_per_second = 1234.5;
  run.code_bits_per_parameter = 0.51;
  run.sent_bits_per_parameter = 1.75;
  run.sent_bytes_per_step = 275'000;
  run.zeros = 0.93;
  run.parameters = 1'256'080;
  run.digest = 0xfedcba9876543210;
  run.digest_step = 12;
  run.initial_digest = 7;
  run.members = {{"node-a", RunState::kFailed, 12, 0xfedcba9876543210, 12, 0.1, Phase::kIdle},
                 {"node-b",
                  RunState::kRunning,
                  11,
                  3,
                  11,
                  0.9,
                  Phase::kSave,
                  7,
                  9,
                  SaveState::kNotSaved,
                  "the disk is full",
                  48,
                  0.25,
                  {12, 8},
                  2}};
  run.lineage = 3;
  run.view = 2;
  run.view_step = 9;
  run.view_since_ms = 1'700'000'000'100;
  run.departed = {{"node-c", 1'700'000'000'100, 9, "node-c was shut down"}};
  run.from_step = 8;
  return run;
}

NextView sample_next_view() {
  return {2, {{0, 1, 3, 11, 0xfedcba9876543210}, {2, 2, 1000, 12, 5}}, 812, true, "node-b was shut down"};
}

ForecastRow sample_row(std::uint64_t nodes) { return {nodes, 16, 64, sample_outcome(1), sample_outcome(20)}; }

}  // namespace

Outcome sample_outcome(double first) {
  return {first, first + 1, first + 2, first + 3, first + 4, first + 5, first + 6};
}

ForecastReply sample_forecast() {
  ForecastReply reply;
  reply.node = "node-a";
  reply.model = "alexnet";
  reply.compute = Compute::kReplay;
  reply.parameters = 61'100'840;
  reply.line_mbps = 1000;
  reply.payload_mbps = 941.5;
  reply.cores = 0.5;
  reply.exchange = "sharded";
  reply.coding = "raw";
  reply.asked = sample_row(4);
  reply.table = {sample_row(1), sample_row(2)};
  reply.assumptions = {"all nodes are alike", "the sun shines"};
  return reply;
}

Examination sample_examination() {
  Examination one;
  one.node = "node-a";
  one.build = "0.1.0+abc";
  one.asked_ms = 1'700'000'000'001;
  one.received_ms = 1'700'000'000'002;
  one.answered_ms = 1'700'000'000'003;
  one.busy = "run first is on";
  one.key_problem = "mode 0644";
  one.disk_problem = "full";
  one.memory_problem = "too little";
  one.run_problem = "run first is PAUSED";
  one.data_dir = "/srv/data";
  one.data = {{"mnist", 0xfedcba9876543210, "one file is missing"}};
  one.unfinished = "disk";
  LinkFacts own, link;
  own.peer = "node-a";
  own.line = "10.0.0.1:7700";
  link.peer = "node-b";
  link.line = "node-b.lab:7700";
  link.address = "10.0.0.2";
  link.name_problem = "not known";
  link.mesh = Reach::kSilent;
  link.control = Reach::kStranger;
  link.mtu = 1500;
  link.device = "eth0";
  link.up = true;
  link.problem = "it is slow";
  link.waiting_helps = true;
  link.refusal = "other keys";
  link.mbps = 938.5;
  one.links = {own, link};
  return one;
}

Diagnosis sample_diagnosis() {
  return {"node-a",
          {"node-a", "node-b"},
          {{Check::kPorts, Verdict::kFail, "node-a", "node-b", "no answer", "mend the firewall"},
           {Check::kMemory, Verdict::kPass, "", "", "all agree", ""}},
          7,
          {LinkResult::kSelf, LinkResult::kControl, LinkResult::kUnknown, LinkResult::kSelf},
          {0, 938.5F, 0, 0}};
}

static Vote sample_vote() {
  return {true, ErrorKind::kFailed, "", 1, 2, 3, 4, 0.125, 16, 940.5, 6, 0xfedcba9876543210, 77, 64};
}

std::vector<FrameBody> sample_bodies() {
  return {
      Hello{kProtocolVersion, "tgd 0.1.0 cpu", "node-a", 11, 22, 33, 44, 55, "node-a, node-b", 3},
      Claim{"first"},
      Grant{false, "node-b is starting run second"},
      Propose{"first",
              "model = lenet\nsteps = 5\n",
              {3, 1000, 1},
              Resume{3, 900, true, StateId{2, 1, 900, 0xfedcba9876543210}, true},
              {0, 2}},
      sample_vote(),
      Commit{ExchangeKind::kSharded, Coding::kEntropy, kMaxWindowBytes, kLargeChunkParameters,
             sample_next_view().members},
      Fail{ErrorKind::kTimeout, "node-c", "scaler wait", "node-c was lost"},
      StepFrame{
          0x3c23d70a, kEvaluateAfterStep, 0, 36.5, {1, 0xffffffffffffffff}, {0.0f, 0.5f, 3.0e38f}, {-0.25f, 1.5f}},
      Scalers{3, kStopAfterStep, 0, {0.25f}},
      Chunk{77, ChunkPhase::kTotal, PayloadFormat::kSumsRaw, kPayload},
      Report{true, 9875, 9990, 10000, 412.5, {5, 6, 7}},
      Goodbye{"node-b was shut down"},
      Credit{123456},
      Probe{3, true, kFiller},
      ProbeReply{3, 17825},
      Refusal{"node-b", "peer lines differ"},
      Ended{RunState::kCompleted, "", 1'700'000'000'123, 1000, 0xfedcba9876543210, 960, 4, SaveState::kNotSaved,
            "cannot write model.safetensors: No space left on device", true},
      Offer{{{2, 1, 900, 0xfedcba9876543210}, {1, 4, 600, 5}}, "node-b: a file is torn", 2, 3, {0, 2}},
      Reached{},
      Suspect{2, "node-a lost the connection to node-c"},
      Prepare{{3, 1}},
      Promise{{3, 1},
              0xfedcba9876543210,
              77,
              true,
              812,
              "node-b is stuck in backward",
              true,
              {0, 2},
              {2, 0},
              sample_next_view(),
              9,
              7},
      Nack{{4, 2}},
      Accept{{3, 1}, sample_next_view()},
      Accepted{{3, 1}, 0xfedcba9876543210, 77, 10, 7},
      Decide{sample_next_view()},
      Join{"first", true, sample_vote(), {0, 2}},
      Invite{"first",
             "model = lenet\nsteps = 5\n",
             {3, 1000, 1},
             16,
             2,
             sample_next_view(),
             {ExchangeKind::kSharded, Coding::kEntropy, kMaxWindowBytes, kLargeChunkParameters, {}}},
      Quiesce{1, 470'000, 733'000'000, true, "node-b joins: 1 % of 733 MB"},
      SnapshotOffer{{2, 1, 900, 0xfedcba9876543210}, {1234, 0, 77, 4096}},
      SnapshotRequest{524'288, true},
      SnapshotChunk{1'048'576, kPayload},
      SnapshotDone{{2, 1, 900, 0xfedcba9876543210}, {0, 2}},
      Leave{},
  };
}

std::vector<Request> sample_requests() {
  return {
      {1, StatusRequest{"fir", true, Pick::kNewestEnded}},
      {2, StartRequest{"model = lenet\n", "first", true, {"node-c"}}},
      {3, StopRequest{"first", "node-b"}},
      {4, LogsRequest{"first", "node-b", 65536}},
      {5, FetchRequest{"first", "node-c", "model.safetensors", 524288}},
      {6, VersionRequest{}},
      {7, Heartbeat{"node-d", 99, "first", Phase::kScalerWait, 12, 3456, 2, 3, 77, {{2, 76, 900}}, "other"}},
      {9, ForecastRequest{"model = lenet\n", 8, 1000, 0.08}},
      {10, DeleteRequest{"first", "node-b"}},
      {11, FetchedRequest{"first", "node-b"}},
      {12, ExamineRequest{true, 3, 1000, 1'700'000'000'123}},
      {13, ResumeRequest{"first", "steps = 2000\n", false, 900, true, {"node-c", "node-d"}}},
      {14, LeaveRequest{"node-b", true}},
      {15, MisclassificationsRequest{"first"}},
  };
}

std::vector<Reply> sample_replies() {
  return {
      {1, Error{ErrorKind::kNotFound, "no run is named firts"}},
      {2, MeshStatus{"node-a",
                     "tgd 0.1.0",
                     true,
                     {{"node-a",
                       "10.0.0.1:7701",
                       NodeState::kUp,
                       "",
                       {"cuda", "NVIDIA H100 (device 0)", "tf32", 70, 80, "it is lost", "no reason", true}},
                      {"node-b", "10.0.0.2:7701", NodeState::kUnreachable, "nothing answers"}},
                     {sample_run(), young_run()}}},
      {3, StartReply{"first",
                     1'256'080,
                     4,
                     64,
                     16,
                     "direct",
                     "raw",
                     40'000'000,
                     0.004,
                     941.5,
                     sample_outcome(1),
                     "no peer answered",
                     {{"node-a", 48}, {"node-b", 16}},
                     0,
                     900,
                     30'000'000,
                     "2 classes",
                     "",
                     {},
                     122,
                     3904}},
      {4, StopReply{"first", RunState::kStopping}},
      {5, SliceReply{"first", "node-a", 9, std::string("a\0\xff", 3), true}},
      {6, VersionReply{"node-a", "0.1.0+0123456789ab", 4}},
      {9, DoneReply{"first", "node-b", 123456}},
      {8, sample_forecast()},
      {10, sample_examination()},
      {11, sample_diagnosis()},
      {12, Misclassifications{"first",
                              "node-a",
                              900,
                              100,
                              97,
                              2,
                              {"cat", "dog"},
                              {50, 1, 2, 47},
                              {{"dog", "cat", 2, 49}},
                              {{{"dog", 1, 1, 2, std::string("\0\xff", 2)}, "cat", 0.75}}}},
  };
}

std::string_view frame_name(const FrameBody& body) {
  static constexpr std::string_view kNames[] = {
      "hello",   "claim",   "grant",   "propose", "vote",       "commit",      "fail",     "step",   "scalers",
      "chunk",   "report",  "goodbye", "credit",  "probe",      "probe reply", "refusal",  "ended",  "offer",
      "reached", "suspect", "prepare", "promise", "outvoted",   "accept",      "accepted", "decide", "join",
      "invite",  "hold",    "feed",    "want",    "feed slice", "fed",         "leave"};
  static_assert(std::size(kNames) == std::variant_size_v<FrameBody>);
  return kNames[body.index()];
}

std::string describe(const FrameBody& body) {
  Describe describe;
  describe.text << frame_name(body) << ' ';
  std::visit(describe, body);
  return describe.text.str();
}

std::vector<std::byte> bytes_of(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

std::span<const std::byte> bytes_of(const std::string& bytes) { return std::as_bytes(std::span(bytes)); }

}  // namespace tg::schema
