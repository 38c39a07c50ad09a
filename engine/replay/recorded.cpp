#include "engine/replay/recorded.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

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
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff bytes = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (bytes < 0)
    return off(ErrorKind::kInvalidJob, path,
               std::string(std::strerror(errno)) + "; put the file on this node, or set replay-gradients = gaussian");
  std::vector<float> values(model.segments.parameter_count());
  const std::size_t wanted = values.size() * sizeof(float);
  if (static_cast<std::size_t>(bytes) != wanted)
    return off(ErrorKind::kInvalidJob, path,
               std::to_string(bytes) + " bytes are not the " + std::to_string(wanted) + " of the " +
                   std::to_string(values.size()) + " float32 gradients of " + model.name +
                   "; record them with this model");
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(wanted)))
    return off(ErrorKind::kIo, path, "cannot be read to its end; copy it again");
  const auto odd = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (odd != values.end())
    return off(ErrorKind::kInvalidJob, path,
               "element " + std::to_string(odd - values.begin()) + " is not finite; is this a float32 file?");
  return values;
}

}  // namespace tg::engine
