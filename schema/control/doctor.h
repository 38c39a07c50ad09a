// tgctl doctor: what a node finds out about itself and its links (Examination: facts, no judgement), and what follows
// from the facts of all nodes (Diagnosis; daemon/doctor/diagnose.h decides). Values, described once
// (schema/described/rule.h); any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/words.h"
#include "schema/described/rule.h"
#include "schema/limits.h"

namespace tg::schema {

// In the order in which they are shown. Travels and is a key of the JSON: append only.
enum class Check : std::uint16_t {
  kNodes,  // who answers at all
  kConfiguration,
  kVersions,
  kNames,
  kPorts,  // TCP to both ports of every node from every node
  kKeys,
  kRoundTrip,
  kMtu,
  kClock,
  kBandwidth,
  kData,
  kDisk,
  kMemory,
  kDescriptors,
  kEngine,
};
constexpr auto words_of(Check) {
  return words("nodes", "configuration", "versions", "names", "ports", "keys", "round-trip", "mtu", "clock",
               "bandwidth", "data", "disk", "memory", "descriptors", "engine");
}

enum class Verdict : std::uint16_t { kPass, kWarn, kFail, kSkipped };
constexpr auto words_of(Verdict) { return words("pass", "warn", "fail", "skipped"); }

// What became of a TCP connection to a port.
enum class Reach : std::uint16_t {
  kUntried,
  kOk,
  kRefused,      // nothing listens there, or a firewall says so
  kSilent,       // no answer to the connection in time
  kUnreachable,  // no way there
  kStuck,        // connected, and then not a byte: a process that stands still
  kStranger,     // what listens there is no tgd
};
constexpr auto words_of(Reach) {
  return words("untried", "ok", "refused", "silent", "unreachable", "stuck", "stranger");
}

// One field of the matrix: how far a node gets to another one.
enum class Cell : std::uint8_t {
  kSelf,
  kOk,
  kMesh,     // its mesh port cannot be reached
  kControl,  // its control port cannot
  kBoth,
  kDown,     // nobody reaches it
  kRefused,  // reached, but the nodes do not get on: keys, builds, peer lines
  kUnknown,  // the node was not examined
};
constexpr auto words_of(Cell) { return words("-", "ok", "mesh", "control", "both", "down", "refused", "?"); }

struct ExamineRequest {
  bool local = false;         // of the asked node alone
  std::uint8_t seconds = 0;   // for each link, both ways; 0 = none is measured
  double line_mbps = 0;       // what they should carry, 0 = not told
  std::int64_t asked_ms = 0;  // the asker's clock
};
void fields(Is<ExamineRequest> auto& it, auto&& field) {
  field("seconds", it.seconds, up_to(kMaxExamineSeconds));
  field("local", it.local);
  field("line_mbps", it.line_mbps, up_to(kMaxLineMbps).called("line rate"));
  field("asked_ms", it.asked_ms);
}

struct LinkFacts {
  std::string peer, line;    // of the own line only these
  std::string address;       // that was connected to
  std::string name_problem;  // "Name or service not known"
  Reach mesh = Reach::kUntried, control = Reach::kUntried;
  std::string from;  // the own address of that connection
  std::uint32_t round_trip_micros = 0, mtu = 0;
  std::string device;
  std::uint32_t device_mbps = 0;  // as it says, 0 = it does not
  bool up = false;
  std::string problem;         // as the mesh says
  bool waiting_helps = false;  // false: another build, key, name
  std::string refusal;         // of the control ports, by keys
  double mbps = 0;             // payload, 0 = not measured
  std::string unmeasured;      // why
};
void fields(Is<LinkFacts> auto& it, auto&& field) {
  field("peer", it.peer, node_name());
  field("line", it.line, line(kMaxAddressBytes).called("peer line"));
  field("address", it.address, line(kMaxAddressBytes));
  field("name_problem", it.name_problem, line(kMaxSentenceBytes));
  field("mesh", it.mesh, called("mesh port"));
  field("control", it.control, called("control port"));
  field("from", it.from, line(kMaxAddressBytes).called("own address"));
  field("round_trip_micros", it.round_trip_micros);
  field("mtu", it.mtu);
  field("device", it.device, word());
  field("device_mbps", it.device_mbps);
  field("up", it.up);
  field("problem", it.problem, line(kMaxSentenceBytes).called("link problem"));
  field("waiting_helps", it.waiting_helps);
  field("refusal", it.refusal, line(kMaxSentenceBytes));
  field("mbps", it.mbps, real().called("link rate"));
  field("unmeasured", it.unmeasured, line(kMaxSentenceBytes).called("reason"));
}

struct DataFacts {
  std::string set;
  std::uint64_t hash = 0;  // of what was read: the files, or of a folder of pictures their names
  std::string problem;
  std::string seen = {};  // what is there, where a set is not of one known size
};
void fields(Is<DataFacts> auto& it, auto&& field) {
  field("set", it.set, word().called("data set"));
  field("hash", it.hash);
  field("problem", it.problem, line(kMaxSentenceBytes).called("data problem"));
  field("seen", it.seen, line(kMaxSentenceBytes).called("data seen"));
}

struct Examination {
  std::string node, build;
  std::uint16_t protocol = 0;
  std::int64_t asked_ms = 0, received_ms = 0, answered_ms = 0;  // Unix time: the asker's clock, then the node's own
  std::string busy;                                             // why nothing that disturbs was done
  std::string configuration;                                    // what is wrong with it
  bool has_keys = false;
  std::string key_problem;
  std::uint64_t disk_free = 0, disk_need = 0;  // bytes
  std::string disk_problem;
  std::uint64_t memory_left = 0, memory_need = 0;  // bytes
  std::string memory_problem;
  std::uint64_t descriptors = 0, descriptors_open = 0, descriptors_need = 0;
  std::string engine;  // what was tested
  std::string engine_problem;
  std::string data_dir;
  std::vector<DataFacts> data;   // the sets that lie there
  std::string unfinished;        // the check that did not end in time
  std::vector<LinkFacts> links;  // in the order of seats, the own one too
};
void fields(Is<Examination> auto& it, auto&& field) {
  field("node", it.node, node_name());
  field("build", it.build, line(kMaxBuildBytes));
  field("protocol", it.protocol);
  field("asked_ms", it.asked_ms);
  field("received_ms", it.received_ms);
  field("answered_ms", it.answered_ms);
  field("busy", it.busy, line(kMaxSentenceBytes));
  field("configuration", it.configuration, line(kMaxSentenceBytes));
  field("has_keys", it.has_keys);
  field("key_problem", it.key_problem, line(kMaxSentenceBytes));
  field("disk_free", it.disk_free);
  field("disk_need", it.disk_need);
  field("disk_problem", it.disk_problem, line(kMaxSentenceBytes));
  field("memory_left", it.memory_left);
  field("memory_need", it.memory_need);
  field("memory_problem", it.memory_problem, line(kMaxSentenceBytes));
  field("descriptors", it.descriptors);
  field("descriptors_open", it.descriptors_open);
  field("descriptors_need", it.descriptors_need);
  field("engine", it.engine, line(kMaxSentenceBytes));
  field("engine_problem", it.engine_problem, line(kMaxSentenceBytes));
  field("data_dir", it.data_dir, line(kMaxPathBytes).called("data-dir"));
  field("data", it.data, list(kMaxDataSets).list_called("data sets"));
  field("unfinished", it.unfinished, line(kMaxSentenceBytes));
  field("links", it.links, list(kMaxMembers));
}

struct Finding {
  Check check = Check::kNodes;
  Verdict verdict = Verdict::kPass;
  std::string node, peer;  // "" = the whole mesh; no link
  std::string seen, fix;
};
void fields(Is<Finding> auto& it, auto&& field) {
  field("check", it.check);
  field("verdict", it.verdict);
  field("node", it.node, optional_node_name().null());
  field("peer", it.peer, optional_node_name().null());
  field("seen", it.seen, line(kMaxSentenceBytes).called("what was seen"));
  field("fix", it.fix, line(kMaxSentenceBytes).null());
}

struct Diagnosis {
  std::string node;  // who was asked
  std::vector<std::string> nodes;
  std::vector<Finding> findings;  // in the order of checks
  std::uint32_t left_out = 0;     // findings beyond kMaxFindings
  // From each node to each node, row by row.
  std::vector<Cell> reach;
  std::vector<float> mbps;                       // 0 = not measured
  std::vector<std::uint32_t> round_trip_micros;  // the same
};
void fields(Is<Diagnosis> auto& it, auto&& field) {
  field("node", it.node, node_name());
  field("nodes", it.nodes, list(kMaxMembers, node_name()).called("node"));
  field("findings", it.findings, list(kMaxFindings));
  field("left_out", it.left_out);
  field("reach", it.reach, called("cell"));
  field("mbps", it.mbps, real().called("link rate"));
  field("round_trip_micros", it.round_trip_micros);
}
inline std::string validation_error(const Diagnosis& it) {
  const std::size_t pairs = it.nodes.size() * it.nodes.size();
  const bool whole = it.reach.size() == pairs && it.mbps.size() == pairs && it.round_trip_micros.size() == pairs;
  return whole ? "" : "a matrix has not as many fields as there are pairs of nodes";
}

}  // namespace tg::schema
