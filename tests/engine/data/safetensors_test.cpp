#include "engine/storage/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "engine/model.h"
#include "engine/storage/safetensors_header.h"
#include "engine/storage/sha256.h"
#include "tests/engine/data/support.h"
#include "tests/engine/safetensors_files.h"

namespace tg::engine::test {
namespace {

// A file of this header and so many zero bytes behind it.
Bytes file_of(const std::string& header, std::size_t data_bytes) {
  Bytes bytes(8 + header.size() + data_bytes);
  const std::uint64_t size = header.size();
  std::memcpy(bytes.data(), &size, 8);
  std::copy(header.begin(), header.end(), bytes.begin() + 8);
  return bytes;
}

std::string entry(const std::string& name, const std::string& shape, std::uint64_t begin, std::uint64_t end) {
  return "\"" + name + "\":{\"dtype\":\"F32\",\"shape\":" + shape + ",\"data_offsets\":[" + std::to_string(begin) +
         "," + std::to_string(end) + "]}";
}

TEST(Safetensors, RoundTripKeepsEveryBit) {
  const Folder folder;
  const std::string path = folder / "a.safetensors";
  const std::vector<float> odd = {
      0.0f,           -0.0f, std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::infinity(),
      std::nanf("7"), 3.5f};
  const std::vector<float> one = {1.0f}, none;
  struct Written {
    std::string name;
    std::vector<std::int64_t> shape;
    const std::vector<float>& values;
  };
  const std::vector<Written> all = {
      {"w", {2, 3}, odd}, {"scalar", {}, one}, {"none", {0, 4}, none}, {"b\"\\\n\u00e9", {1}, one}};
  std::vector<TensorSource> tensors;
  for (const Written& each : all) tensors.push_back(tensor(each.name, each.shape, each.values));
  const std::map<std::string, std::string> metadata = {{"step", "12"}, {"note", "a \"b\"\n"}};
  ASSERT_TRUE(write_safetensors(path, tensors, metadata).ok());
  const auto loaded = read_safetensors(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->metadata, metadata);
  ASSERT_EQ(loaded->values.size(), 4u);
  for (const Written& each : all) {
    EXPECT_EQ(loaded->shapes.at(each.name), each.shape);
    const auto& values = loaded->values.at(each.name);
    ASSERT_EQ(values.size(), each.values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(each.values[i]));
    }
  }
}

TEST(Safetensors, GoldenBytes) {
  const Folder folder;
  const std::string path = folder / "a.safetensors";
  const std::vector<float> a = {1.0f, -2.0f}, b = {0.5f};
  ASSERT_TRUE(
      write_safetensors(path, std::vector{tensor("z.weight", {2, 1}, a), tensor("a.bias", {1}, b)}, {{"format", "pt"}})
          .ok());
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"z.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("a.bias":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})"
      "       ";
  ASSERT_EQ(header.size() % 8, 0u);
  Bytes expected = file_of(header, 0);
  for (const int byte : {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0x3f}) {
    expected.push_back(static_cast<std::uint8_t>(byte));
  }
  EXPECT_EQ(read_plain(path), expected);
}

TEST(Safetensors, SegmentsLeaveTheirPaddingOut) {
  const Model model = make_model(ModelKind::kLenet);
  AlignedArray<float> flat(model.segments.padded_count());
  for (std::size_t i = 0; i < flat.size(); ++i) flat[i] = static_cast<float>(i);
  const auto tensors = tensors_of(
      model.segments,
      [&flat](std::size_t first, std::span<float> values) -> Status {
        std::ranges::copy(flat.span().subspan(first, values.size()), values.begin());
        return {};
      },
      ".ema");
  ASSERT_EQ(tensors.size(), model.segments.size());
  const Folder folder;
  ASSERT_TRUE(write_safetensors(folder / "m", tensors, {}).ok());
  const auto loaded = read_safetensors(folder / "m");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  std::size_t count = 0;
  for (const Segment& segment : model.segments.segments()) {
    const auto& values = loaded->values.at(segment.name + ".ema");
    ASSERT_EQ(values.size(), segment.element_count);
    const auto expected = flat.span().subspan(segment.offset, segment.element_count);
    EXPECT_TRUE(std::ranges::equal(values, expected)) << segment.name;  // some are longer than the writer's buffer
    EXPECT_EQ(loaded->shapes.at(segment.name + ".ema"), segment.shape);
    count += values.size();
  }
  EXPECT_EQ(count, model.segments.parameter_count());
}

TEST(Safetensors, TheWriterRefusesUnreadableTensors) {
  const Folder folder;
  const std::vector<float> a = {1.0f};
  const auto write = [&](const std::vector<TensorSource>& tensors, const std::map<std::string, std::string>& metadata) {
    return write_safetensors(folder / "m", tensors, metadata);
  };
  EXPECT_FALSE(write({tensor("a", {1}, a), tensor("a", {1}, a)}, {}).ok());
  EXPECT_FALSE(write({tensor("__metadata__", {1}, a)}, {}).ok());
  EXPECT_FALSE(write({tensor("\xff", {1}, a)}, {}).ok());
  EXPECT_FALSE(write({tensor("a", {1}, a)}, {{"k", "\xff"}}).ok());
  EXPECT_FALSE(write({tensor("a", std::vector<std::int64_t>(kMaxTensorDimensions + 1, 1), a)}, {}).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Safetensors, AnImageIsTheFileAtAnyOffset) {
  const Folder folder;
  const std::vector<float> a = {1.5f, -2.0f, 3.25f}, b = {4.0f}, none;
  const std::vector<TensorSource> tensors{tensor("a", {3}, a), tensor("none", {0}, none), tensor("b", {1, 1}, b)};
  const auto image = TensorImage::of(tensors, {{"k", "v"}});
  ASSERT_TRUE(image.ok());
  const auto mark = write_image(folder / "m", *image);
  ASSERT_TRUE(mark.ok()) << mark.error().message;
  const Bytes read = read_plain(folder / "m");
  const std::string file(read.begin(), read.end());
  ASSERT_EQ(file.size(), image->bytes());
  for (std::size_t offset = 0; offset <= file.size(); ++offset)
    for (std::size_t count = 0; offset + count <= file.size(); ++count) {
      std::string part(count, '?');
      ASSERT_TRUE(image->read(offset, std::as_writable_bytes(std::span(part))).ok());
      ASSERT_EQ(part, file.substr(offset, count)) << offset << " " << count;
    }
  const auto again = mark_of_file(folder / "m");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *mark);
  EXPECT_EQ(mark->bytes, file.size());
  Sha256 values;
  values.add(std::as_bytes(std::span(a)));
  values.add(std::as_bytes(std::span(b)));
  EXPECT_EQ(image->values_sha256().value(), values.hex());
}

TEST(Safetensors, MissingFileAndDirectory) {
  const Folder folder;
  const auto missing = read_safetensors(folder / "none");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::kNotFound);
  EXPECT_FALSE(read_safetensors(folder.path()).ok());
}

