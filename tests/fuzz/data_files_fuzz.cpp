// Any bytes as each kind of data file: the parsers give an error or exactly what the bytes hold.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/file_sums.h"
#include "engine/data/files/cifar.h"
#include "engine/data/folder/known_pictures.h"
#include "kernels/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tg::engine;
  const std::span<const std::uint8_t> bytes(data, size);
  const std::vector<KnownPicture> known = parse_known_pictures(bytes);
  TG_CHECK(known.empty() || 24 + known.size() * sizeof(KnownPicture) == size, size);
  if (const auto sums = FileSums::parse(std::string_view(reinterpret_cast<const char*>(data), size)))
    TG_CHECK(FileSums::parse(sums->text())->text() == sums->text(), size);
  for (const CifarFormat& format : {kCifar10Format, kCifar100Format}) {
    ImageSet set;
    if (parse_cifar_batch(bytes, format, "file", set).ok()) {
      TG_CHECK(set.count() * format.record_bytes() == size, size);
      TG_CHECK(set.pixels.size() == set.count() * set.stored.elements(), size);
    }
  }
  return 0;
}
