// Float payloads, as a peer might send them. Byte 0: the blocks of the chunk (mod 4); the rest is the payload. Each
// variant gives the scalar variant's verdict and values; what is not a number is so everywhere.
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "daemon/step/float_payload.h"
#include "kernels/host_memory_space.h"
#include "kernels/kernels.h"

namespace {

using namespace tg;

using Floats = std::vector<float>;

struct Taken {
  bool read = false, added = false;
  Floats values, sums;
};

Taken taken(const kernels::Kernels& kernels, const daemon::ChunkLayout& chunk, std::span<const std::byte> payload) {
  kernels::HostMemorySpace space(kernels);
  const auto tensors = space.make_kernels();
  const daemon::FloatPayload floats(*tensors, kernels);
  Taken got{.values = Floats(chunk.size()), .sums = Floats(chunk.size(), 0.25f)};
  got.read = floats.read(chunk, payload, got.values);
  got.added = floats.add(chunk, payload, got.sums);
  return got;
}

bool same(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> payload = std::as_bytes(std::span(data + 1, size - 1));
  for (const schema::GradientFormat format : {schema::GradientFormat::kFloat16, schema::GradientFormat::kFloat32}) {
    daemon::ChunkLayout chunk;
    chunk.end = (1 + data[0] % 4) * kernels::kBlock;
    chunk.format = format;
    const Taken want = taken(*kernels::available().back(), chunk, payload);
    TG_CHECK(want.read == want.added && want.read == (payload.size() == daemon::FloatPayload::bytes(chunk)));
    for (const kernels::Kernels* const variant : kernels::available()) {
      const Taken got = taken(*variant, chunk, payload);
      TG_CHECK(got.read == want.read && got.added == want.added, variant->name);
      if (!want.read) continue;
      for (std::size_t i = 0; i < chunk.size(); ++i)
        TG_CHECK(same(got.values[i], want.values[i]) && same(got.sums[i], want.sums[i]), variant->name, i);
    }
  }
  return 0;
}
