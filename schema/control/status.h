// The status of a mesh and its runs. Values, described once (schema/described/rule.h) for the control messages, for
// `tgctl status --json` and for run.json. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/base/words.h"
#include "schema/described/rule.h"
#include "schema/limits.h"

namespace tg::schema {

enum class RunState : std::uint16_t {
  kPending,
  kStarting,
  kRunning,
  kStopping,
  kStopped,
  kCompleted,
  kFailed,
  kInterrupted,  // this node is no longer in it: it was shut down, died, was evicted, or was stopped while PAUSED
  kPaused,       // quorum lost; resumes when enough members are back
};
constexpr auto words_of(RunState) {
  return words("PENDING", "STARTING", "RUNNING", "STOPPING", "STOPPED", "COMPLETED", "FAILED", "INTERRUPTED", "PAUSED");
}
Result<RunState> parse_run_state(std::string_view name);  // in upper or lower case
// True for COMPLETED, STOPPED and FAILED; such a run may be resumed all the same.
inline bool is_final(RunState s) { return s >= RunState::kStopped && s <= RunState::kFailed; }
// True for an end on which all members agree; it replaces any other that one of them has recorded.
inline bool is_authoritative(RunState s) { return s == RunState::kStopped || s == RunState::kCompleted; }
// Where two members recorded different ends of a run, the higher one holds (daemon/membership/run_outcome.h).
inline int precedence(RunState end) { return is_authoritative(end) ? 2 : end == RunState::kFailed ? 1 : 0; }
// True if the node that reports this state no longer trains the run, and will not unless it is resumed.
inline bool has_ended(RunState s) { return is_final(s) || s == RunState::kInterrupted; }

// Where a member keeps its state of an ended run.
enum class SaveState : std::uint16_t {
  kNone,      // unreported: the run is active, or its record is an older one
  kSaved,     // on its disk
  kInMemory,  // no member could save it: in memory until it is deleted, or the disk has room
  kNotSaved,  // saving failed
  kNothing,   // the process ended before it had saved
  kUnknown,   // the member was lost before it reported
};
constexpr auto words_of(SaveState) { return words("-", "saved", "in memory", "not saved", "nothing saved", "unknown"); }
inline bool has_state(SaveState s) { return s == SaveState::kSaved || s == SaveState::kInMemory; }

// A member's position inside its step; heartbeats carry it so that a stuck member can be named.
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

// up: both directions of both its ports work, so it could join a run. no link: it is alive, but one of them does not
// work.
enum class NodeState : std::uint8_t { kUp, kNoLink, kUnreachable };
constexpr auto words_of(NodeState) { return words("up", "no link", "unreachable"); }

// The engine that trains on a node, and a device's memory at present.
struct ComputeStatus {
  std::string engine;  // cpu | cuda; "" = not known
  std::string device;  // its name; "" = the processor
  std::string math;
  std::uint64_t free_bytes = 0, total_bytes = 0;
  std::string problem;          // the device does not answer; "" = nothing
  std::string why_cpu;          // why the processor trains although a device might; "" = no device was configured
  bool module_missing = false;  // no module for a device is installed
};
void fields(Is<ComputeStatus> auto& it, auto&& field) {
  field("engine", it.engine, word());
  field("device", it.device, line(kMaxDeviceBytes).null());
  field("math", it.math, word());
  field("free_bytes", it.free_bytes, plain().named("memory_free_bytes"));
  field("total_bytes", it.total_bytes, plain().named("memory_total_bytes"));
  field("problem", it.problem, line(kMaxReasonBytes));
  field("why_cpu", it.why_cpu, line(kMaxReasonBytes).called("reason"));
  field("module_missing", it.module_missing, plain().not_shown());
}

struct NodeStatus {
  std::string name;
  std::string address;  // control address, host:port
  NodeState state = NodeState::kUnreachable;
  std::string problem;  // why it is not up, or what else is wrong with it; "" = nothing
  ComputeStatus compute = {};
};
void fields(Is<NodeStatus> auto& it, auto&& field) {
  field("name", it.name, node_name().called("node"));
  field("address", it.address, line(kMaxAddressBytes));
  field("state", it.state, called("node state"));
  field("problem", it.problem, line(kMaxReasonBytes));
  field("compute", it.compute);
}

// A member that the others wait for longer than this share of their time is marked as slowing the run down.
inline constexpr double kHoldsUpShare = 0.5;

// Waits for data below this share of a member's time are not shown.
inline constexpr double kMinDataWaitShare = 0.01;

inline constexpr const char* kStateNoun = "a state of a run";

struct MemberStatus {
  std::string node;
  RunState state = RunState::kPending;
  std::uint64_t step = 0;    // committed steps
  std::uint64_t digest = 0;  // digest of the state at digest_step
  std::uint64_t digest_step = 0;
  double wait_share = 0;  // share of their time that the others, on average, wait for this member
  // The present phase, the time without progress, and the time without progress after which it is evicted; limit 0 =
  // not known.
  Phase phase = Phase::kIdle;
  std::uint64_t phase_ms = 0, phase_limit_ms = 0;
  SaveState save = SaveState::kNone;       // where the state at digest_step is, once the run has ended
  std::string problem = {};                // why it is not saved; with kNone, why the node does not report itself
  std::uint32_t samples = 0;               // its share of each step; 0 = not known
  double data_wait_share = 0;              // share of its time that its engine waits for samples
  std::vector<std::uint64_t> states = {};  // steps of the states on its disk that a resume may begin at, newest first
  double waiting_share = 0;                // share of its time that it waits for other members
  std::uint32_t seniority = 0;             // its position in the present view, 1 = the most senior; 0 = not known
  bool is_heard() const { return save != SaveState::kNone || problem.empty(); }
  bool holds_up() const {
    return (state == RunState::kRunning || state == RunState::kStopping) && wait_share > kHoldsUpShare;
  }
};
void fields(Is<MemberStatus> auto& it, auto&& field) {
  field("node", it.node, node_name().called("member"));
  field("state", it.state, called("member state").noun(kStateNoun));
  field("step", it.step);
  field("digest", it.digest, plain().digest());
  field("digest_step", it.digest_step);
  field("wait_share", it.wait_share);
  field("phase", it.phase, called("member phase").not_shown().not_kept());
  field("phase_ms", it.phase_ms, plain().not_shown().not_kept());
  field("phase_limit_ms", it.phase_limit_ms, plain().not_shown().not_kept());
  field("save", it.save);
  field("problem", it.problem, line(kMaxProblemBytes));
  field("samples", it.samples);
  field("data_wait_share", it.data_wait_share);
  field("waiting_share", it.waiting_share);
  field("states", it.states, list(kMaxStates).not_kept());
  field("seniority", it.seniority);
}

// A node that was a member, and without which the run continued.
struct Departure {
  std::string node;
  std::int64_t since_ms = 0;
  std::uint64_t step = 0;  // at which the others continued
  std::string why;
  bool operator==(const Departure&) const = default;
};
void fields(Is<Departure> auto& it, auto&& field) {
  field("node", it.node, node_name().called("departed node"));
  field("since_ms", it.since_ms, plain().time());
  field("step", it.step);
  field("why", it.why, line(kMaxProblemBytes));
}

// The numbers of a status that a state's file keeps (daemon/store/state_facts.h), as they cannot be computed again.
struct StateCounters {
  double loss = 0;  // mean over the last step's global batch
  double learning_rate = 0;
  bool evaluated = false;
  std::uint64_t evaluation_step = 0;
  double evaluation_accuracy = 0;    // 0..1
  double evaluation_accuracy_5 = 0;  // 0..1, label among the five highest; 0 with five classes or fewer
  double evaluation_loss = 0;
  double best_accuracy = 0;     // over all evaluations
  std::uint64_t best_step = 0;  // the first step with it; 0 = none yet
};
void fields(Is<StateCounters> auto& it, auto&& field) {
  field("loss", it.loss);
  field("learning_rate", it.learning_rate);
  field("evaluated", it.evaluated);
  field("evaluation_step", it.evaluation_step);
  field("evaluation_accuracy", it.evaluation_accuracy);
  field("evaluation_accuracy_5", it.evaluation_accuracy_5);
  field("evaluation_loss", it.evaluation_loss);
  field("best_accuracy", it.best_accuracy);
  field("best_step", it.best_step);
}

struct RunStatus : StateCounters {
  std::string id;
  RunState state = RunState::kPending;
  std::string reason;
  std::int64_t since_ms = 0;  // when it entered the state
  std::int64_t started_ms = 0;
  std::string model;
  std::string data;
  std::string exchange;
  std::string coding;  // raw | entropy, for ternary payloads
  std::string gradients;
  std::string last_layer;  // format of the last layer's gradient
  std::uint64_t step = 0, steps = 0;
  double samples_per_second = 0;
  double code_bits_per_parameter = 0;  // payload bits of one member's codes per parameter
  double sent_bits_per_parameter = 0;  // everything sent, per parameter and step
  double sent_bytes_per_step = 0;      // mean of the last 64 steps, ZeroMQ framing included
  double zeros = 0;                    // share of zero codes
  std::uint64_t parameters = 0;
  std::uint64_t digest = 0;
  std::uint64_t digest_step = 0;
  std::uint64_t initial_digest = 0;
  std::vector<MemberStatus> members;     // the present view's
  std::uint32_t lineage = 1;             // how often it has begun: at its start, and at each resume
  std::uint64_t from_step = 0;           // the step at which it began last
  std::uint32_t view = 1;                // the present view's number
  std::uint64_t view_step = 0;           // committed steps at which the view began
  std::int64_t view_since_ms = 0;        // when the view began
  std::vector<Departure> departed = {};  // former members, by name
  std::string next = {};                 // for an INTERRUPTED run: when the nodes resume it, or why they do not
  std::uint64_t training_samples = 0, global_batch = 0;  // per epoch, and per step; 0 = not known
  std::string data_read;      // the data it trains on (engine/data/data_summary.h); "" = replayed, or it has not begun
  std::string data_warnings;  // likely mistakes of the user in the data, a line each
  std::string settings;       // the job's keys that differ from the defaults, KEY = VALUE, a line each
  StateCounters& counters() { return *this; }
  bool has_left(std::string_view node) const;
  // False for a run that ended without the state on every member's disk.
  bool saved_by_all() const;
};
void fields(Is<RunStatus> auto& it, auto&& field) {
  field("id", it.id, run_id().called("run id"));
  field("state", it.state, called("run state").noun(kStateNoun));
  field("reason", it.reason, line(kMaxReasonBytes));
  field("since_ms", it.since_ms, plain().time());
  field("started_ms", it.started_ms, plain().time());
  field("model", it.model, word());
  field("data", it.data, word().not_shown());
  field("exchange", it.exchange, word());
  field("coding", it.coding, word());
  field("gradients", it.gradients, word().not_shown());
  field("last_layer", it.last_layer, word());
  field("step", it.step);
  field("steps", it.steps);
  field("loss", it.loss, plain().measured());
  field("learning_rate", it.learning_rate, plain().not_shown());
  field("evaluated", it.evaluated, plain().not_shown().not_kept());
  field("evaluation_step", it.evaluation_step, plain().inside("evaluation"));
  field("evaluation_accuracy", it.evaluation_accuracy, plain().inside("evaluation"));
  field("evaluation_accuracy_5", it.evaluation_accuracy_5, plain().inside("evaluation").no_key());
  field("evaluation_loss", it.evaluation_loss, plain().inside("evaluation"));
  field("best_accuracy", it.best_accuracy);
  field("best_step", it.best_step);
  field("samples_per_second", it.samples_per_second, plain().measured());
  field("code_bits_per_parameter", it.code_bits_per_parameter, plain().measured().kept_inside("traffic"));
  field("sent_bits_per_parameter", it.sent_bits_per_parameter, plain().measured().kept_inside("traffic"));
  field("sent_bytes_per_step", it.sent_bytes_per_step, plain().measured().kept_inside("traffic"));
  field("zeros", it.zeros, plain().measured().kept_inside("traffic"));
  field("parameters", it.parameters, plain().not_shown());
  field("digest", it.digest, plain().digest());
  field("digest_step", it.digest_step);
  field("initial_digest", it.initial_digest, plain().digest().not_shown());
  field("members", it.members, list(kMaxMembers).not_shown().not_kept());
  field("lineage", it.lineage);
  field("from_step", it.from_step);
  field("view", it.view, plain().not_kept());  // the record has a key of its own for it
  field("view_step", it.view_step, plain().not_kept());
  field("view_since_ms", it.view_since_ms, plain().time().not_kept());
  field("departed", it.departed, list(kMaxMembers).named("left").noun("a list of departures"));
  field("next", it.next, line(kMaxReasonBytes).not_kept());
  field("training_samples", it.training_samples);
  field("global_batch", it.global_batch, plain().not_kept());  // the record has one of its own
  field("data_read", it.data_read, line(kMaxSentenceBytes));
  field("data_warnings", it.data_warnings, lines(kMaxWarningsBytes));
  field("settings", it.settings, lines(kMaxSettingsBytes).not_kept());  // the record has the whole job
}

// True if a comes before b in lists of runs.
inline bool is_newer(const RunStatus& a, const RunStatus& b) {
  return a.started_ms != b.started_ms ? a.started_ms > b.started_ms : a.id < b.id;
}

struct MeshStatus {
  std::string node;  // the one that answers
  std::string build;
  bool insecure = false;
  std::vector<NodeStatus> nodes;
  std::vector<RunStatus> runs;  // newest first
};
void fields(Is<MeshStatus> auto& it, auto&& field) {
  field("node", it.node, node_name());
  field("build", it.build, line(kMaxBuildBytes));
  field("insecure", it.insecure);
  field("nodes", it.nodes, list(kMaxMembers));
  field("runs", it.runs, list(kMaxRunsKept));
}

}  // namespace tg::schema
