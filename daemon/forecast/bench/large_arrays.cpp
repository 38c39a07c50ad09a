#include "daemon/forecast/bench/large_arrays.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "schema/limits.h"

namespace tg::daemon {
namespace {

constexpr std::uint64_t kMebibyte = 1u << 20;
constexpr std::uint64_t kLeastBytes = 32 * kMebibyte;
// The least is far larger than a cache that is small or not known. The most can be allocated and read within the
// seconds that a bench may take.
constexpr std::uint64_t kLeastWantedBytes = 64 * kMebibyte, kMostBytes = 256 * kMebibyte;
constexpr std::uint64_t kChunkBytes = schema::kLargeChunkParameters * sizeof(float);
static_assert(kLeastBytes % kChunkBytes == 0);

}  // namespace

Result<std::size_t> large_elements(std::uint64_t cache_bytes, std::uint64_t memory_bytes) {
  const std::uint64_t most = memory_bytes / 2 / kLargeArrays;
  if (most < kLeastBytes)
    return Error{ErrorKind::kRefused, "measuring needs " + std::to_string(2 * kLargeArrays * kLeastBytes / kMebibyte) +
                                          " MiB of memory and " + std::to_string(memory_bytes / kMebibyte) +
                                          " MiB may be used there; stop what else runs on that machine, or raise "
                                          "memory-mib where this node's configuration sets it"};
  const std::uint64_t twice = std::min(cache_bytes, kMostBytes) * 2;
  const std::uint64_t bytes = std::min(std::clamp(twice, kLeastWantedBytes, kMostBytes), most);
  return static_cast<std::size_t>(bytes / kChunkBytes * kChunkBytes / sizeof(float));
}

std::uint64_t last_cache_bytes() {
  for (const int level : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (const long bytes = sysconf(level); bytes > 0) return static_cast<std::uint64_t>(bytes);
  return 0;
}

}  // namespace tg::daemon
