#include "engine/data/files/class_names.h"

#include "engine/data/files/file_bytes.h"
#include "engine/data/limits.h"

namespace tg::engine {

Result<std::vector<std::string>> read_class_names(const std::string& path, std::size_t classes) {
  std::vector<std::string> names;
  if (!path.empty()) {
    auto lines = read_lines(path);
    if (!lines) return lines.error();
    names = *std::move(lines);
    while (!names.empty() && names.back().empty()) names.pop_back();
    if (names.size() > kMostClasses) {
      return Error{ErrorKind::kCorrupt, path + " names " + std::to_string(names.size()) + " classes; at most " +
                                            std::to_string(kMostClasses)};
    }
  }
  for (std::size_t c = names.size(); c < classes; ++c) names.push_back(std::to_string(c));
  return names;
}

}  // namespace tg::engine
