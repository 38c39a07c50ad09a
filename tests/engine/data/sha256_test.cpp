#include "engine/storage/sha256.h"

#include <gtest/gtest.h>

namespace tg {
namespace {

std::string hash(const std::string& text, std::size_t piece) {
  Sha256 sha;
  for (std::size_t at = 0; at < text.size(); at += piece)
    sha.add(std::as_bytes(std::span(text).subspan(at, std::min(piece, text.size() - at))));
  return sha.hex();
}

// The standard's examples; the last one by sha256sum.
TEST(Sha256, IsTheStandards) {
  const std::pair<std::string, const char*> examples[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1'000'000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
      {std::string(119, 'x'), "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c"},
  };
  for (const auto& [text, expected] : examples)
    for (const std::size_t piece : {1, 3, 64, 65, 1'000'000}) EXPECT_EQ(hash(text, piece), expected) << text.size();
}

}  // namespace
}  // namespace tg
