#include "ctl/report/data_page.h"

#include <png.h>

#include "ctl/format/table.h"
#include "ctl/report/markup.h"
#include "ctl/report/sheet.h"

namespace tg::ctl {

Result<std::string> png_of(const schema::SamplePicture& picture) {
  const std::uint64_t bytes = std::uint64_t{picture.height} * picture.width * picture.channels;
  if ((picture.channels != 1 && picture.channels != 3) || bytes == 0 || bytes != picture.pixels.size())
    return Error{ErrorKind::kCorrupt, "a sample picture has an invalid size; have tgctl and tgd the same version?"};
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = picture.width;
  image.height = picture.height;
  image.format = picture.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string file(size, '\0');
  {
    if (png_image_write_to_memory(&image, file.data(), &size, 0, picture.pixels.data(), 0, nullptr) != 0) {
      file.resize(size);
      return file;
    }
  }
  return Error{ErrorKind::kFailed, std::string("cannot write a PNG: ") + image.message};
}

std::string data_text(const schema::StartReply& data) {
  std::string text = data.data_read.empty() ? "nothing: gradients are replayed\n" : data.data_read + "\n";
  for (const std::string& line : lines_of(data.data_warnings)) text += "warning: " + line + "\n";
  return text;
}

Result<std::string> data_page(const std::string& job, const schema::StartReply& data) {
  std::string page = begin_page(job) + element("h1", job) + element("p", data.data_read) + "\n<ul>\n";
  for (const std::string& line : lines_of(data.data_warnings)) page += element("li", line, "bad") + "\n";
  page += "</ul>\n<h2>The first samples of a run, as the network sees them</h2>\n" +
          element("p", "After crop, flip and colour changes, before normalization.", "soft") +
          "<div class=\"pictures\">\n";
  for (const schema::SamplePicture& picture : data.pictures) {
    const Result<std::string> png = png_of(picture);
    if (!png) return png.error();
    page += "<figure><img alt=\"\" src=\"data:image/png;base64," + base64(*png) + "\">" +
            element("span", picture.label) + "</figure>\n";
  }
  if (data.pictures.empty()) page += element("p", "These samples are not pictures.");
  return page + "</div>\n" + kEndOfPage;
}

}  // namespace tg::ctl
