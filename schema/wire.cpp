#include "schema/wire.h"

#include <cstring>

namespace tg::schema {
namespace {

constexpr std::size_t kTraversalSlackWords = 1024;
constexpr int kNestingLimit = 8;

}  // namespace

AlignedMessage::AlignedMessage(std::span<const std::byte> bytes, std::size_t max_bytes) : bytes_(bytes) {
  if (bytes.size() % kWordBytes != 0 || bytes.size() < (kTableWords + 1) * kWordBytes || bytes.size() > max_bytes) {
    throw DecodeError{std::to_string(bytes.size()) + " bytes are not a message"};
  }
  std::uint32_t table[2];
  std::memcpy(table, bytes.data(), sizeof table);
  if (table[0] != 0) throw DecodeError{"more than one segment"};
  const std::size_t count = bytes.size() / kWordBytes;
  if (table[1] != count - kTableWords)
    throw DecodeError{"its segment table says " + std::to_string(table[1]) + " words"};

  const void* words = bytes.data();
  if (reinterpret_cast<std::uintptr_t>(words) % kWordBytes != 0) {
    copy_ = std::make_unique_for_overwrite<std::uint64_t[]>(count);
    std::memcpy(copy_.get(), bytes.data(), bytes.size());
    words = copy_.get();
  }
  words_ = kj::arrayPtr(static_cast<const capnp::word*>(words), count);
}

std::span<const std::byte> AlignedMessage::original(kj::ArrayPtr<const kj::byte> part) const {
  if (part.size() == 0) return {};
  const auto offset = static_cast<std::size_t>(part.begin() - words_.asBytes().begin());
  TG_CHECK(offset <= bytes_.size() && part.size() <= bytes_.size() - offset, offset, part.size(), bytes_.size());
  return bytes_.subspan(offset, part.size());
}

capnp::ReaderOptions reader_options(std::size_t words) {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = 2 * words + kTraversalSlackWords;
  options.nestingLimit = kNestingLimit;
  return options;
}

std::uint64_t checked_below(std::uint64_t value, std::uint64_t bound, const char* field) {
  if (value >= bound)
    throw DecodeError{std::string(field) + " is " + std::to_string(value) + ", at most " + std::to_string(bound - 1)};
  return value;
}

}  // namespace tg::schema
