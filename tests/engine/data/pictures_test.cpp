#include "engine/data/pictures/decode.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/data/limits.h"
#include "tests/engine/data/pictures.h"

namespace tg::engine::test {
namespace {

int in_full(int, int) { return 1; }

// Decodes, or says why not.
std::string decoded(const Bytes& bytes, Picture& picture, const Shrink& shrink = in_full) {
  const Status status = decode_picture(bytes, shrink, "some/file.jpg", picture);
  return status.ok() ? "" : status.error().message;
}

void expect_near(const Picture& a, const Picture& b, int most) {
  ASSERT_EQ(a.pixels.size(), b.pixels.size());
  int worst = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) worst = std::max(worst, std::abs(a.pixels[i] - b.pixels[i]));
  EXPECT_LE(worst, most);
}

TEST(Pictures, JpegOfAllFormsIsDecoded) {
  for (const int channels : {1, 3}) {
    for (const bool progressive : {false, true}) {
      const Picture made = ramp(channels, 41, 67);
      JpegForm form;
      form.progressive = progressive;
      const Bytes bytes = to_jpeg(made, form);
      const auto size = read_picture_size(bytes, "f");
      ASSERT_TRUE(size.ok()) << size.error().message;
      EXPECT_EQ(*size, (PictureSize{channels, 41, 67}));
      Picture read;
      ASSERT_EQ(decoded(bytes, read), "");
      EXPECT_EQ(read.channels, channels);
      expect_near(read, made, 12);
    }
  }
}

TEST(Pictures, CmykBecomesRgb) {
  Picture cmyk;
  cmyk.shape(4, 16, 16);
  for (std::size_t i = 0; i < cmyk.pixels.size(); i += 4) {  // stored inverted: 255 = no ink
    cmyk.pixels[i] = 255;
    cmyk.pixels[i + 1] = 100;
    cmyk.pixels[i + 2] = 0;
    cmyk.pixels[i + 3] = 255;
  }
  JpegForm form;
  form.cmyk = true;
  form.quality = 100;
  Picture read;
  ASSERT_EQ(decoded(to_jpeg(cmyk, form), read), "");
  ASSERT_EQ(read.channels, 3);
  EXPECT_NEAR(read.pixels[0], 255, 2);
  EXPECT_NEAR(read.pixels[1], 100, 2);
  EXPECT_NEAR(read.pixels[2], 0, 2);
}

TEST(Pictures, JpegIsDividedAsAskedAndRoundsUp) {
  const Bytes bytes = to_jpeg(ramp(3, 101, 67));
  for (const int shrink : {1, 2, 4, 8}) {
    Picture read;
    ASSERT_EQ(decoded(bytes, read,
                      [&](int height, int width) {
                        EXPECT_EQ(height, 101);
                        EXPECT_EQ(width, 67);
                        return shrink;
                      }),
              "");
    EXPECT_EQ(read.height, (101 + shrink - 1) / shrink);
    EXPECT_EQ(read.width, (67 + shrink - 1) / shrink);
  }
}

TEST(Pictures, PngIsDecodedToTheByte) {
  for (const int channels : {1, 3}) {
    const Picture made = ramp(channels, 19, 23);
    Picture read;
    ASSERT_EQ(decoded(to_png(made), read, [](int, int) { return 8; }), "");
    EXPECT_EQ(read.channels, channels);
    EXPECT_EQ(read.pixels, made.pixels);
  }
  Picture transparent = ramp(4, 5, 6), read;
  ASSERT_EQ(decoded(to_png(transparent), read), "");
  ASSERT_EQ(read.channels, 3);
  for (std::size_t i = 0; i < 30; ++i) {
    for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(read.pixels[3 * i + c], transparent.pixels[4 * i + c]);
  }
}

// A file cut anywhere is an error that names it, or still the whole picture (what was cut is behind its last pixel).
TEST(Pictures, TruncatedFilesAreNamed) {
  for (const bool jpeg : {true, false}) {
    const Picture made = ramp(3, 40, 40);
    const Bytes bytes = jpeg ? to_jpeg(made) : to_png(made);
    Picture whole;
    ASSERT_EQ(decoded(bytes, whole), "");
    std::size_t errors = 0;
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      Picture read;
      const std::string problem =
          decoded(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)), read);
      if (problem.empty()) {
        ASSERT_EQ(read.pixels, whole.pixels) << size << " of " << bytes.size();
        continue;
      }
      ++errors;
      ASSERT_TRUE(problem.starts_with("some/file.jpg is damaged: ")) << problem;
      expect_text(problem, "set damaged = skip");
    }
    EXPECT_GE(errors, bytes.size() - 16);
  }
}

