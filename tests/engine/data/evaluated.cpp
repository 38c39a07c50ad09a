// tgd_evaluated KIND FOLDER OUT [KEY=VALUE]...: what evaluation sees of a data set's test samples: OUT has C x H x W
// floats each, one sample after the other, then as many labels as floats; OUT.json what model.json has of preprocessing
// and data. For pillow.py. Keys: channels, size, resize (0: as it is usual), test-share, seed, normalization.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/dataset.h"

namespace tg::engine {
namespace {

[[noreturn]] void fail(const std::string& problem) {
  std::fprintf(stderr, "tgd_evaluated: %s\n", problem.c_str());
  std::exit(1);
}

using Keys = std::map<std::string, std::string>;

void write_evaluated(const std::string& kind, const std::string& folder, const std::string& out, const Keys& keys) {
  DatasetOptions options;
  options.kind = from_word<DatasetKind>(kind).value_or(DatasetKind::kFolder);
  options.directory = folder;
  options.test_share = std::stod(keys.at("test-share"));
  options.seed = std::stoull(keys.at("seed"));
  options.damaged = Damaged::kSkip;
  const auto data = load_dataset(options);
  if (!data) fail(data.error().message);
  ImageShape input = input_of(options.kind, (*data)->train.stored, ModelKind::kResnet18, std::stoi(keys.at("size")));
  if (keys.at("channels") != "0") input.channels = std::stoi(keys.at("channels"));
  RecipeOptions how;
  if (keys.at("resize") != "0") how.resize = std::stoi(keys.at("resize"));
  how.resize_shape = from_word<ResizeShape>(keys.at("resize-shape")).value_or(how.resize_shape);
  how.normalization = from_word<Normalization>(keys.at("normalization"));
  const Result<Recipe> recipe = make_recipe(**data, input, how);
  if (!recipe) fail(recipe.error().message);

  const ImageSet& test = (*data)->test;
  Batch batch;
  batch.count = static_cast<int>(test.count());
  fill_evaluation_batch(**data, *recipe, 0, batch);
  std::ofstream file(out, std::ios::binary);
  file.write(reinterpret_cast<const char*>(batch.images.data()),
             static_cast<std::streamsize>(static_cast<std::size_t>(batch.count) * input.elements() * sizeof(float)));
  for (const std::int32_t label : batch.labels) {
    const auto value = static_cast<float>(label);
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
  }
  const ImageShape& stored = test.stored;
  std::ofstream(out + ".json") << nlohmann::json{{"preprocessing", nlohmann::json::parse(recipe_json(*recipe))},
                                                 {"classes", (*data)->classes},
                                                 {"data",
                                                  {{"kind", kind},
                                                   {"stored", {stored.channels, stored.height, stored.width}},
                                                   {"test_share", options.test_share},
                                                   {"seed", options.seed}}}};
  file.close();
  if (!file) fail("cannot write " + out);
}

}  // namespace
}  // namespace tg::engine

int main(int count, char** words) {
  tg::engine::Keys keys{{"channels", "0"},   {"size", "0"}, {"resize", "0"},      {"resize-shape", "aspect"},
                        {"test-share", "0"}, {"seed", "1"}, {"normalization", ""}};
  if (count < 4) tg::engine::fail("KIND FOLDER OUT [KEY=VALUE]... are needed");
  for (int i = 4; i < count; ++i) {
    const std::string word = words[i];
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || !keys.contains(word.substr(0, equals))) tg::engine::fail("unknown key " + word);
    keys[word.substr(0, equals)] = word.substr(equals + 1);
  }
  tg::engine::write_evaluated(words[1], words[2], words[3], keys);
}
