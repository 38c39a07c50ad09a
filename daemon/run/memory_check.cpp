#include "daemon/run/memory_check.h"

#include <string>

#include "engine/host/memory.h"

namespace tg::daemon {
namespace {

std::string need(std::uint64_t bytes) { return std::to_string((bytes + (1u << 20) - 1) >> 20) + " MiB of memory"; }
std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

std::string unsaved_note(std::uint64_t held, const std::string& runs) {
  if (held == 0) return "";
  return "; " + mebibytes(held) + " are held by the unsaved state of " + runs +
         ", which nobody could write: tgctl fetch gets it, tgctl delete drops it";
}

std::uint64_t allowed_memory(std::uint64_t configured) {
  return configured != 0 ? configured : engine::available_memory();
}

Status check_memory(std::uint64_t needed, std::uint64_t held, std::uint64_t configured) {
  if (configured != 0) {
    if (needed <= configured) return {};
    return Error{ErrorKind::kRefused,
                 "the run needs " + need(needed) + " and " + mebibytes(configured) +
                     " are allowed; raise memory-mib in this node's configuration, or choose a smaller model or "
                     "optimizer = sgd"};
  }
  const std::uint64_t left = engine::available_memory(), more = needed > held ? needed - held : 0;
  if (more <= left) return {};
  return Error{ErrorKind::kRefused,
               "the run needs " + need(more) + " and " + mebibytes(left) +
                   " are left there; stop what else runs on that machine (or set memory-mib, if that is wrong), or "
                   "choose a smaller model or optimizer = sgd"};
}

}  // namespace tg::daemon
