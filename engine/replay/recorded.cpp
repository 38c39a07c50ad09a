#include "engine/replay/recorded.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "kernels/base/regular_file.h"

namespace tg::engine {
namespace {

static_assert(std::endian::native == std::endian::little, "floats are read as they lie in the file");

Error off(ErrorKind kind, const std::string& path, const std::string& what) {
  return {kind, "replay-gradients = " + path + ": " + what};
}

}  // namespace

std::string recorded_path(std::string path, std::size_t rank) {
  constexpr std::string_view kRank = "{rank}";
  for (std::size_t at = path.find(kRank); at != std::string::npos; at = path.find(kRank, at))
    path.replace(at, kRank.size(), std::to_string(rank));
  return path;
}

Result<std::vector<float>> read_recorded(const std::string& path, const Model& model) {
  const Result<RegularFile> file = RegularFile::open(path);
  if (!file)
    return off(ErrorKind::kInvalidJob, path,
               file.error().message + "; put the file on this node, or set replay-gradients = gaussian");
  std::vector<float> values(model.segments.parameter_count());
  const std::size_t wanted = values.size() * sizeof(float);
  if (file->bytes() != wanted)
    return off(ErrorKind::kInvalidJob, path,
               std::to_string(file->bytes()) + " bytes are not the " + std::to_string(wanted) + " of the " +
                   std::to_string(values.size()) + " float32 gradients of " + model.name +
                   "; record them with this model");
  const Result<std::size_t> got = file->read(0, std::as_writable_bytes(std::span(values)));
  if (!got || *got < wanted) return off(ErrorKind::kIo, path, "cannot be read to its end; copy it again");
  const auto odd = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (odd != values.end())
    return off(ErrorKind::kInvalidJob, path,
               "element " + std::to_string(odd - values.begin()) + " is not finite; is this a float32 file?");
  return values;
}

}  // namespace tg::engine
