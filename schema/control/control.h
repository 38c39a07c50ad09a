// Control messages: tgctl's requests, a node's replies, and the heartbeats that nodes send to each other's control
// port. Values, described once (schema/described/rule.h); their Cap'n Proto form is control.capnp. Decoding checks
// bounds and never throws past control.cpp. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kernels/base/status.h"
#include "schema/control/doctor.h"
#include "schema/control/forecast.h"
#include "schema/control/samples.h"
#include "schema/control/status.h"
#include "schema/limits.h"
#include "schema/version.h"

namespace tg {

void fields(schema::Is<Error> auto& it, auto&& field) {
  field("kind", it.kind);
  field("message", it.message, schema::text_rule(schema::Rule::Text::kMessage, schema::kMaxReasonBytes));
}

}  // namespace tg

namespace tg::schema {

// Requests, in the order of the union in control.capnp, as are the replies.
// How a run is chosen where several ids begin with the given prefix.
enum class Pick : std::uint8_t {
  kOnly,         // it has to be the only one
  kNewest,       // the newest active one, else the newest
  kNewestEnded,  // the newest of those that have ended, else the newest
  kOnlyActive,   // the only active one; if none is active, the only one
};
constexpr auto words_of(Pick) { return words("only", "newest", "newest-ended", "only-active"); }

struct StatusRequest {
  std::string run;     // an id or a prefix of one; empty = all runs, or with kNewest the newest of all
  bool local = false;  // only this node's own knowledge; peers ask so
  Pick pick = Pick::kOnly;
};
void fields(Is<StatusRequest> auto& it, auto&& field) {
  field("run", it.run, optional_run_id());
  field("local", it.local);
  field("pick", it.pick);
}

struct StartRequest {
  std::string spec;    // canonical job
  std::string run_id;  // empty = the node draws one
  bool dry_run = false;
  std::vector<std::string> without = {};  // nodes that take no part
  bool pictures = false;                  // a dry run without a prediction, with sample pictures
};
void fields(Is<StartRequest> auto& it, auto&& field) {
  field("spec", it.spec, lines(kMaxSpecBytes));
  field("run_id", it.run_id, optional_run_id());
  field("dry_run", it.dry_run);
  field("without", it.without, list(kMaxMembers, node_name()));
  field("pictures", it.pictures);
}

struct StopRequest {
  std::string run;
  std::string node = {};  // empty = the asked one
};
void fields(Is<StopRequest> auto& it, auto&& field) {
  field("run", it.run, run_id());
  field("node", it.node, optional_node_name());
}

struct LeaveRequest {
  std::string node;     // empty = the asked one
  bool rejoin = false;  // it comes back into the run that it left by such a request
};
void fields(Is<LeaveRequest> auto& it, auto&& field) {
  field("node", it.node, optional_node_name());
  field("rejoin", it.rejoin);
}

struct LogsRequest {
  std::string run;
  std::string node;  // empty = the asked one, which relays the request to another
  std::uint64_t offset = 0;
};
void fields(Is<LogsRequest> auto& it, auto&& field) {
  field("run", it.run, run_id());
  field("node", it.node, optional_node_name());
  field("offset", it.offset);
}

struct FetchRequest {
  std::string run;
  std::string node;
  std::string file;  // "model.safetensors", "model-raw.safetensors", "metrics.jsonl", "run.json"
  std::uint64_t offset = 0;
};
void fields(Is<FetchRequest> auto& it, auto&& field) {
  field("run", it.run, run_id());
  field("node", it.node, optional_node_name());
  field("file", it.file, run_id());
  field("offset", it.offset);
}

struct DeleteRequest {
  std::string run;   // the whole id
  std::string node;  // empty = the asked one
};
void fields(Is<DeleteRequest> auto& it, auto&& field) {
  field("run", it.run, run_id());
  field("node", it.node, optional_node_name());
}

struct FetchedRequest {
  std::string run;  // the whole id
  std::string node;
};
void fields(Is<FetchedRequest> auto& it, auto&& field) {
  field("run", it.run, run_id());
  field("node", it.node, optional_node_name());
}

struct VersionRequest {};
void fields(Is<VersionRequest> auto&, auto&&) {}

struct Origin {  // a state that a lineage descends from: the last of an earlier one
  std::uint32_t lineage = 1;
  std::uint64_t key = 0, step = 0;
  bool operator==(const Origin&) const = default;
};
void fields(Is<Origin> auto& it, auto&& field) {
  field("lineage", it.lineage);
  field("key", it.key);
  field("step", it.step);
}

struct Heartbeat {  // from node to node, without a reply
  std::string node;
  std::uint64_t incarnation = 0;
  std::string run_id;  // empty = none
  Phase phase = Phase::kIdle;
  std::uint64_t step = 0;
  std::uint64_t progress = 0;     // grows with all work that the member gets done
  std::uint32_t view = 0;         // the run's view
  std::uint32_t lineage = 1;      // the number of times that the run has begun
  std::uint64_t key = 0;          // the lineage's run key
  std::vector<Origin> line = {};  // what the lineage descends from, newest first
  std::string ended_run = {};     // without a run: the one that lineage, key and line are of
  std::uint32_t by_order = 1;     // the newest lineage that a person's start or resume began
  const std::string& lineage_run() const { return run_id.empty() ? ended_run : run_id; }
};
void fields(Is<Heartbeat> auto& it, auto&& field) {
  field("node", it.node, node_name());
  field("incarnation", it.incarnation);
  field("run_id", it.run_id, optional_run_id());
  field("phase", it.phase);
  field("step", it.step);
  field("progress", it.progress);
  field("view", it.view);
  field("lineage", it.lineage);
  field("key", it.key);
  field("line", it.line, list(kMaxOrigins));
  field("ended_run", it.ended_run, optional_run_id());
  field("by_order", it.by_order);
}

// Resumes a run that has ended, from a state that all its members have.
struct ResumeRequest {
  std::string run;       // the whole id
  std::string settings;  // job lines that replace the run's: steps, and others that do not change the past
  bool from_newest = true;
  std::uint64_t from_step = 0;            // used where from_newest is false
  bool any_build = false;                 // builds, processors or threads may differ, and so may the bits
  std::vector<std::string> without = {};  // nodes that take no part
  std::string node = {};                  // empty = the asked one
};
void fields(Is<ResumeRequest> auto& it, auto&& field) {
  field("run", it.run, run_id());
  field("settings", it.settings, lines(kMaxSpecBytes));
  field("from_newest", it.from_newest);
  field("from_step", it.from_step);
  field("any_build", it.any_build);
  field("without", it.without, list(kMaxMembers, node_name()));
  field("node", it.node, optional_node_name());
}

// The place of a request or a reply that is no longer sent.
struct Obsolete {};
void fields(Is<Obsolete> auto&, auto&&) {}

using RequestBody = std::variant<StatusRequest, StartRequest, StopRequest, LogsRequest, FetchRequest, VersionRequest,
                                 Heartbeat, Obsolete, ForecastRequest, DeleteRequest, FetchedRequest, ExamineRequest,
                                 ResumeRequest, LeaveRequest, MisclassificationsRequest>;
struct Request {
  std::uint64_t id = 0;
  RequestBody body;
};

// Replies.
struct MemberShare {
  std::string node;
  std::uint64_t samples = 0;
};
void fields(Is<MemberShare> auto& it, auto&& field) {
  field("node", it.node, node_name());
  field("samples", it.samples);
}

// "node-a 48, node-b 16" where shares differ by more than one, which equal weights never do; else "".
std::string uneven_shares(const std::vector<MemberShare>& shares);
struct StartReply {  // the plan of a start, or of one that is not made (--dry-run)
  std::string run_id;
  std::uint64_t parameters = 0;
  std::uint64_t members = 0;
  std::uint64_t global_batch = 0;
  std::uint64_t local_batch = 0;  // the answering node's
  std::string exchange, coding;
  std::uint64_t memory_bytes = 0;  // per node
  double compute_seconds = 0;      // for a step, timed while the run was prepared
  double link_mbps = 0;            // payload rate that the prediction uses, else as measured; 0 = not measured
  Outcome predicted = {};
  std::string unpredicted = {};                    // why there is no prediction; empty = there is one
  std::vector<MemberShare> shares = {};            // parts of the global batch, by rank
  std::uint64_t device_bytes = 0;                  // device memory, beside memory_bytes; 0 = the processor computes
  std::uint64_t from_step = 0;                     // step at which it begins: 0, or that of the resumed state
  std::uint64_t disk_bytes = 0;                    // per node, for states and models
  std::string data_read = {}, data_warnings = {};  // as in RunStatus
  std::vector<SamplePicture> pictures = {};        // empty unless the request asked for them
  std::uint64_t steps = 0;                         // for the whole run
  std::uint64_t training_samples = 0;              // per epoch
};
void fields(Is<StartReply> auto& it, auto&& field) {
  field("run_id", it.run_id, optional_run_id());
  field("parameters", it.parameters);
  field("members", it.members);
  field("global_batch", it.global_batch);
  field("local_batch", it.local_batch);
  field("exchange", it.exchange, word());
  field("coding", it.coding, word());
  field("memory_bytes", it.memory_bytes);
  field("device_bytes", it.device_bytes);
  field("compute_seconds", it.compute_seconds, real());
  field("link_mbps", it.link_mbps, real().called("link rate"));
  field("predicted", it.predicted);
  field("unpredicted", it.unpredicted, line(kMaxReasonBytes).called("reason"));
  field("shares", it.shares, list(kMaxMembers));
  field("from_step", it.from_step);
  field("disk_bytes", it.disk_bytes);
  field("data_read", it.data_read, line(kMaxSentenceBytes));
  field("data_warnings", it.data_warnings, lines(kMaxWarningsBytes));
  field("pictures", it.pictures, list(kMaxPictures));
  field("steps", it.steps);
  field("training_samples", it.training_samples);
}

struct StopReply {
  std::string run_id;
  RunState state = RunState::kStopping;
};
void fields(Is<StopReply> auto& it, auto&& field) {
  field("run_id", it.run_id, run_id());
  field("state", it.state, called("run state"));
}

struct SliceReply {  // a part of a log or a file
  std::string run_id;
  std::string node;
  std::uint64_t total_bytes = 0;
  std::string data;    // from the requested offset
  bool final = false;  // no data follow
};
void fields(Is<SliceReply> auto& it, auto&& field) {
  field("run_id", it.run_id, run_id());
  field("node", it.node, node_name());
  field("total_bytes", it.total_bytes);
  field("data", it.data, bytes(kFileSliceBytes).called("slice bytes"));
  field("final", it.final);
}

struct DoneReply {  // a run was deleted or marked as fetched, or a node leaves it
  std::string run_id;
  std::string node;
  std::uint64_t freed_bytes = 0;
};
void fields(Is<DoneReply> auto& it, auto&& field) {
  field("run_id", it.run_id, run_id());
  field("node", it.node, node_name());
  field("freed_bytes", it.freed_bytes);
}

struct VersionReply {
  std::string node, build;
  std::uint16_t protocol = kProtocolVersion;  // 0 = the node does not say
};
void fields(Is<VersionReply> auto& it, auto&& field) {
  field("node", it.node, node_name());
  field("build", it.build, line(kMaxBuildBytes));
  field("protocol", it.protocol);
}

using ReplyBody = std::variant<Error, MeshStatus, StartReply, StopReply, SliceReply, VersionReply, Obsolete,
                               ForecastReply, DoneReply, Examination, Diagnosis, Misclassifications>;
struct Reply {
  std::uint64_t id = 0;
  ReplyBody body;
};

std::string encode_request(const Request& request);
Result<Request> decode_request(std::span<const std::byte> bytes);
std::string encode_reply(const Reply& reply);
Result<Reply> decode_reply(std::span<const std::byte> bytes);

}  // namespace tg::schema
