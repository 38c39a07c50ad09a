// The kernel's counts for this process, under the names that every Prometheus client uses. Any thread; what cannot be
// read is left out.
#pragma once

#include <optional>

namespace tg::daemon {

struct ProcessNumbers {
  std::optional<double> cpu_seconds, start_seconds;  // start: Unix time
  std::optional<double> resident_bytes, virtual_bytes;
  std::optional<double> threads;
  std::optional<double> open_descriptors, max_descriptors;
};
ProcessNumbers process_numbers();

}  // namespace tg::daemon
