// Whether a run's memory fits a node. Asked before anything is taken, with the least that any exchange needs, and again
// when the exchange has been chosen: a machine without memory kills whom it likes.
#pragma once

#include <cstdint>
#include <string>

#include "engine/compute_device.h"
#include "engine/model.h"
#include "kernels/base/status.h"
#include "schema/options/job.h"

namespace tg::daemon {

// needed: bytes of the whole run, of which `held` have been taken already. configured: what it may take at most (the
// node's memory-mib); 0 = what this machine and its control groups have left. The error says what to do.
Status check_memory(std::uint64_t needed, std::uint64_t held, std::uint64_t configured);

// The same of a device, of whose memory the run needs so much, beside what is kept (device_reserve), and has taken
// nothing yet.
Status check_device_memory(std::uint64_t needed, std::uint64_t kept, const engine::ComputeDevice& device);

// The part of a device's memory that no engine may plan with: room for the exchange's tensor kernels, whichever
// exchange will be chosen, and kLazyDeviceBytes.
std::uint64_t device_reserve(const schema::JobSpec& job, const engine::Model& model, std::size_t members,
                             std::uint64_t threads);
// What comes with first calls: kernels that libraries load lazily, captured graphs, streams.
inline constexpr std::uint64_t kLazyDeviceBytes = 256u << 20;

// " (of 64 MiB are held ...)": what to do about unsaved states of earlier runs, for the end of such an error; "" if
// none are held.
std::string unsaved_note(std::uint64_t held, const std::string& runs);

// What a run takes at the least, whatever exchange will be chosen.
std::uint64_t least_run_bytes(const schema::JobSpec& job, const engine::Model& model, std::size_t members,
                              std::uint64_t threads);

// Bytes that it would allow a run of which nothing has been taken.
std::uint64_t allowed_memory(std::uint64_t configured);

}  // namespace tg::daemon
