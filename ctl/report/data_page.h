// What a job would train on, as text and as a page of pictures. Pure.
#pragma once

#include <string>

#include "schema/control/control.h"

namespace tg::ctl {

std::string data_text(const schema::StartReply& data);
// kCorrupt: a picture is not what it says to be.
Result<std::string> data_page(const std::string& job, const schema::StartReply& data);
// A PNG file; pixels row by row, of 1 or 3 channels.
Result<std::string> png_of(const schema::SamplePicture& picture);

}  // namespace tg::ctl
