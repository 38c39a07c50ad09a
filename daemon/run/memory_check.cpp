#include "daemon/run/memory_check.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "daemon/membership/choose_exchange.h"
#include "daemon/step/job_layout.h"
#include "daemon/step/worker.h"
#include "engine/resources/memory.h"

namespace tg::daemon {
namespace {

std::string need(std::uint64_t bytes) { return std::to_string((bytes + (1u << 20) - 1) >> 20) + " MiB of memory"; }
std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// The layouts of every possible exchange, with the largest chunks.
std::vector<Layouts> possible_layouts(const schema::JobSpec& job, const engine::Model& model, std::size_t members) {
  std::vector<Layouts> layouts;
  for (const schema::ExchangeKind exchange : values_of<schema::ExchangeKind>())
    for (const schema::Coding coding : values_of<schema::Coding>())
      if (allowed(exchange_preference(job), exchange, coding))
        layouts.push_back(layouts_of(job, model.segments, members, {exchange, coding, schema::kMinWindowBytes}));
  return layouts;
}

}  // namespace

std::string unsaved_note(std::uint64_t held, const std::string& runs) {
  if (held == 0) return "";
  return "; " + mebibytes(held) + " are held by the unsaved state of " + runs +
         ", which could not be written: tgctl fetch gets it, and tgctl delete then frees the memory";
}

std::uint64_t min_run_bytes(const schema::JobSpec& job, const engine::Model& model, std::size_t members,
                            std::uint64_t threads) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const Layouts& layouts : possible_layouts(job, model, members))
    // Without memory for a copy, training pauses while a checkpoint is written.
    least = std::min(least, member_bytes(job, model, layouts, workers_for(threads)) - checkpoint_bytes(job, model));
  return least;
}

std::uint64_t device_reserve(const schema::JobSpec& job, const engine::Model& model, std::size_t members,
                             std::uint64_t threads) {
  std::uint64_t room = 0;  // for one worker
  for (const Layouts& layouts : possible_layouts(job, model, members)) {
    room = std::max<std::uint64_t>(room, Worker::room_bytes(layouts.layout));
    if (layouts.of_float_steps) room = std::max<std::uint64_t>(room, Worker::room_bytes(*layouts.of_float_steps));
  }
  return workers_for(threads) * room + kLazyDeviceBytes;
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
                   " are free there; stop other programs on that machine (or set memory-mib if that is wrong), or "
                   "choose a smaller model or optimizer = sgd"};
}

Status check_device_memory(std::uint64_t needed, std::uint64_t kept, const engine::ComputeDevice& device) {
  const engine::DeviceMemory memory = device.memory();
  if (needed + kept <= memory.free) return {};
  return Error{
      ErrorKind::kRefused,
      "the run needs " + need(needed + kept) + " on " + device.name() + " and " + mebibytes(memory.free) + " of its " +
          mebibytes(memory.total) + " are free (" + mebibytes(kept) +
          " of the need are reserved for the exchange and for kernels that are loaded later); stop other users of "
          "that GPU (nvidia-smi), or choose a smaller model, optimizer = sgd or "
          "a micro-batch"};
}

}  // namespace tg::daemon
