#include "schema/options/fault.h"

#include <algorithm>
#include <optional>

#include "schema/options/option_rows.h"

namespace tg::schema {

Result<Fault> parse_fault(std::string_view text) {
  const std::size_t at = text.find('@'), colon = text.rfind(':');
  const Error form = bad_value(text, "of the form " + joined(words_of(FaultKind()), "|") + "@PHASE:STEP");
  if (at == std::string_view::npos || colon == std::string_view::npos || colon < at) return form;
  Fault fault;
  const std::optional<FaultKind> kind = from_word<FaultKind>(text.substr(0, at));
  const auto step = parse_number<std::uint64_t>(text.substr(colon + 1));
  if (!kind || !step) return form;
  fault.kind = *kind;
  fault.step = *step;
  std::string name(text.substr(at + 1, colon - at - 1));
  std::replace(name.begin(), name.end(), '-', ' ');
  fault.disk = from_word<DiskPoint>(name);
  const bool of_disk = fault.kind == FaultKind::kFail || fault.kind == FaultKind::kFull;
  if (fault.disk && fault.kind != FaultKind::kFlip && fault.kind != FaultKind::kPause) return fault;
  if (of_disk) return bad_value(name, "open, write, fsync or rename");
  fault.change = from_word<ChangePoint>(name);
  if (fault.change && fault.kind != FaultKind::kFlip) return fault;
  const std::optional<Phase> phase = from_word<Phase>(name);
  if (!phase) return bad_value(name, "a phase of a step, such as forward, scaler-wait or reduce");
  fault.phase = *phase;
  return fault;
}

std::string format_fault(const Fault& fault) {
  std::string phase = fault.disk ? to_word(*fault.disk) : fault.change ? to_word(*fault.change) : to_word(fault.phase);
  std::replace(phase.begin(), phase.end(), ' ', '-');
  return std::string(to_word(fault.kind)) + "@" + phase + ":" + std::to_string(fault.step);
}

}  // namespace tg::schema
