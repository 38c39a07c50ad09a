#include "engine/storage/file_content.h"

#include <fstream>
#include <iterator>

namespace tg::engine {

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace tg::engine
