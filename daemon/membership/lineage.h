// A lineage of a run: what a resume begins. Of two, the higher by (number, key) continues, and contradicts the lower at
// a node that holds a state of it from which the higher one does not descend (daemon/README.md, "Two lineages";
// tests/model/lineages.pml). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "schema/control/control.h"

namespace tg::daemon {

struct Lineage {
  std::uint32_t number = 1;
  std::uint64_t key = 0;
  std::vector<schema::Origin> line = {};  // what it descends from, newest first
  std::uint32_t by_order = 1;             // the newest lineage that a person's start or resume began

  bool is_same(const Lineage& other) const { return number == other.number && key == other.key; }
  bool is_higher_than(const Lineage& other) const { return std::tie(number, key) > std::tie(other.number, other.key); }
};

inline Lineage lineage_of(const schema::Heartbeat& beat) { return {beat.lineage, beat.key, beat.line, beat.by_order}; }

struct Held {  // what a node holds of a run, in memory or on disk
  Lineage lineage;
  std::uint64_t step = 0;  // the newest confirmed one
};

// What a lineage of the same run is to this node.
enum class Heard : std::uint8_t {
  kSame,
  kLower,        // it ends, or its nodes come in here
  kHigher,       // this node has nothing beyond what it descends from
  kContradicts,  // higher, and this node has
};
Heard compare(const Lineage& other, const Held& own);
// Whether `one` descends from a state, or the state is the run's beginning.
bool descends_from(const Lineage& one, const Held& state);
// "node-b continues it as lineage 2, from step 10; node-a has lineage 1 at step 500"
std::string contradiction_text(const std::string& peer, const Lineage& other, const std::string& self, const Held& own);

}  // namespace tg::daemon
