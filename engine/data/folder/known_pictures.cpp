#include "engine/data/folder/known_pictures.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <utility>

#include "engine/data/content_hash.h"
#include "engine/data/files/file_bytes.h"
#include "engine/data/limits.h"
#include "engine/storage/atomic_file.h"
#include "kernels/base/hex.h"

namespace tg::engine {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "pictures lie in the file as in memory");
constexpr char kMagic[] = {'t', 'g', 'd', 'p', 'i', 'c', '0', '1'};
constexpr std::size_t kHeadBytes = sizeof kMagic + sizeof(std::uint64_t), kCheckBytes = sizeof(std::uint64_t);
constexpr std::size_t kMaxPictures = 2 * kMaxSamples;  // for training and testing
constexpr std::size_t kMaxFileBytes = kHeadBytes + kMaxPictures * sizeof(KnownPicture) + kCheckBytes;
constexpr const char* kPrefix = "pictures-";

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

bool by_name(const KnownPicture& a, const KnownPicture& b) { return a.name < b.name; }

// Folders that are no longer used make room.
void remove_oldest(const std::string& memory) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code code;
  for (fs::directory_iterator at(memory, code), end; !code && at != end; at.increment(code)) {
    std::error_code unknown;
    const fs::file_time_type written = at->last_write_time(unknown);
    if (at->path().filename().string().starts_with(kPrefix)) files.emplace_back(written, at->path());
  }
  std::ranges::sort(files);
  for (std::size_t i = 0; i + kMaxKnownFolders < files.size(); ++i) fs::remove(files[i].second, code);
}

}  // namespace

KnownPicture::KnownPicture(const std::string& file, const struct stat& facts)
    : name(ContentHash::of(file)),
      inode(facts.st_ino),
      bytes(static_cast<std::uint64_t>(facts.st_size)),
      modified_ns(nanoseconds(facts.st_mtim)),
      changed_ns(nanoseconds(facts.st_ctim)) {}

bool KnownPicture::same_file(const KnownPicture& other) const {
  return name == other.name && inode == other.inode && bytes == other.bytes && modified_ns == other.modified_ns &&
         changed_ns == other.changed_ns;
}

PictureSize KnownPicture::size() const {
  return {static_cast<int>(channels), static_cast<int>(height), static_cast<int>(width)};
}

std::vector<KnownPicture> parse_known_pictures(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < kHeadBytes + kCheckBytes || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) return {};
  const auto number_at = [&](std::size_t at) {
    std::uint64_t number = 0;
    std::memcpy(&number, bytes.data() + at, sizeof number);
    return number;
  };
  const std::size_t end = bytes.size() - kCheckBytes, listed = end - kHeadBytes;
  if (listed % sizeof(KnownPicture) != 0 || number_at(sizeof kMagic) != listed / sizeof(KnownPicture)) return {};
  if (number_at(end) != ContentHash::of(bytes.first(end))) return {};
  std::vector<KnownPicture> pictures(listed / sizeof(KnownPicture));
  if (listed != 0) std::memcpy(pictures.data(), bytes.data() + kHeadBytes, listed);
  const auto side = [](std::uint32_t pixels) { return pixels >= 1 && pixels <= kMaxPictureSide; };
  const bool sound = std::ranges::all_of(pictures, [&](const KnownPicture& one) {
    return (one.channels == 1 || one.channels == 3) && side(one.height) && side(one.width);
  });
  return sound && std::ranges::is_sorted(pictures, by_name) ? pictures : std::vector<KnownPicture>();
}

KnownPictures::KnownPictures(std::string memory, const std::string& directory) : memory_(std::move(memory)) {
  if (memory_.empty()) return;
  std::error_code unknown;
  path_ = memory_ + "/" + kPrefix +
          hex_digest(ContentHash::of(fs::absolute(directory, unknown).lexically_normal().string()));
  std::vector<std::uint8_t> bytes;
  if (read_file(path_, kMaxFileBytes, bytes)) pictures_ = parse_known_pictures(bytes);
}

const KnownPicture* KnownPictures::find(const KnownPicture& now) const {
  const auto [first, last] = std::ranges::equal_range(pictures_, now, by_name);
  const auto found = std::find_if(first, last, [&](const KnownPicture& one) { return one.same_file(now); });
  return found == last ? nullptr : &*found;
}

Status KnownPictures::keep(std::vector<KnownPicture> pictures, bool add) const {
  if (memory_.empty()) return {};
  std::erase_if(pictures, [](const KnownPicture& one) { return one.name == 0; });
  if (add) pictures.insert(pictures.end(), pictures_.begin(), pictures_.end());
  std::ranges::stable_sort(pictures, by_name);
  const auto more = std::ranges::unique(pictures, {}, &KnownPicture::name);  // the newer one stays
  pictures.erase(more.begin(), more.end());
  pictures.resize(std::min(pictures.size(), kMaxPictures));
  std::vector<std::uint8_t> bytes(kHeadBytes + pictures.size() * sizeof(KnownPicture) + kCheckBytes);
  const std::uint64_t count = pictures.size();
  std::memcpy(bytes.data(), kMagic, sizeof kMagic);
  std::memcpy(bytes.data() + sizeof kMagic, &count, sizeof count);
  if (count != 0) std::memcpy(bytes.data() + kHeadBytes, pictures.data(), count * sizeof(KnownPicture));
  const std::uint64_t check = ContentHash::of(std::span(bytes).first(bytes.size() - kCheckBytes));
  std::memcpy(bytes.data() + bytes.size() - kCheckBytes, &check, sizeof check);
  std::error_code code;
  fs::create_directories(memory_, code);
  AtomicFile file(path_);
  if (Status status = file.open(); !status) return status;
  if (Status status = file.write(bytes.data(), bytes.size()); !status) return status;
  if (Status status = file.commit(); !status) return status;
  remove_oldest(memory_);
  return {};
}

}  // namespace tg::engine
