#include "daemon/step/threads/fault.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>

namespace tg::daemon {
namespace {

// "scaler-wait" in the option, "scaler wait" in sentences.
Result<schema::Phase> parse_phase(std::string name) {
  std::replace(name.begin(), name.end(), '-', ' ');
  for (std::uint16_t p = 0; p <= static_cast<std::uint16_t>(schema::Phase::kSave); ++p)
    if (schema::phase_name(static_cast<schema::Phase>(p)) == name) return static_cast<schema::Phase>(p);
  return Error{ErrorKind::kUsage, "fault: no phase '" + name + "'"};
}

}  // namespace

Result<Fault> Fault::parse(const std::string& text) {
  Fault fault;
  if (text.empty()) return fault;
  const std::size_t at = text.find('@'), colon = text.rfind(':');
  const Error form{ErrorKind::kUsage, "fault '" + text + "' is not of the form kill|hang|flip@PHASE:STEP"};
  if (at == std::string::npos || colon == std::string::npos || colon < at) return form;
  const std::string kind = text.substr(0, at);
  if (kind == "kill")
    fault.kind_ = Kind::kKill;
  else if (kind == "hang")
    fault.kind_ = Kind::kHang;
  else if (kind == "flip")
    fault.kind_ = Kind::kFlip;
  else
    return form;
  Result<schema::Phase> phase = parse_phase(text.substr(at + 1, colon - at - 1));
  if (!phase.ok()) return phase.error();
  fault.phase_ = *phase;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data() + colon + 1, end, fault.step_).ptr != end) return form;
  return fault;
}

void Fault::reached(schema::Phase phase, std::uint64_t step) const {
  if (is(Kind::kKill, phase, step)) std::raise(SIGKILL);
  while (is(Kind::kHang, phase, step)) pause();  // a computation that never comes back
}

}  // namespace tg::daemon
