// What both decoders share: untrusted bytes become a Cap'n Proto reader, and single fields are checked against bounds.
// Functions that refuse throw DecodeError. guarded() catches it, and kj's exceptions too, so nothing is thrown out of
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

// The sentence that says why a message is refused.
struct DecodeError {
  std::string what;
};

// The words of one message at an 8-byte boundary: the caller's bytes if they are aligned, else a copy. Refuses a size
// that is not a whole number of words, more than max_bytes, more than one segment, and a segment table that disagrees.
class AlignedMessage {
 public:
  AlignedMessage(std::span<const std::byte> bytes, std::size_t max_bytes);
  kj::ArrayPtr<const capnp::word> words() const { return words_; }
  // The caller's bytes that a part of words() was read from.
  std::span<const std::byte> original(kj::ArrayPtr<const kj::byte> part) const;

 private:
  std::span<const std::byte> bytes_;
  std::unique_ptr<std::uint64_t[]> copy_;
  kj::ArrayPtr<const capnp::word> words_;
};

// Limits for a message of this size. Cap'n Proto counts each word that is read, and counts a list again with each
// getter, so each word may be read twice. Pointers may nest as deep as the schema does, with room to grow.
capnp::ReaderOptions reader_options(std::size_t words);

// Returns the value, or throws with the field's name in the sentence.
std::uint64_t checked_below(std::uint64_t value, std::uint64_t bound, const char* field);

// The enum's value with this number; words_of(Enum()) has one word for each.
template <class Enum>
Enum checked_enum(std::uint64_t value, const char* field) {
  return static_cast<Enum>(checked_below(value, words_of(Enum()).size(), field));
}

// Calls `read` and turns each exception into an error.
template <class Value, class Read>
Result<Value> guarded(const char* what, Read read) {
  const auto corrupt = [what](std::string why) {
    return Error{ErrorKind::kCorrupt, std::string("bad ") + what + ": " + std::move(why)};
  };
  try {
    return read();
  } catch (const DecodeError& odd) {
    return corrupt(odd.what);
  } catch (const kj::Exception& exception) {
    return corrupt(exception.getDescription().cStr());
  } catch (const std::exception& exception) {
    return corrupt(exception.what());
  }
}

inline capnp::Text::Reader text_of(const std::string& text) { return {text.data(), text.size()}; }

}  // namespace tg::schema
