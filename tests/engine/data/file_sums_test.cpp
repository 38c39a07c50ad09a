// Two sets' sums show which file differs, whatever is different about it, and nothing that they cannot know.
#include "engine/data/file_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace tg::engine::test {
namespace {

constexpr int kFiles = 500;

std::string name_of(int i) { return "train/c" + std::to_string(i % 7) + "/" + std::to_string(1000 + i) + ".png"; }

// The usual files, but those in `others` have another content, and those in `missing` are not there.
NamedSums files_of(const std::vector<int>& others = {}, const std::vector<int>& missing = {}) {
  NamedSums sums;
  const auto has = [](const std::vector<int>& list, int i) { return std::ranges::find(list, i) != list.end(); };
  for (int i = 0; i < kFiles; ++i)
    if (!has(missing, i)) sums.add(name_of(i), static_cast<std::uint64_t>(has(others, i) ? 7'000 + i : i), 10);
  return sums;
}

std::string difference(const NamedSums& one, const NamedSums& other) {
  const auto sent = FileSums::parse(other.sums().text());
  EXPECT_TRUE(sent);
  return FileSums::difference(one.sums(), *sent, one.names());
}

TEST(FileSums, NameTheFileThatDiffers) {
  for (int i = 0; i < kFiles; i += 9) {
    EXPECT_EQ(difference(files_of(), files_of({i})), name_of(i) + " differs");
    EXPECT_EQ(difference(files_of(), files_of({}, {i})), name_of(i) + " differs") << "it is missing there";
  }
  EXPECT_EQ(difference(files_of(), files_of()), "");
  EXPECT_EQ(difference(files_of({}, {5}), files_of()), "at least 1 file differs") << "its name is known there only";
  EXPECT_EQ(difference(files_of(), files_of({3, 0})), name_of(0) + " differs (at least 2 files differ)");
  std::vector<int> all(kFiles);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(difference(files_of(), files_of(all)), "at least 32 files differ");
}

TEST(FileSums, AreCountedAndTravelAsText) {
  FileSums sums = files_of().sums();
  sums.set_samples(400, 100);
  EXPECT_EQ(sums.counts(), "500 files of 5000 bytes, 400 + 100 samples");
  const std::string text = sums.text();
  EXPECT_LE(text.size(), FileSums::kMaxTextBytes);
  EXPECT_EQ(FileSums::parse(text)->text(), text);
  for (std::size_t size = 0; size < text.size(); ++size) ASSERT_FALSE(FileSums::parse(text.substr(0, size))) << size;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string odd = text;
    odd[at] = 'x';
    ASSERT_FALSE(FileSums::parse(odd)) << at;
  }
  EXPECT_FALSE(FileSums::parse(text + "0"));
  EXPECT_FALSE(FileSums::parse("99999999999999999999999 " + text.substr(text.find(' ') + 1)));
}

}  // namespace
}  // namespace tg::engine::test
