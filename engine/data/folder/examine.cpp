#include "engine/data/folder/examine.h"

#include <atomic>

#include "engine/data/content_hash.h"
#include "engine/data/files/file_bytes.h"
#include "engine/data/folder/known_pictures.h"
#include "engine/data/limits.h"
#include "engine/data/parallel.h"

namespace tg::engine {
namespace {

// A JPEG's data are read whole whatever the scale, and damage is found in them; the pixels cost less at 1/8.
constexpr int kMinScale = 8;

// What the file is now, if it can be looked at. Opening it costs more than that, most of all over a network.
std::optional<KnownPicture> look_at(const std::string& path, const std::string& file) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return std::nullopt;
  return KnownPicture(file, facts);
}

// Also fills `known` if the file is good and has stayed the same meanwhile.
PictureFacts examine(const std::string& path, const std::string& name, KnownPicture& known) {
  PictureFacts facts;
  const auto failed = [&](const Error& problem) {
    facts.problem = problem;
    return facts;
  };
  const Result<RegularFile> file = open_data_file(path);
  if (!file) return failed(file.error());
  std::vector<std::uint8_t> bytes;
  if (const Status read = read_file(*file, path, kMaxPictureFileBytes, bytes); !read) return failed(read.error());
  facts.hash = ContentHash::of(bytes);
  facts.bytes = bytes.size();
  const Result<PictureSize> size = read_picture_size(bytes, path);
  if (!size) return failed(size.error());
  Picture picture;
  const Status decoded = decode_picture(
      bytes, [](int, int) { return kMinScale; }, path, picture);
  if (!decoded) return failed(decoded.error());
  KnownPicture now(name, file->facts());
  if (now.same_file(KnownPicture(name, file->facts_now()))) {
    now.hash = facts.hash;
    now.channels = static_cast<std::uint32_t>(size->channels);
    now.height = static_cast<std::uint32_t>(size->height);
    now.width = static_cast<std::uint32_t>(size->width);
    known = now;
  }
  facts.size = *size;
  return facts;
}

}  // namespace

std::vector<PictureFacts> examine_pictures(const DatasetOptions& options, const std::vector<std::string>& files) {
  const KnownPictures before(options.memory_dir, options.directory);
  std::vector<PictureFacts> facts(files.size());
  std::vector<KnownPicture> known(files.size());
  std::atomic<std::size_t> done{0};
  std::atomic<bool> news{false};
  const auto one = [&](std::size_t i) {
    const std::string path = options.directory + "/" + files[i];
    const std::optional<KnownPicture> now = look_at(path, files[i]);
    if (const KnownPicture* same = now ? before.find(*now) : nullptr) {
      known[i] = *same;
      facts[i] = {same->hash, same->bytes, same->size(), std::nullopt};
    } else {
      facts[i] = examine(path, files[i], known[i]);
      news = true;
    }
    options.advanced(++done, files.size());
  };
  try {
    for_each_index(files.size(), options.threads, one);
  } catch (...) {
    (void)before.keep(std::move(known), true);
    throw;
  }
  if (news) (void)before.keep(std::move(known), false);
  return facts;
}

}  // namespace tg::engine
