// The data of a job, as text and as a page with pictures. Pure.
#pragma once

#include <string>

#include "schema/control/control.h"

namespace tg::ctl {

std::string data_text(const schema::StartReply& data);
// kCorrupt: a picture has an invalid size.
Result<std::string> data_page(const std::string& job, const schema::StartReply& data);
// The picture as a PNG file; it has 1 or 3 channels.
Result<std::string> png_of(const schema::SamplePicture& picture);

}  // namespace tg::ctl