TEST(Safetensors, ReaderAcceptsOrderAndWhitespaceOfOthers) {
  const std::string header =
      "{ " + entry("b", "[1]", 4, 8) + ", " + entry("a", "[1,1]", 0, 4) + ",\"__metadata__\":{}}  ";
  const Folder folder;
  write_plain(folder / "a", file_of(header, 8));
  const auto loaded = read_safetensors(folder / "a");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->values.size(), 2u);
}

TEST(Safetensors, HostileHeadersAreRefused) {
  const std::string a = entry("a", "[1]", 0, 4);
  const std::vector<std::pair<std::string, std::size_t>> hostile = {
      {"", 4},
      {"{", 4},
      {"[]", 4},
      {"null", 4},
      {"7", 4},
      {"{}", 4},                                             // data of no tensor
      {"{" + a + "}", 0},                                    // truncated
      {"{" + a + "}", 8},                                    // bytes left over
      {"{" + a + "}x", 4},                                   // text behind
      {"{" + a + "," + a + "}", 4},                          // twice
      {"{" + a + "," + entry("b", "[1]", 0, 4) + "}", 4},    // overlap
      {"{" + a + "," + entry("b", "[1]", 8, 12) + "}", 12},  // hole
      {"{" + entry("a", "[1]", 4, 0) + "}", 4},              // backwards
      {"{" + entry("a", "[2]", 0, 4) + "}", 4},              // shape and bytes differ
      {"{" + entry("a", "[-1]", 0, 4) + "}", 4},
      {"{" + entry("a", "[1.0]", 0, 4) + "}", 4},
      {"{" + entry("a", "[[1]]", 0, 4) + "}", 4},
      {"{" + entry("a", "1", 0, 4) + "}", 4},
      {"{" + entry("a", "[1,1,1,1,1,1,1,1,1]", 0, 4) + "}", 4},
      {"{" + entry("a", "[4294967296,4294967296,1]", 0, 4) + "}", 4},  // 2^64 wraps to 0
      {"{" + entry("a", "[4611686018427387905]", 0, 4) + "}", 4},      // times 4 wraps to 4
      {"{" + entry("a", "[18446744073709551615]", 0, 4) + "}", 4},
      {"{" + entry("a", "[1]", 0, UINT64_MAX) + "}", 4},
      {R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})", 8},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})", 4},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})", 4},
      {R"({"a":7})", 0},
      {R"({"__metadata__":{"a":1}})", 0},
      {R"({"__metadata__":{"a":{"b":"c"}}})", 0},
      {R"({"__metadata__":{"a":"b","a":"c"}})", 0},
      {R"({"__metadata__":{},"__metadata__":{}})", 0},
      {"{\"\xff\":{}}", 0},
      {std::string(1 << 20, '['), 0},
      {std::string(1 << 20, '{'), 0},
      {"{\"a\":" + std::string(1 << 20, '['), 0},
  };
  const Folder folder;
  for (const auto& [header, data_bytes] : hostile) {
    write_plain(folder / "h", file_of(header, data_bytes));
    const auto loaded = read_safetensors(folder / "h");
    ASSERT_FALSE(loaded.ok()) << header.substr(0, 200);
    EXPECT_EQ(loaded.error().kind, ErrorKind::kCorrupt);
    expect_text(loaded.error().message, folder / "h");
  }
}

