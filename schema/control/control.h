// Control messages: what tgctl asks a node, what a node answers, and the beats that nodes send each other's control
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

// Requests. Their order is that of the union in control.capnp, and so is the replies'.
// Which run a beginning of an id means where several have it.
enum class Pick : std::uint8_t {
  kOnly,         // none: it has to be the only one
  kNewest,       // the newest of those that go on, else the newest
  kNewestEnded,  // the newest of those that have ended, else the newest
  kOnlyGoing,    // the only one of those that go on; if none does, the only one
};
constexpr auto words_of(Pick) { return words("only", "newest", "newest-ended", "only-going"); }

struct StatusRequest {
  std::string run;     // an id, or a beginning of one; empty = all runs, or with kNewest the newest of all
  bool local = false;  // only what this node knows itself (asked by peers)
  Pick pick = Pick::kOnly;
};
void fields(Is<StatusRequest> auto& it, auto&& field) {
  field("run", it.run, run_id_or_not());
  field("local", it.local);
  field("pick", it.pick);
}

struct StartRequest {
  std::string spec;    // canonical job
  std::string run_id;  // empty = the node draws one
  bool dry_run = false;
  std::vector<std::string> without = {};  // these nodes
  bool pictures = false;                  // a dry run that predicts nothing, and shows some of the data
};
void fields(Is<StartRequest> auto& it, auto&& field) {
  field("spec", it.spec, lines(kMaxSpecBytes));
  field("run_id", it.run_id, run_id_or_not());
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
  field("node", it.node, node_name_or_not());
}

struct LeaveRequest {
  std::string node;   // empty = the asked one
  bool back = false;  // it comes into the run again that it left so
};
void fields(Is<LeaveRequest> auto& it, auto&& field) {
  field("node", it.node, node_name_or_not());
  field("back", it.back);
}

struct LogsRequest {
  std::string run;
  std::string node;  // empty = the asked one; another one is asked on the client's behalf
  std::uint64_t offset = 0;
};
void fields(Is<LogsRequest> auto& it, auto&& field) {
  field("run", it.run, run_id());
  field("node", it.node, node_name_or_not());
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
  field("node", it.node, node_name_or_not());
  field("file", it.file, run_id());
  field("offset", it.offset);
}

struct DeleteRequest {
  std::string run;   // the whole id
  std::string node;  // empty = the asked one
};
void fields(Is<DeleteRequest> auto& it, auto&& field) {
  field("run", it.run, run_id());
  field("node", it.node, node_name_or_not());
}

struct FetchedRequest {
  std::string run;  // the whole id
  std::string node;
};
void fields(Is<FetchedRequest> auto& it, auto&& field) {
  field("run", it.run, run_id());
  field("node", it.node, node_name_or_not());
}

struct VersionRequest {};
void fields(Is<VersionRequest> auto&, auto&&) {}

struct Beat {  // one way, node to node
  std::string node;
  std::uint64_t incarnation = 0;
  std::string run_id;  // empty = none
  Phase phase = Phase::kIdle;
  std::uint64_t step = 0;
  std::uint64_t progress = 0;  // grows whenever the member gets anything done
  std::uint32_t view = 0;      // of that run
  std::uint32_t lineage = 1;   // the same: how often it has begun
};
void fields(Is<Beat> auto& it, auto&& field) {
  field("node", it.node, node_name());
  field("incarnation", it.incarnation);
  field("run_id", it.run_id, run_id_or_not());
  field("phase", it.phase);
  field("step", it.step);
  field("progress", it.progress);
  field("view", it.view);
  field("lineage", it.lineage);
}

// Goes on with a run that has ended, from a state that all its members have.
struct ResumeRequest {
  std::string run;       // the whole id
  std::string settings;  // job lines that replace those of the run: steps and what does not change the past
  bool from_newest = true;
  std::uint64_t from_step = 0;            // else this one
  bool any_build = false;                 // also where builds, processors or threads differ: the bits may, too
  std::vector<std::string> without = {};  // these nodes
};
void fields(Is<ResumeRequest> auto& it, auto&& field) {
  field("run", it.run, run_id());
  field("settings", it.settings, lines(kMaxSpecBytes));
  field("from_newest", it.from_newest);
  field("from_step", it.from_step);
  field("any_build", it.any_build);
  field("without", it.without, list(kMaxMembers, node_name()));
}

// The place of a request or a reply that nobody sends any more.
struct Obsolete {};
void fields(Is<Obsolete> auto&, auto&&) {}

using RequestBody = std::variant<StatusRequest, StartRequest, StopRequest, LogsRequest, FetchRequest, VersionRequest,
                                 Beat, Obsolete, ForecastRequest, DeleteRequest, FetchedRequest, ExamineRequest,
                                 ResumeRequest, LeaveRequest, MistakesRequest>;
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
  std::string unpredicted = {};          // why there is no prediction; empty = there is one
  std::vector<MemberShare> shares = {};  // of the global batch, by rank
  std::uint64_t device_bytes = 0;        // of a device's memory, beside memory_bytes; 0 = the processor computes
  std::uint64_t from_step = 0;           // where it begins: 0, or the state that it is resumed from
  std::uint64_t disk_bytes = 0;          // per node, of states and models
  std::string data_read = {}, data_warnings = {};  // as in RunStatus
  std::vector<SamplePicture> pictures = {};        // where they were asked for
  std::uint64_t steps = 0;                         // of the whole run
  std::uint64_t training_samples = 0;              // of an epoch
};
void fields(Is<StartReply> auto& it, auto&& field) {
  field("run_id", it.run_id, run_id_or_not());
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
  field("data_read", it.data_read, line(kMaxSeenBytes));
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

struct SliceReply {  // of a log or a file
  std::string run_id;
  std::string node;
  std::uint64_t total_bytes = 0;
  std::string data;    // from the asked offset
  bool final = false;  // nothing more will come
};
void fields(Is<SliceReply> auto& it, auto&& field) {
  field("run_id", it.run_id, run_id());
  field("node", it.node, node_name());
  field("total_bytes", it.total_bytes);
  field("data", it.data, bytes(kFileSliceBytes).called("slice bytes"));
  field("final", it.final);
}

struct DoneReply {  // a run was deleted, marked as fetched, or is left
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
                               ForecastReply, DoneReply, Examination, Diagnosis, Mistakes>;
struct Reply {
  std::uint64_t id = 0;
  ReplyBody body;
};

std::string encode_request(const Request& request);
Result<Request> decode_request(std::span<const std::byte> bytes);
std::string encode_reply(const Reply& reply);
Result<Reply> decode_reply(std::span<const std::byte> bytes);

}  // namespace tg::schema
