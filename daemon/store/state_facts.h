// What a state file says of itself in its metadata (texts by name, which a safetensors file may carry):
//
//   format    "pt"
//   run       the run's id
//   key       of the lineage: 16 hexadecimal digits
//   lineage, view, step, digest    which state it is; the digest in hexadecimal
//   spec      canonical job of that lineage
//   counters  JSON: what status goes on from
//   description, best-step, and the hashes    store/artefacts.h
//
// The version before had neither key, lineage, spec nor counters: lineage 1. All members write the same. Pure values;
// any thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "kernels/base/status.h"
#include "schema/control/status.h"
#include "schema/described/rule.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

// What status shows of the step itself and does not compute anew.
struct StateCounters {
  double loss = 0, learning_rate = 0;
  bool evaluated = false;
  std::uint64_t evaluation_step = 0;
  double evaluation_accuracy = 0, evaluation_accuracy_5 = 0, evaluation_loss = 0;
  double best_accuracy = 0;
  std::uint64_t best_step = 0;
};
void fields(schema::Is<StateCounters> auto& it, auto&& field) {
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
StateCounters counters_of(const schema::RunStatus& status);
void show(const StateCounters& counters, schema::RunStatus& status);

struct StateFacts {
  std::string run;
  std::uint64_t key = 0;  // 0: written by the version before
  schema::StateId id;
  std::string spec;
  StateCounters counters;
};

// Of these a model file says nothing: they are for going on.
inline constexpr std::array<const char*, 4> kStateOnly = {"key", "lineage", "spec", "counters"};

std::map<std::string, std::string> metadata_of(const StateFacts& facts);
// An error (kCorrupt) is a phrase that follows the file's name: "is damaged: its metadata have no step".
Result<StateFacts> facts_in(const std::map<std::string, std::string>& metadata);

}  // namespace tg::daemon
