// The record of a run, and its form on disk: run.json, schema_version 1 (schema/described/json_form.h,
// JsonView::kKept). Fields that an older record lacks keep their defaults: lineage 1, from the run's beginning. Times
// are RFC 3339 UTC, hashes and digests hexadecimal strings, and a loss that is not finite is null. Pure values; any
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/store/view_interval.h"
#include "engine/storage/safetensors.h"
#include "engine/storage/sha256.h"
#include "kernels/base/status.h"
#include "schema/control/status.h"
#include "schema/described/rule.h"

namespace tg {

void fields(schema::Is<FileMark> auto& it, auto&& field) {
  field("bytes", it.bytes);
  field("sha256", it.sha256, schema::line(kSha256HexDigits));
}

}  // namespace tg

namespace tg::daemon {

struct MemberRecord {
  std::string node;
  std::string engine_build;  // for other nodes, from their votes; "" if unknown
  std::uint64_t threads = 0;
  std::string kernels;
  // engine and math are the options' words, "" in an older record; device is "" for a processor too.
  std::string engine, device, math;
  std::string engine_choices;  // algorithms chosen by timing, one line each (Engine::choices); a list in run.json
};
void fields(schema::Is<MemberRecord> auto& it, auto&& field) {
  field("node", it.node, schema::word());
  field("engine_build", it.engine_build, schema::line(schema::kMaxBuildBytes));
  field("threads", it.threads);
  field("kernels", it.kernels, schema::word());
  field("engine", it.engine, schema::word());
  field("device", it.device, schema::line(schema::kMaxDeviceBytes));
  field("math", it.math, schema::word());
  field("engine_choices", it.engine_choices, schema::lines(schema::kMaxRecordBytes));
}

struct MemberOutcome {  // how the run ended for another member, as far as known
  schema::SaveState save = schema::SaveState::kNone;
  std::string problem;
  bool operator==(const MemberOutcome&) const = default;
};
void fields(schema::Is<MemberOutcome> auto& it, auto&& field) {
  field("save", it.save);
  field("problem", it.problem, schema::line(schema::kMaxProblemBytes));
}

struct RunRecord {
  std::string id;
  std::uint64_t key = 0;  // carried by its frames; 0 = the run never began
  std::string spec;       // the canonical job; an object of strings in run.json
  std::uint64_t seed = 0;
  std::uint64_t spec_hash = 0, model_hash = 0, data_hash = 0, initial_digest = 0;
  std::string node;                       // the node that keeps the record
  std::vector<std::string> nodes;         // all nodes, by seat; empty in an older record: the first view's members
  std::vector<std::string> member_names;  // by rank
  std::vector<std::uint16_t> weights;     // by rank: the shares of a batch; empty in an older record
  MemberRecord own;
  std::uint64_t global_batch = 0;  // constant for the whole run; 0 in an older record
  std::uint32_t view = 1;
  schema::StateId from;                       // the state that this lineage began with; lineage 0 = the run's beginning
  bool unasked = false;                       // this lineage began automatically
  std::map<std::string, std::string> builds;  // the engines' builds by member, as far as known
  std::uint64_t intervals = 0;                // lines of views.jsonl
  std::string build;
  std::map<std::string, engine::FileMark> files;  // files written at the end, by name
  bool left_by_order = false;                     // it left on request, or was stopped here while PAUSED
  std::string aside;                              // why it was set aside, and the way out; "" = it was not
  std::int64_t fetched_ms = 0;                    // when its model was fetched last, from any node; 0 = never
  std::string checkpoint;                         // the file that stands for the state if there is no other
  std::map<std::string, MemberOutcome> others;    // by node
  schema::RunStatus status;                       // as of the last write; members holds this node's row only
  schema::MemberStatus& own_row();
  bool has_begun() const { return !spec.empty(); }  // false for a start that never began
};
// Covers all but spec, own and node, which are separate objects in run.json.
void fields(schema::Is<RunRecord> auto& it, auto&& field) {
  fields(it.status, field);
  field("id", it.id, schema::run_id());
  field("build", it.build, schema::line(schema::kMaxBuildBytes));
  field("seed", it.seed);
  field("global_batch", it.global_batch, schema::up_to(schema::kMaxBatch));
  field("view", it.view);
  field("from", it.from);
  field("unasked", it.unasked);
  field("builds", it.builds, schema::line(schema::kMaxBuildBytes).noun("an object of builds"));
  field("stretches", it.intervals);
  field("initial_digest", it.initial_digest, schema::plain().digest());
  field("spec_hash", it.spec_hash, schema::plain().digest().inside("hashes").named("spec"));
  field("model_hash", it.model_hash, schema::plain().digest().inside("hashes").named("model"));
  field("data_hash", it.data_hash, schema::plain().digest().inside("hashes").named("data"));
  field("member_names", it.member_names,
        schema::list(schema::kMaxMembers, schema::node_name()).named("members").noun("a list of names"));
  field("weights", it.weights,
        schema::list(schema::kMaxMembers, schema::between(1, schema::kMaxWeight)).noun("a list of weights"));
  field("nodes", it.nodes, schema::list(schema::kMaxMembers, schema::node_name()).noun("a list of names"));
  field("files", it.files, schema::plain().noun("an object of objects"));
  field("others", it.others, schema::plain().noun("an object of nodes"));
  field("key", it.key, schema::plain().digest());
  field("checkpoint", it.checkpoint, schema::word());
  field("left_by_order", it.left_by_order);
  field("aside", it.aside, schema::line(schema::kMaxReasonBytes));
  field("fetched_ms", it.fetched_ms, schema::plain().time().null());
}

// The interval that the record is in, or was in last.
ViewInterval interval_of(const RunRecord& record);

// The status to show, with a row for every member, as far as this node knows.
schema::RunStatus status_of(const RunRecord& record);

std::string record_to_json(const RunRecord& record);
// Never throws, whatever the text; an error (kCorrupt) names the first invalid field. Texts longer than schema/limits.h
// allows are clipped.
Result<RunRecord> record_from_json(const std::string& text);

}  // namespace tg::daemon
