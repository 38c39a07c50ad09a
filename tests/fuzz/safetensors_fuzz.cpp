// Any bytes as a checkpoint: the reader gives an error or tensors that it would write again, and never anything else.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "kernels/base/check.h"
#include "tests/engine/safetensors_files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int file = ::memfd_create("safetensors_fuzz", MFD_CLOEXEC);
  TG_CHECK(file >= 0 && ::write(file, data, size) == static_cast<ssize_t>(size), size);
  const auto loaded = tg::engine::read_safetensors("/proc/self/fd/" + std::to_string(file));
  ::close(file);
  if (!loaded) return 0;
  std::uint64_t data_bytes = 0;
  for (const auto& [name, values] : loaded->values) {
    std::uint64_t elements = 1;
    for (const std::int64_t dimension : loaded->shapes.at(name)) elements *= static_cast<std::uint64_t>(dimension);
    TG_CHECK(elements == values.size(), name, elements, values.size());
    data_bytes += values.size() * sizeof(float);
  }
  TG_CHECK(loaded->shapes.size() == loaded->values.size());
  TG_CHECK(data_bytes + 8 <= size, data_bytes, size);
  return 0;
}
