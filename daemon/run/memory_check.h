// Whether a run's memory fits a node. Checked before anything is allocated, with the least that any exchange needs, and
// again when the exchange has been chosen: a machine that runs out of memory may kill any process.
#pragma once

#include <cstdint>
#include <string>

#include "engine/compute_device.h"
#include "engine/model.h"
#include "kernels/base/status.h"
#include "schema/options/job.h"

namespace tg::daemon {

// needed: bytes of the whole run, of which `held` have already been allocated. configured: the most it may take (the
// node's memory-mib); 0 = what this machine and its control groups have left. The error says what to do.
Status check_memory(std::uint64_t needed, std::uint64_t held, std::uint64_t configured);

// As check_memory for a device: `needed` bytes of its memory besides the reserve `kept` (device_reserve), with nothing
// allocated yet.
Status check_device_memory(std::uint64_t needed, std::uint64_t kept, const engine::ComputeDevice& device);

// The part of a device's memory that no engine may plan with: room for the exchange's tensor kernels, whichever
// exchange will be chosen, and kLazyDeviceBytes.
std::uint64_t device_reserve(const schema::JobSpec& job, const engine::Model& model, std::size_t members,
                             std::uint64_t threads);
// Memory taken by first calls: kernels that libraries load lazily, captured graphs, streams.
inline constexpr std::uint64_t kLazyDeviceBytes = 256u << 20;

// " (of 64 MiB are held ...)": what to do about unsaved states of earlier runs, for the end of such an error; "" if
// none are held.
std::string unsaved_note(std::uint64_t held, const std::string& runs);

// The least that a run takes, whichever exchange is chosen.
std::uint64_t least_run_bytes(const schema::JobSpec& job, const engine::Model& model, std::size_t members,
                              std::uint64_t threads);

// Bytes that it would allow a run of which nothing has been taken.
std::uint64_t allowed_memory(std::uint64_t configured);

}  // namespace tg::daemon
