// tgctl doctor: what a node finds out about itself and its links (Examination: facts, no judgement), and what follows
// from the facts of all nodes (Diagnosis; daemon/doctor/diagnose.h decides). Pure values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/words.h"

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

struct DataFacts {
  std::string set;
  std::uint64_t hash = 0;
  std::string problem;
};

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

struct Finding {
  Check check = Check::kNodes;
  Verdict verdict = Verdict::kPass;
  std::string node, peer;  // "" = the whole mesh; no link
  std::string seen, fix;
};

struct Diagnosis {
  std::string node;  // who was asked
  std::vector<std::string> nodes;
  std::vector<Finding> findings;  // in the order of checks
  std::uint32_t left_out = 0;     // findings beyond kMostFindings
  // From each node to each node, row by row.
  std::vector<Cell> reach;
  std::vector<float> mbps;                       // 0 = not measured
  std::vector<std::uint32_t> round_trip_micros;  // the same
};

}  // namespace tg::schema
