// Runs a fuzz entry over a folder of inputs, then over seeded mutations of each, so that every build exercises the
// entry without a fuzzer. Arguments: the corpus folder, which has the entry's name, then optionally the mutations per
// file (default 200) and the seed. Exit status 1 if the folder holds no file: a replay of nothing proves nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#define TG_FUZZ_ENTRY(name) extern "C" int fuzz_##name(const std::uint8_t* data, std::size_t size);
#include "entries.inc"  // made by CMakeLists.txt
#undef TG_FUZZ_ENTRY

namespace {

struct Entry {
  std::string_view name;
  int (*run)(const std::uint8_t* data, std::size_t size);
};

#define TG_FUZZ_ENTRY(name) {#name, fuzz_##name},
constexpr Entry kEntries[] = {
#include "entries.inc"
};

using Bytes = std::vector<std::uint8_t>;

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A few flips, then perhaps a cut or some bytes more.
Bytes mutated(Bytes bytes, std::mt19937_64& random) {
  for (std::uint64_t flips = 1 + random() % 4; flips > 0 && !bytes.empty(); --flips) {
    bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1U << random() % 8);
  }
  if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
  if (random() % 4 == 0) bytes.resize(bytes.size() + random() % 16, static_cast<std::uint8_t>(random()));
  return bytes;
}

// A copy of exactly the input's size on the heap, so that a sanitizer sees the first byte read past it.
void run(const Entry& entry, const Bytes& bytes) {
  std::uint8_t* const copy = new std::uint8_t[bytes.size()];
  std::copy(bytes.begin(), bytes.end(), copy);
  entry.run(copy, bytes.size());
  delete[] copy;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CORPUS [MUTATIONS [SEED]]\n", argv[0]);
    return 2;
  }
  const unsigned long mutations = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 200;
  const unsigned long seed = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1;
  const std::string name = std::filesystem::path(argv[1]).filename();
  const auto* const entry = std::ranges::find(kEntries, name, &Entry::name);
  if (entry == std::end(kEntries)) {
    std::fprintf(stderr, "%s: no fuzz entry has the name of this folder\n", argv[1]);
    return 2;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(argv[1])) {
    if (file.is_regular_file()) files.push_back(file.path());
  }
  std::ranges::sort(files);
  std::mt19937_64 random(seed);
  for (const auto& path : files) {
    std::printf("%s, seed %lu\n", path.c_str(), seed);
    std::fflush(stdout);
    const Bytes bytes = read_file(path);
    run(*entry, bytes);
    for (unsigned long m = 0; m < mutations; ++m) run(*entry, mutated(bytes, random));
  }
  std::printf("%zu files, %lu mutations of each\n", files.size(), mutations);
  return files.empty() ? 1 : 0;
}
