// Carries out a fault requested by a test (schema/options/fault.h); does nothing in real use.
// Immutable; any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "schema/options/fault.h"

namespace tg::daemon {

class FaultInjection {
 public:
  explicit FaultInjection(std::optional<schema::Fault> fault = std::nullopt) : fault_(fault) {}

  bool is(schema::FaultKind kind, schema::Phase phase, std::uint64_t step) const {
    return fault_ == schema::Fault{kind, phase, step};
  }
  // Kills or stops the process, or hangs the calling thread, if this is the point; returns otherwise.
  void reached(schema::Phase phase, std::uint64_t step) const { execute({.phase = phase, .step = step}); }
  void reached(schema::ChangePoint point, std::uint64_t view) const { execute({.step = view, .change = point}); }

 private:
  void execute(schema::Fault at) const;

  std::optional<schema::Fault> fault_;
};

}  // namespace tg::daemon
