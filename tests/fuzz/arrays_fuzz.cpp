// Any bytes as an array in a file (.npy, IDX): an error that names the file, or exactly what the header promises.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "engine/data/files/array.h"
#include "engine/data/limits.h"
#include "kernels/base/check.h"

namespace {

using namespace tg::engine;

ReadNext reader(std::span<const std::uint8_t> bytes) {
  return [left = bytes](std::size_t most, std::vector<std::uint8_t>& out) mutable -> tg::Status {
    const std::size_t count = std::min(most, left.size());
    out.assign(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(count));
    left = left.subspan(count);
    return {};
  };
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  for (const ArrayFormat format : {ArrayFormat::kNpy, ArrayFormat::kIdx}) {
    std::size_t seen = 0;
    const Seen count = [&](std::span<const std::uint8_t> piece) { seen += piece.size(); };
    const auto samples = read_samples(format, reader(bytes), count, "file");
    TG_CHECK(seen <= size, seen, size);
    if (samples) {
      TG_CHECK(seen == size, seen, size);
      std::uint64_t elements = 1;
      for (const std::uint64_t extent : samples->shape) elements *= extent;
      TG_CHECK(samples->bytes.size() + samples->floats.size() == elements, elements);
      for (const float value : samples->floats) TG_CHECK(std::isfinite(value));
    } else {
      TG_CHECK(samples.error().message.starts_with("file "), samples.error().message);
    }
    const auto labels = read_labels(format, reader(bytes), count, "file");
    if (labels) {
      for (const std::uint16_t label : *labels) TG_CHECK(label < kMaxClasses, int{label});
    } else {
      TG_CHECK(labels.error().message.starts_with("file "), labels.error().message);
    }
  }
  return 0;
}
