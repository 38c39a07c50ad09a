// Any bytes as each kind of data file: the parsers give an error or exactly what the bytes hold.
#include <cstdint>
#include <string>

#include "engine/data/files/cifar.h"
#include "engine/data/files/idx.h"
#include "kernels/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tg::engine;
  const std::span<const std::uint8_t> bytes(data, size);
  if (const auto images = parse_idx_images(bytes, "file")) {
    TG_CHECK(images->pixels.size() + 16 == size, size);
    TG_CHECK(images->pixels.size() % images->stored.elements() == 0, size);
  }
  if (const auto labels = parse_idx_labels(bytes, 10, "file")) {
    TG_CHECK(labels->size() + 8 == size, size);
    for (const std::uint16_t label : *labels) TG_CHECK(label < 10, int{label});
  }
  for (const CifarFormat& format : {kCifar10Format, kCifar100Format}) {
    ImageSet set;
    if (parse_cifar_batch(bytes, format, "file", set).ok()) {
      TG_CHECK(set.count() * format.record_bytes() == size, size);
      TG_CHECK(set.pixels.size() == set.count() * set.stored.elements(), size);
    }
  }
  return 0;
}
