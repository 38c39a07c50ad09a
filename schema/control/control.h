// Control messages: what tgctl asks a node, what a node answers, and the beats that nodes send each other's control
// port. Values and their Cap'n Proto form (control.capnp); decoding checks bounds and never throws past control.cpp.
// Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/base/words.h"
#include "schema/control/doctor.h"
#include "schema/control/forecast.h"
#include "schema/limits.h"

namespace tg::schema {

enum class RunState : std::uint16_t { kPending, kStarting, kRunning, kStopping, kStopped, kCompleted, kFailed };
constexpr auto words_of(RunState) {
  return words("PENDING", "STARTING", "RUNNING", "STOPPING", "STOPPED", "COMPLETED", "FAILED");
}
Result<RunState> parse_run_state(std::string_view name);  // in any case
inline bool is_final(RunState s) { return s >= RunState::kStopped; }

// What has become of a member's state of an ended run.
enum class SaveState : std::uint16_t {
  kNone,      // nothing was said: the run goes on, or the record is an older one
  kSaved,     // on its disk
  kInMemory,  // nobody could save it: in its memory until it is fetched or deleted
  kNotSaved,  // it could not save it
  kNothing,   // it ended before it had saved
  kUnknown,   // it was lost before it said
};
inline constexpr SaveState kLastSaveState = SaveState::kUnknown;
constexpr auto words_of(SaveState) { return words("-", "saved", "in memory", "not saved", "nothing saved", "unknown"); }
inline bool has_state(SaveState s) { return s == SaveState::kSaved || s == SaveState::kInMemory; }

// Where a member is inside its step; carried by beats so that a stuck one can be named.
enum class Phase : std::uint16_t {
  kIdle,
  kPrepare,
  kForward,
  kBackward,
  kScalerWait,
  kReduce,
  kGather,
  kEvaluate,
  kSave
};
constexpr auto words_of(Phase) {
  return words("idle", "prepare", "forward", "backward", "scaler wait", "reduce", "gather", "evaluate", "save");
}

// up: both directions of both its ports work, so it could join a run. no link: it lives, but something of that does
// not.
enum class NodeState : std::uint8_t { kUp, kNoLink, kUnreachable };
constexpr auto words_of(NodeState) { return words("up", "no link", "unreachable"); }

// What trains on a node. Bytes of a device's memory, as they are now.
struct ComputeStatus {
  std::string engine;  // cpu | cuda; "" = not known
  std::string device;  // its name; "" = the processor
  std::string math;
  std::uint64_t free_bytes = 0, total_bytes = 0;
  std::string problem;          // the device does not answer; "" = nothing
  std::string why_cpu;          // although a device might; "" = nobody asked for another
  bool module_missing = false;  // because none is installed
};

struct NodeStatus {
  std::string name;
  std::string address;  // control address, host:port
  NodeState state = NodeState::kUnreachable;
  std::string problem;  // why it is not up, or what else is wrong with it; "" = nothing
  ComputeStatus compute = {};
};

// A member that the others wait for longer than this share of their time is marked: it holds the run up.
inline constexpr double kHoldsUpShare = 0.5;

// Less than this share of a member's time is no wait for data worth a word.
inline constexpr double kLeastDataWaitShare = 0.01;

struct MemberStatus {
  std::string node;
  RunState state = RunState::kPending;
  std::uint64_t step = 0;    // committed steps
  std::uint64_t digest = 0;  // of the state at digest_step
  std::uint64_t digest_step = 0;
  double wait_share = 0;  // share of their time that the others, on average, wait for this member
  // What it does, for how long it has got nothing done, and after what time of that the run ends; limit 0 = not known.
  Phase phase = Phase::kIdle;
  std::uint64_t phase_ms = 0, phase_limit_ms = 0;
  SaveState save = SaveState::kNone;  // of the state at digest_step, once the run has ended
  std::string problem = {};           // why it is not saved
  std::uint32_t samples = 0;          // of each step that are its share; 0 = not known
  double data_wait_share = 0;         // share of its time that its engine waits for samples
  bool holds_up() const {
    return (state == RunState::kRunning || state == RunState::kStopping) && wait_share > kHoldsUpShare;
  }
};

struct RunStatus {
  std::string id;
  RunState state = RunState::kPending;
  std::string reason;
  std::int64_t since_ms = 0;  // of the state
  std::int64_t started_ms = 0;
  std::string model;
  std::string data;
  std::string exchange;
  std::string coding;  // of ternary payloads: raw | entropy
  std::string gradients;
  std::uint64_t step = 0, steps = 0;
  double loss = 0;  // mean over the last step's global batch
  double learning_rate = 0;
  bool evaluated = false;
  std::uint64_t evaluation_step = 0;
  double evaluation_accuracy = 0;    // 0..1
  double evaluation_accuracy_5 = 0;  // 0..1, among the five highest; 0 of five classes or fewer
  double evaluation_loss = 0;
  double samples_per_second = 0;
  double code_bits_per_parameter = 0;  // payload bits of one member's codes per parameter
  double sent_bits_per_parameter = 0;  // everything sent, per parameter and step
  double sent_bytes_per_step = 0;      // mean of the last 64 steps, ZeroMQ framing included
  double zeros = 0;                    // share of zero codes
  std::uint64_t parameters = 0;
  std::uint64_t digest = 0;
  std::uint64_t digest_step = 0;
  std::uint64_t initial_digest = 0;
  std::vector<MemberStatus> members;
  // A run that came to its end, but not every member has its state on its disk.
  bool saved_by_all() const;
};

struct MeshStatus {
  std::string node;  // who answers
  std::string build;
  bool insecure = false;
  std::vector<NodeStatus> nodes;
  std::vector<RunStatus> runs;  // newest first
};

// Requests.
struct StatusRequest {
  std::string run;     // id or unique prefix, empty = all
  bool local = false;  // only what this node knows itself (asked by peers)
};
struct StartRequest {
  std::string spec;    // canonical job
  std::string run_id;  // empty = the node draws one
  bool dry_run = false;
};
struct StopRequest {
  std::string run;
};
struct LogsRequest {
  std::string run;
  std::string node;  // empty = the asked one; another one is asked on the client's behalf
  std::uint64_t offset = 0;
};
struct FetchRequest {
  std::string run;
  std::string node;
  std::string file;  // "model.safetensors", "model-raw.safetensors", "metrics.jsonl", "run.json"
  std::uint64_t offset = 0;
};
struct DeleteRequest {
  std::string run;   // the whole id
  std::string node;  // empty = the asked one
};
struct FetchedRequest {
  std::string run;  // the whole id
  std::string node;
};
struct VersionRequest {};
struct Beat {  // one way, node to node
  std::string node;
  std::uint64_t incarnation = 0;
  std::string run_id;  // empty = none
  Phase phase = Phase::kIdle;
  std::uint64_t step = 0;
  std::uint64_t progress = 0;  // grows whenever the member gets anything done
};
using RequestBody = std::variant<StatusRequest, StartRequest, StopRequest, LogsRequest, FetchRequest, VersionRequest,
                                 Beat, BenchRequest, ForecastRequest, DeleteRequest, FetchedRequest, ExamineRequest>;
struct Request {
  std::uint64_t id = 0;
  RequestBody body;
};

// Replies.
struct MemberShare {
  std::string node;
  std::uint64_t samples = 0;
};
// "node-a 48, node-b 16" where the shares are uneven: of equal weights they differ by one at most; else "".
std::string uneven_shares(const std::vector<MemberShare>& shares);
struct StartReply {  // what a start will do, or would do (--dry-run)
  std::string run_id;
  std::uint64_t parameters = 0;
  std::uint64_t members = 0;
  std::uint64_t global_batch = 0;
  std::uint64_t local_batch = 0;  // of the node that answers
  std::string exchange, coding;
  std::uint64_t memory_bytes = 0;  // per node
  double compute_seconds = 0;      // of a step, timed while the run was prepared
  double link_mbps = 0;            // payload: predicted with, else as measured; 0 = not
  Outcome predicted = {};
  std::int64_t measured_ms = 0;          // of the bench that it is predicted from; 0 = the kernels' speeds are assumed
  std::string unpredicted = {};          // why there is no prediction; empty = there is one
  std::vector<MemberShare> shares = {};  // of the global batch, by rank
  std::uint64_t device_bytes = 0;        // of a device's memory, beside memory_bytes; 0 = the processor computes
};
struct StopReply {
  std::string run_id;
  RunState state = RunState::kStopping;
};
struct SliceReply {  // of a log or a file
  std::string run_id;
  std::string node;
  std::uint64_t total_bytes = 0;
  std::string data;    // from the asked offset
  bool final = false;  // nothing more will come
};
struct DoneReply {  // a run was deleted, or marked as fetched
  std::string run_id;
  std::string node;
  std::uint64_t freed_bytes = 0;
};
struct VersionReply {
  std::string node, build;
  std::uint16_t protocol = kProtocolVersion;  // 0 = the node does not say
};
using ReplyBody = std::variant<Error, MeshStatus, StartReply, StopReply, SliceReply, VersionReply, BenchReply,
                               ForecastReply, DoneReply, Examination, Diagnosis>;
struct Reply {
  std::uint64_t id = 0;
  ReplyBody body;
};

std::string encode_request(const Request& request);
Result<Request> decode_request(std::span<const std::byte> bytes);
std::string encode_reply(const Reply& reply);
Result<Reply> decode_reply(std::span<const std::byte> bytes);

}  // namespace tg::schema
