// A run starts from what a file has, bit for bit, and from no file that does not fit.
#include "engine/initial_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <stdexcept>

#include "engine/models/builder.h"
#include "tests/engine/data/support.h"
#include "tests/engine/safetensors_files.h"

namespace tg::engine::test {
namespace {

constexpr std::uint64_t kInitialSeed = 5;

// A segment of more than one block, and an auxiliary head.
Model small(int classes, int hidden = 30) {
  ModelBuilder builder("small", {2, 6, 6});
  builder.convolution("conv1", {.count = 4, .kernel = 3, .bias = false}, {.weight_deviation = 0.1})
      .batch_normalization("bn1", {})
      .relu();
  const std::size_t trunk = builder.place();
  builder.dense("aux", classes, {.weight_deviation = 0.1}).auxiliary_head(0.3);
  builder.from(trunk).dense("fc1", hidden, {.weight_deviation = 0.1}).relu();
  return builder.dense("fc2", classes, {.weight_deviation = 0.1}).build().value();
}

// Writes values for every segment and statistic that no draw gives.
void write_model(const std::string& path, const Model& model, const std::vector<TensorSource>& more = {}) {
  std::vector<TensorSource> tensors = more;
  float start = 1;
  for (const SegmentTable* table : {&model.segments, &model.statistics})
    for (const Segment& segment : table->segments()) {
      tensors.push_back({segment.name, segment.shape, [start](std::size_t first, std::span<float> values) -> Status {
                           for (std::size_t i = 0; i < values.size(); ++i)
                             values[i] = start + static_cast<float>(first + i) / 4096;
                           return {};
                         }});
      start += 1;
    }
  ASSERT_TRUE(write_safetensors(path, tensors, {}).ok());
}

std::vector<float> filled(const InitialFile& file, const Segment& segment, std::size_t index, bool statistic = false) {
  constexpr std::size_t kPart = 500;  // not a whole block: parts begin and end anywhere
  std::vector<float> values(segment.padded_count(), -1);
  for (std::size_t first = 0; first < values.size(); first += kPart) {
    const std::span<float> part = std::span(values).subspan(first, std::min(kPart, values.size() - first));
    if (statistic)
      file.fill_statistic(index, first, part);
    else
      file.fill_segment(index, first, part);
  }
  return values;
}

std::vector<float> drawn(const Segment& segment, std::size_t index) {
  std::vector<float> values(segment.padded_count());
  initialize(segment, index, kInitialSeed, 0, values);
  return values;
}

void expect_values(const std::vector<float>& found, const Segment& segment, float start) {
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(found[i], i < segment.element_count ? start + static_cast<float>(i) / 4096 : 0)
        << segment.name << " " << i;
}

std::string refusal(const std::string& path, const Model& model) {
  const Result<InitialFile> file = InitialFile::open(path, model, kInitialSeed);
  EXPECT_FALSE(file.ok());
  if (file.ok()) return "";
  EXPECT_EQ(file.error().kind, ErrorKind::kInvalidJob);
  EXPECT_NE(file.error().message.find(path), std::string::npos) << file.error().message;
  return file.error().message;
}

TEST(InitialFile, GivesEverySegmentAndStatistic) {
  const Folder folder;
  const Model model = small(7);
  write_model(folder / "a", model);
  const InitialFile file = InitialFile::open(folder / "a", model, kInitialSeed).value();
  EXPECT_TRUE(file.notes().empty());
  float start = 1;
  for (std::size_t s = 0; s < model.segments.size(); ++s, start += 1)
    expect_values(filled(file, model.segments[s], s), model.segments[s], start);
  ASSERT_EQ(model.statistics.size(), 2u);
  for (std::size_t s = 0; s < model.statistics.size(); ++s, start += 1)
    expect_values(filled(file, model.statistics[s], s, true), model.statistics[s], start);
}

// It is read whole before a run begins, and a stop need not wait for that.
TEST(InitialFile, ReadingCanBeEndedAtEachTensor) {
  const Folder folder;
  const Model model = small(7);
  write_model(folder / "a", model);
  std::size_t parts = 0;
  ASSERT_TRUE(InitialFile::open(folder / "a", model, kInitialSeed, [&] { ++parts; }).ok());
  EXPECT_GE(parts, model.segments.size() + model.statistics.size());
  struct Enough {};
  for (std::size_t last = 0; last < parts; ++last) {
    std::size_t read = 0;
    const auto stop_there = [&] {
      if (read++ == last) throw Enough{};
    };
    EXPECT_THROW((void)InitialFile::open(folder / "a", model, kInitialSeed, stop_there), Enough) << last;
  }
}

TEST(InitialFile, AHeadForOtherClassesIsDrawn) {
  const Folder folder;
  const Model model = small(3);
  write_model(folder / "a", small(7));
  const InitialFile file = InitialFile::open(folder / "a", model, kInitialSeed).value();
  ASSERT_EQ(file.notes().size(), 1u);
  EXPECT_EQ(file.notes()[0],
            "drawn from the seed because the number of classes differs: aux.weight (3x144, in the file 7x144), "
            "aux.bias (3, in "
            "the file 7), fc2.weight (3x30, in the file 7x30), fc2.bias (3, in the file 7)");
  for (std::size_t s = 0; s < model.segments.size(); ++s) {
    const Segment& segment = model.segments[s];
    const bool head = segment.name.starts_with("aux") || segment.name.starts_with("fc2");
    EXPECT_EQ(filled(file, segment, s) == drawn(segment, s), head) << segment.name;
  }
}

TEST(InitialFile, OtherMisfitsAreNamedWithShapesAndFile) {
  const Folder folder;
  write_model(folder / "a", small(7, 31));
  EXPECT_NE(refusal(folder / "a", small(7)).find("has fc1.weight of 31x144 where 30x144 is needed"), std::string::npos);
  // A head of another width is no matter of classes.
  write_model(folder / "b", ModelBuilder("m", {1, 1, 4}).dense("fc", 3, {}).build().value());
  EXPECT_NE(refusal(folder / "b", ModelBuilder("m", {1, 1, 5}).dense("fc", 2, {}).build().value())
                .find("has fc.weight of 3x4 where 2x5 is needed"),
            std::string::npos);
  EXPECT_NE(refusal(folder / "b", small(7)).find("has no tensor conv1.weight of 4x2x3x3"), std::string::npos);
  // Statistics belong to it.
  Model without = small(7);
  without.statistics = {};
  write_model(folder / "c", without);
  EXPECT_NE(refusal(folder / "c", small(7)).find("has no tensor bn1.running_mean of 4"), std::string::npos);
  EXPECT_NE(refusal(folder / "d", small(7)).find("No such file"), std::string::npos);
  write_plain(folder / "e", {1, 2, 3});
  EXPECT_NE(refusal(folder / "e", small(7)).find("is damaged"), std::string::npos);
}

TEST(InitialFile, TensorsOutsideTheModelAreNamedAndIgnored) {
  const Folder folder;
  const Model model = small(7);
  const std::vector<float> one = {1};
  std::vector<TensorSource> more = {tensor("bn1.num_batches_tracked", {}, one)};
  write_model(folder / "a", model, more);
  EXPECT_TRUE(InitialFile::open(folder / "a", model, kInitialSeed)->notes().empty())
      << "PyTorch's counter is no surprise";
  for (const char* name : {"d", "c", "b", "a"}) more.push_back(tensor(name, {1}, one));
  write_model(folder / "b", model, more);
  const InitialFile file = InitialFile::open(folder / "b", model, kInitialSeed).value();
  EXPECT_EQ(file.notes(), (std::vector<std::string>{"it has 4 tensors that the model does not have: a, b, c, ..."}));
  expect_values(filled(file, model.segments[0], 0), model.segments[0], 1);
}

// The file is as safetensors.torch.save_file writes a torchvision model: counters are 64-bit integers, and come first.
TEST(InitialFile, ReadsPastPytorchsCounters) {
  const Folder folder;
  const std::string header = R"({"bn.num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                             R"("fc.bias":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},)"
                             R"("fc.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[16,24]}})";
  Bytes bytes(8, 0);
  bytes[0] = static_cast<std::uint8_t>(header.size());
  ASSERT_LT(header.size(), 256u);
  bytes.insert(bytes.end(), header.begin(), header.end());
  const std::int64_t counter = 77;
  const float values[] = {1, 2, 3, 4};
  const auto append = [&bytes](const void* data, std::size_t size) {
    const auto* first = static_cast<const std::uint8_t*>(data);
    bytes.insert(bytes.end(), first, first + size);
  };
  append(&counter, sizeof counter);
  append(values, sizeof values);
  write_plain(folder / "a", bytes);
  const Model model = ModelBuilder("m", {1, 1, 1}).dense("fc", 2, {}).build().value();
  const Result<InitialFile> file = InitialFile::open(folder / "a", model, kInitialSeed);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_TRUE(file->notes().empty());
  EXPECT_EQ(filled(*file, model.segments[0], 0)[1], 4);
  EXPECT_EQ(filled(*file, model.segments[1], 1)[0], 1);
  const Result<LoadedTensors> loaded = read_safetensors(folder / "a");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->values.at("fc.weight"), (std::vector<float>{3, 4}));
  EXPECT_EQ(loaded->values.size(), 2u);
}

