// tgd_evaluated FOLDER SIZE OUT: the bytes that evaluation sees of a folder's test pictures, as the usual recipe makes
// them, RGB, one after the other, into a file. For pillow.py.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "engine/data/recipe/make_input.h"

int main(int count, char** words) {
  using namespace tg;
  using namespace tg::engine;
  if (count != 4) {
    std::fprintf(stderr, "usage: tgd_evaluated FOLDER SIZE OUT\n");
    return 2;
  }
  DatasetOptions options;
  options.kind = DatasetKind::kFolder;
  options.directory = words[1];
  const auto data = load_dataset(options);
  const int size = std::atoi(words[2]);
  const auto recipe = data ? make_recipe(**data, {3, size, size}) : Result<Recipe>(data.error());
  if (!recipe) {
    std::fprintf(stderr, "%s\n", recipe.error().message.c_str());
    return 1;
  }
  std::ofstream out(words[3], std::ios::binary);
  Scratch scratch;
  for (std::size_t i = 0; i < (*data)->test.count(); ++i) {
    const auto bytes = make_bytes((*data)->test, i, *recipe, nullptr, scratch);
    if (!bytes) {
      std::fprintf(stderr, "%s\n", bytes.error().message.c_str());
      return 1;
    }
    for (int y = 0; y < size; ++y) {
      for (int x = 0; x < size; ++x) {
        for (int c = 0; c < 3; ++c) out.put(static_cast<char>(bytes->line(c, y)[x * bytes->column]));
      }
    }
  }
  out.close();
  return out ? 0 : 1;
}
