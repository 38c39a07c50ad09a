// What a node remembers of the good pictures of a folder, so that one that has not changed is neither read nor decoded
// again. One file for each folder of pictures, in DatasetOptions::memory_dir; at most kMaxKnownFolders of them.
//
//   file   := magic[8] count[8] picture{count} check[8]      little-endian
//   magic  := "tgdpic01"; another number where a picture, or what makes it a good one, means something else
//   check  := ContentHash of all before it
//
// A file that is torn, of another version or otherwise odd counts as none. An object is filled by its constructor and
// then constant: any thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/data/pictures/decode.h"

namespace tg::engine {

inline constexpr std::size_t kMaxKnownFolders = 16;

struct KnownPicture {      // as it lies in the file
  std::uint64_t name = 0;  // ContentHash of the file's name; 0 = nothing is known
  std::uint64_t inode = 0, bytes = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;  // changed: by anybody, whatever the file's own time says
  std::uint64_t hash = 0;                        // hash of its bytes
  std::uint32_t channels = 0, height = 0, width = 0, zero = 0;

  KnownPicture() = default;
  KnownPicture(const std::string& file, const struct stat& facts);
  bool same_file(const KnownPicture& other) const;
  PictureSize size() const;
};
static_assert(sizeof(KnownPicture) == 64 && std::has_unique_object_representations_v<KnownPicture>);

class KnownPictures {
 public:
  // memory: the folder of such files, made where there is none; "" = nothing is known, and nothing will be.
  KnownPictures(std::string memory, const std::string& directory);
  // What is known of this file as it is now; null if nothing.
  const KnownPicture* find(const KnownPicture& now) const;
  // Replaces the file, or adds to what is known; that it cannot is no harm but to the next start's speed.
  Status keep(std::vector<KnownPicture> pictures, bool add) const;

 private:
  std::string memory_, path_;
  std::vector<KnownPicture> pictures_;  // ascending by name
};

// Exposed for tests and fuzzing: the pictures of such a file, none if it is odd.
std::vector<KnownPicture> parse_known_pictures(std::span<const std::uint8_t> bytes);

}  // namespace tg::engine
