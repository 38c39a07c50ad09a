#include "daemon/store/directory_id.h"

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "engine/storage/safetensors.h"
#include "kernels/base/hex.h"
#include "kernels/base/random.h"
#include "kernels/base/regular_file.h"

namespace tg::daemon {
namespace {

constexpr std::size_t kDigits = 16;

}  // namespace

Result<std::uint64_t> read_directory_id(const std::string& state_dir) {
  const std::string path = state_dir + "/" + kDirectoryIdFile;
  const Result<RegularFile> file = RegularFile::open(path, RegularFile::Links::kRefuse);
  if (!file) return Error{file.error().kind, "cannot read " + path + ": " + file.error().message};
  std::array<char, kDigits + 1> text{};
  const Result<std::size_t> got = file->read(0, std::as_writable_bytes(std::span(text)));
  const bool whole = got.ok() && *got == text.size() && file->bytes() == text.size() && text.back() == '\n';
  const std::optional<std::uint64_t> id =
      whole ? parse_hex_digest(std::string_view(text.data(), kDigits)) : std::nullopt;
  if (id && *id != 0) return *id;
  return Error{ErrorKind::kCorrupt,
               path + " is damaged; delete it: this node then takes part in runs as one that has lost its history"};
}

Result<std::uint64_t> directory_id(const std::string& state_dir) {
  Result<std::uint64_t> found = read_directory_id(state_dir);
  if (found || found.error().kind != ErrorKind::kNotFound) return found;
  std::uint64_t id = 0;
  while (id == 0) id = draw_bits();
  if (Status written = engine::write_file_atomically(state_dir + "/" + kDirectoryIdFile, hex_digest(id) + "\n");
      !written)
    return written.error();
  return id;
}

}  // namespace tg::daemon
