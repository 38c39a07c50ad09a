// The messages of tgctl doctor: an Examination has the facts that a node finds about itself and its links, a Diagnosis
// the conclusions from those of all nodes (daemon/doctor/diagnose.h). Values, described once (schema/described/rule.h);
// any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/words.h"
#include "schema/described/rule.h"
#include "schema/limits.h"

namespace tg::schema {

// In the order in which they are shown. Travels and is a key of the JSON: append only. 6 was round trips.
enum class Check : std::uint16_t {
  kNodes,          // each answers
  kConfiguration,  // peer lines
  kVersions,
  kNames,
  kPorts,  // TCP to both ports of every node from every node, and the links of the mesh
  kKeys,
  kMtu = 7,
  kClock,
  kBandwidth,
  kData,
  kDisk,
  kMemory,  // and threads
};
constexpr auto words_of(Check) {
  return words("nodes", "configuration", "versions", "names", "ports", "keys", "", "mtu", "clock", "bandwidth", "data",
               "disk", "memory");
}

// 1 was a warning.
enum class Verdict : std::uint16_t { kPass = 0, kFail = 2, kSkipped = 3 };
constexpr auto words_of(Verdict) { return words("pass", "", "fail", "skipped"); }

// The outcome of a TCP connection to a port.
enum class Reach : std::uint16_t {
  kUntried,
  kOk,
  kRefused,      // nothing listens there, or a firewall says so
  kSilent,       // no answer in time
  kUnreachable,  // no route
  kStuck,        // connected, and then not a byte: a stopped process
  kStranger,     // another program than tgd
  kNarrow,       // a tgd answers, but only small packets get there
};
constexpr auto words_of(Reach) {
  return words("untried", "ok", "refused", "silent", "unreachable", "stuck", "stranger", "narrow");
}

// One field of the matrix: how far a node gets to another one.
enum class LinkResult : std::uint8_t {
  kSelf,
  kOk,
  kMesh,     // its mesh port cannot be reached
  kControl,  // its control port cannot
  kBoth,
  kDown,     // no node reaches it
  kRefused,  // reached, but the nodes refuse each other: keys, builds, peer lines
  kUnknown,  // the node was not examined
};
constexpr auto words_of(LinkResult) { return words("-", "ok", "mesh", "control", "both", "down", "refused", "?"); }

struct ExamineRequest {
  bool local = false;         // examines the asked node alone
  std::uint8_t seconds = 0;   // for each link, both ways; 0 = none is measured
  double line_mbps = 0;       // what they should carry, 0 = not given
  std::int64_t asked_ms = 0;  // the asker's clock
};
void fields(Is<ExamineRequest> auto& it, auto&& field) {
  field("seconds", it.seconds, up_to(kMaxExamineSeconds));
  field("local", it.local);
  field("line_mbps", it.line_mbps, up_to(kMaxLineMbps).called("line rate"));
  field("asked_ms", it.asked_ms);
}

struct LinkFacts {
  std::string peer, line;    // this node's line has only these
  std::string address;       // that was connected to
  std::string name_problem;  // "Name or service not known"
  Reach mesh = Reach::kUntried, control = Reach::kUntried;
  std::uint32_t mtu = 0;  // that connection's
  std::string device;
  bool up = false;
  std::string problem;         // as the mesh says
  bool waiting_helps = false;  // false: another build, key, name
  std::string refusal;         // why the control ports refuse each other's keys
  double mbps = 0;             // payload, 0 = not measured
};
void fields(Is<LinkFacts> auto& it, auto&& field) {
  field("peer", it.peer, node_name());
  field("line", it.line, line(kMaxAddressBytes).called("peer line"));
  field("address", it.address, line(kMaxAddressBytes));
  field("name_problem", it.name_problem, line(kMaxSentenceBytes));
  field("mesh", it.mesh, called("mesh port"));
  field("control", it.control, called("control port"));
  field("mtu", it.mtu);
  field("device", it.device, word());
  field("up", it.up);
  field("problem", it.problem, line(kMaxSentenceBytes).called("link problem"));
  field("waiting_helps", it.waiting_helps);
  field("refusal", it.refusal, line(kMaxSentenceBytes));
  field("mbps", it.mbps, real().called("link rate"));
}

struct DataFacts {
  std::string set;
  std::uint64_t hash = 0;  // covers the files' contents, or for a folder of pictures their names
  std::string problem;
};
void fields(Is<DataFacts> auto& it, auto&& field) {
  field("set", it.set, word().called("data set"));
  field("hash", it.hash);
  field("problem", it.problem, line(kMaxSentenceBytes).called("data problem"));
}

struct Examination {
  std::string node, build;
  std::int64_t asked_ms = 0, received_ms = 0, answered_ms = 0;  // Unix time: the asker's clock, then the node's own
  std::string busy;                                             // why nothing that disturbs was done
  // "what is wrong; what to do"; run_problem: why its run is PAUSED
  std::string key_problem, disk_problem, memory_problem, run_problem;
  std::string data_dir;
  std::vector<DataFacts> data;   // the sets that lie there
  std::string unfinished;        // the check that did not end in time
  std::vector<LinkFacts> links;  // in the order of seats, this node's too
};
void fields(Is<Examination> auto& it, auto&& field) {
  field("node", it.node, node_name());
  field("build", it.build, line(kMaxBuildBytes));
  field("asked_ms", it.asked_ms);
  field("received_ms", it.received_ms);
  field("answered_ms", it.answered_ms);
  field("busy", it.busy, line(kMaxSentenceBytes));
  field("key_problem", it.key_problem, line(kMaxSentenceBytes));
  field("disk_problem", it.disk_problem, line(kMaxSentenceBytes));
  field("memory_problem", it.memory_problem, line(kMaxSentenceBytes));
  field("run_problem", it.run_problem, line(kMaxSentenceBytes));
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
  std::string node;  // the asked one
  std::vector<std::string> nodes;
  std::vector<Finding> findings;  // in the order of checks
  std::uint32_t left_out = 0;     // findings beyond kMaxFindings
  // From each node to each node, row by row.
  std::vector<LinkResult> reach;
  std::vector<float> mbps;  // 0 = not measured
};
void fields(Is<Diagnosis> auto& it, auto&& field) {
  field("node", it.node, node_name());
  field("nodes", it.nodes, list(kMaxMembers, node_name()).called("node"));
  field("findings", it.findings, list(kMaxFindings));
  field("left_out", it.left_out);
  field("reach", it.reach, called("cell"));
  field("mbps", it.mbps, real().called("link rate"));
}
inline std::string validation_error(const Diagnosis& it) {
  const std::size_t pairs = it.nodes.size() * it.nodes.size();
  const bool whole = it.reach.size() == pairs && it.mbps.size() == pairs;
  return whole ? "" : "a matrix has another number of cells than there are pairs of nodes";
}

}  // namespace tg::schema
