// The parts that both decoders share: from untrusted bytes to a Cap'n Proto reader, and the bounds of single fields.
// Functions that refuse throw Odd. guarded() catches it, and kj's exceptions too, so nothing is thrown out of
// frame_decode.cpp and control*.cpp.
#pragma once

#include <capnp/common.h>
#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>

#include "kernels/base/status.h"
#include "kernels/base/words.h"

namespace tg::schema {

inline constexpr std::size_t kWordBytes = sizeof(capnp::word);
inline constexpr std::size_t kTableWords = 1;  // u32 segments - 1, u32 words

// Says in words what is odd about a message.
struct Odd {
  std::string what;
};

// One message's words at an 8-byte boundary: the caller's bytes if they are aligned, else a copy. Refuses a size that
// is not a whole number of words, more than most_bytes, more than one segment, and a segment table that disagrees.
class AlignedMessage {
 public:
  AlignedMessage(std::span<const std::byte> bytes, std::size_t most_bytes);
  kj::ArrayPtr<const capnp::word> words() const { return words_; }
  // The caller's bytes behind a part of words().
  std::span<const std::byte> original(kj::ArrayPtr<const kj::byte> part) const;

 private:
  std::span<const std::byte> bytes_;
  std::unique_ptr<std::uint64_t[]> copy_;
  kj::ArrayPtr<const capnp::word> words_;
};

// Cap'n Proto counts the words that are read, and counts a list again with each getter: here each word may be read
// twice. Pointers may nest as deep as the schema does, with room to grow.
capnp::ReaderOptions reader_options(std::size_t words);

// A check of a field; `field` is its name in the refusal.
std::uint64_t checked_below(std::uint64_t value, std::uint64_t bound, const char* field);

// One of the enum's values, of which it has as many as words.
template <class Enum>
Enum checked_enum(std::uint64_t value, const char* field) {
  return static_cast<Enum>(checked_below(value, words_of(Enum()).size(), field));
}

// Runs `read` and turns whatever it throws into an error.
template <class Value, class Read>
Result<Value> guarded(const char* what, Read read) {
  const auto corrupt = [what](std::string why) {
    return Error{ErrorKind::kCorrupt, std::string("bad ") + what + ": " + std::move(why)};
  };
  try {
    return read();
  } catch (const Odd& odd) {
    return corrupt(odd.what);
  } catch (const kj::Exception& exception) {
    return corrupt(exception.getDescription().cStr());
  } catch (const std::exception& exception) {
    return corrupt(exception.what());
  }
}

inline capnp::Text::Reader text_of(const std::string& text) { return {text.data(), text.size()}; }

}  // namespace tg::schema