TEST(InitialFile, OtherNumbersThanFloat32AreNamed) {
  const Folder folder;
  const std::string header = R"({"fc.weight":{"dtype":"F16","shape":[2,1],"data_offsets":[0,4]}})";
  Bytes bytes(8, 0);
  bytes[0] = static_cast<std::uint8_t>(header.size());
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.resize(bytes.size() + 4);
  write_plain(folder / "a", bytes);
  const std::string words = refusal(folder / "a", ModelBuilder("m", {1, 1, 1}).dense("fc", 2, {}).build().value());
  EXPECT_NE(words.find("tensor \"fc.weight\" is F16; float32 is read: save it again as that"), std::string::npos)
      << words;
}

// A value of it would end in the model that the run saves: training may never meet it.
TEST(InitialFile, NonFiniteValuesAreRefused) {
  const Folder folder;
  const Model model = ModelBuilder("m", {1, 4, 4})
                          .convolution("c", {.count = 2, .kernel = 1}, {})
                          .batch_normalization("bn", {})
                          .dense("fc", 3, {})
                          .build()
                          .value();
  write_model(folder / "good", model);
  ASSERT_TRUE(InitialFile::open(folder / "good", model, kInitialSeed).ok());
  const auto with = [&](const std::string& name, std::size_t at, float odd) {
    std::vector<std::vector<float>> values;
    std::vector<TensorSource> tensors;
    values.reserve(model.segments.size() + model.statistics.size());
    for (const SegmentTable* table : {&model.segments, &model.statistics})
      for (const Segment& segment : table->segments()) {
        values.emplace_back(segment.element_count, 1.0F);
        if (segment.name == name) values.back()[at] = odd;
        tensors.push_back(tensor(segment.name, segment.shape, values.back()));
      }
    EXPECT_TRUE(write_safetensors(folder / "odd", tensors, {}).ok());
    return refusal(folder / "odd", model);
  };
  expect_text(with("fc.weight", 7, std::nanf("")), "has a value that is not finite in fc.weight, element 7");
  expect_text(with("fc.bias", 2, -INFINITY), "has a value that is not finite in fc.bias, element 2");
  expect_text(with("bn.running_mean", 1, INFINITY), "has a value that is not finite in bn.running_mean, element 1");
  expect_text(with("bn.running_var", 0, -1e-3F), "has a negative variance in bn.running_var, element 0");
}