TEST(Safetensors, HostileSizesAreRefused) {
  const Folder folder;
  for (const std::uint64_t size : {UINT64_MAX, UINT64_MAX - 7, std::uint64_t{1} << 63, std::uint64_t{3}}) {
    Bytes bytes = file_of("{}", 0);
    std::memcpy(bytes.data(), &size, 8);
    write_plain(folder / "h", bytes);
    EXPECT_FALSE(read_safetensors(folder / "h").ok()) << size;
  }
  for (std::size_t length = 0; length < 8; ++length) {
    write_plain(folder / "h", Bytes(length));
    EXPECT_FALSE(read_safetensors(folder / "h").ok()) << length;
  }
}

// Every cut of a good file is an error, and no flip of bits does worse than give an error or other values.
TEST(Safetensors, CutsAndFlips) {
  const Folder folder;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE(
      write_safetensors(folder / "g", std::vector{tensor("a", {2, 3}, values), tensor("b", {6}, values)}, {{"k", "v"}})
          .ok());
  const Bytes good = read_plain(folder / "g");
  for (std::size_t length = 0; length < good.size(); ++length) {
    write_plain(folder / "c", Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)));
    EXPECT_FALSE(read_safetensors(folder / "c").ok()) << length;
  }
  std::mt19937_64 random(1);
  int refused = 0;
  for (int i = 0; i < 500; ++i) {
    Bytes bytes = good;
    bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1u << random() % 8);
    write_plain(folder / "c", bytes);
    refused += read_safetensors(folder / "c").ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace tg::engine::test