TEST(Pictures, AFileThatIsNotAPictureIsNamed) {
  Picture read;
  expect_text(decoded({}, read), "it is empty");
  expect_text(decoded({'G', 'I', 'F', '8', '9', 'a'}, read), "neither as a JPEG nor as a PNG");
  Bytes png = to_png(ramp(3, 9, 9));
  png[png.size() - 20] ^= 1;  // in the data: the sum is wrong
  EXPECT_NE(decoded(png, read), "");
}

// Headers that promise more than any machine has memory for.
TEST(Pictures, BombsAreRefusedByTheirHeader) {
  Picture read;
  Bytes jpeg = to_jpeg(ramp(3, 8, 8));
  std::size_t frame = 0;  // where the marker SOF0 is
  while (jpeg[frame] != 0xff || jpeg[frame + 1] != 0xc0) ++frame;
  for (const std::size_t at : {5, 6, 7, 8}) jpeg[frame + at] = 0xfa;
  expect_text(decoded(jpeg, read), "it claims 64250x64250 pixels, more than the 67108864");
  Bytes png = to_png(ramp(1, 8, 8));
  const auto sum_of_header = [&] {  // the header's checksum
    const auto sum = static_cast<std::uint32_t>(crc32(0, png.data() + 12, 17));
    for (std::size_t i = 0; i < 4; ++i) png[29 + i] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
  };
  png[18] = png[22] = 0xff;
  sum_of_header();
  expect_text(decoded(png, read), "it claims 65288x65288 pixels");
  png[22] = 0;
  sum_of_header();
  expect_text(decoded(png, read), "one side more than 100 times the other");
  png[16] = 0x7f;
  sum_of_header();
  expect_text(decoded(png, read), "is damaged");
}

void add_number(std::uint32_t value, Bytes& bytes) {
  for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<std::uint8_t>(value >> shift));
}

// A chunk with its length and its sum.
Bytes png_chunk(const std::string& name, const Bytes& content) {
  Bytes chunk;
  add_number(static_cast<std::uint32_t>(content.size()), chunk);
  chunk.insert(chunk.end(), name.begin(), name.end());
  chunk.insert(chunk.end(), content.begin(), content.end());
  add_number(static_cast<std::uint32_t>(crc32(0, chunk.data() + 4, static_cast<unsigned>(chunk.size() - 4))), chunk);
  return chunk;
}

// Each of the texts in a PNG is as large as a chunk may be; nothing reads them.
TEST(Pictures, TextsOfAPngAreNotUnpacked) {
  const Bytes text(kMaxPngChunkBytes - 1024, 'a');
  uLongf size = compressBound(text.size());
  Bytes packed(size);
  ASSERT_EQ(compress(packed.data(), &size, text.data(), text.size()), Z_OK);
  packed.resize(size);
  Bytes brief{'k', 0, 0}, international{'k', 0, 1, 0, 0, 0};  // a keyword, and that it is packed
  brief.insert(brief.end(), packed.begin(), packed.end());
  international.insert(international.end(), packed.begin(), packed.end());
  const Picture made = ramp(3, 19, 23);
  Bytes png = to_png(made);
  for (const Bytes& chunk : {png_chunk("zTXt", brief), png_chunk("iTXt", international)}) {
    for (int i = 0; i < 20; ++i) png.insert(png.begin() + 33, chunk.begin(), chunk.end());  // behind the header
  }
  peak_kib();
  const long before = peak_kib();
  Picture read;
  ASSERT_EQ(decoded(png, read), "");
  const long peak = peak_kib();
  EXPECT_EQ(read.pixels, made.pixels);
  std::printf("a PNG of %zu KiB with 320 MiB of texts: %ld KiB before, %ld KiB at most\n", png.size() / 1024, before,
              peak);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep what was freed
  EXPECT_LT(peak - before, 12 * 1024);
#endif
}

}  // namespace
}  // namespace tg::engine::test