TEST(InitialFile, OtherKindsOfFilesAreNamed) {
  const Folder folder;
  const Model model = small(7);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_text(refusal(folder / "pipe", model), "it is not a regular file");  // opening it would wait for a writer
  expect_text(refusal("/dev/zero", model), "it is not a regular file");
  expect_text(refusal(folder.path(), model), "Is a directory");
  Bytes zip(100, 0), pickle(100, 0);
  std::ranges::copy(std::string("PK\x03\x04\0\0\x08\x08", 8), zip.begin());
  std::ranges::copy(std::string("\x80\x02\x8a\nl\xfc\x9c\x46", 8), pickle.begin());
  write_plain(folder / "x.pt", zip);
  write_plain(folder / "old.pt", pickle);
  Bytes onnx(100, 1);
  std::ranges::copy(std::string("\x08\x08\x12\x07pytorch", 11), onnx.begin());
  write_plain(folder / "net.onnx", onnx);
  expect_text(refusal(folder / "net.onnx", model), "net.onnx is an ONNX file");
  for (const std::string& path : {folder / "lenet-20261127-2330-ab12", folder.path()})
    expect_text(refusal(path, model),
                "; initial takes a .safetensors file that is on every node: what tgctl fetch wrote");
  for (const char* name : {"x.pt", "old.pt"}) {
    expect_text(refusal(folder / name, model), "as torch.save");
    expect_text(refusal(folder / name, model), "safetensors.torch.save_file(model.state_dict(), ");
  }
}

TEST(InitialFile, AFileThatIsGoneBeforeItIsReadIsAnError) {
  const Folder folder;
  const Model model = small(7);
  write_model(folder / "a", model);
  const InitialFile file = InitialFile::open(folder / "a", model, kInitialSeed).value();
  std::ofstream(folder / "a", std::ios::trunc).flush();
  std::vector<float> values(4);
  EXPECT_THROW(file.fill_segment(0, 0, values), std::runtime_error);
}

}  // namespace
}  // namespace tg::engine::test
