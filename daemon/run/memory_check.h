// Checks whether a run's memory fits a node: before anything is allocated, with the minimum over all exchanges, and
// again when the exchange has been chosen. A machine that runs out of memory may kill any process.
#pragma once

#include <cstdint>
#include <string>

#include "engine/compute_device.h"
#include "engine/model.h"
#include "kernels/base/status.h"
#include "schema/options/job.h"

namespace tg::daemon {

// needed: bytes of the whole run, of which `held` are already allocated. configured: the limit (the node's memory-mib);
// 0 = the free memory of this machine and its control groups. The error says what to do.
Status check_memory(std::uint64_t needed, std::uint64_t held, std::uint64_t configured);

// The same for a device: `needed` bytes of its memory in addition to the reserve `kept` (device_reserve), with nothing
// allocated yet.
Status check_device_memory(std::uint64_t needed, std::uint64_t kept, const engine::ComputeDevice& device);

// The part of a device's memory that no engine may plan with: room for the exchange's tensor kernels, for any exchange,
// and kLazyDeviceBytes.
std::uint64_t device_reserve(const schema::JobSpec& job, const engine::Model& model, std::size_t members,
                             std::uint64_t threads);
// Memory that first calls take: lazily loaded kernels of libraries, captured graphs, streams.
inline constexpr std::uint64_t kLazyDeviceBytes = 256u << 20;

// The end of such an error: what to do about the unsaved states of earlier runs; "" without any.
std::string unsaved_note(std::uint64_t held, const std::string& runs);

// The minimum that a run takes, over all exchanges.
std::uint64_t min_run_bytes(const schema::JobSpec& job, const engine::Model& model, std::size_t members,
                            std::uint64_t threads);

// The bytes that check_memory allows a run that has allocated nothing.
std::uint64_t allowed_memory(std::uint64_t configured);

}  // namespace tg::daemon
