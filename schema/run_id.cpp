#include "schema/run_id.h"

#include <cctype>

#include "kernels/base/hex.h"
#include "kernels/base/log.h"

namespace tg::schema {

std::string draw_run_id(const std::string& model, std::int64_t unix_ms, std::uint64_t draw) {
  std::string stamp;  // 2017-12-04T09:00:00.000Z -> 20171204-0900
  for (const char c : format_utc(unix_ms).substr(0, 16)) {
    if (c == 'T') stamp += '-';
    if (std::isdigit(static_cast<unsigned char>(c))) stamp += c;
  }
  return model + "-" + stamp + "-" + hex_digest(draw).substr(0, 4);
}

}  // namespace tg::schema
