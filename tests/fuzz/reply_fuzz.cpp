// decode_reply on anything: no crash, and what was accepted can be sent on.
#include <cstddef>
#include <cstdint>

#include "schema/control/control.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tg::schema;
  const tg::Result<Reply> reply = decode_reply(std::as_bytes(std::span(data, size)));
  if (!reply) return 0;
  const std::string again = encode_reply(*reply);
  const tg::Result<Reply> decoded = decode_reply(std::as_bytes(std::span(again)));
  TG_CHECK(decoded.ok(), decoded.ok() ? "" : decoded.error().message);
  TG_CHECK(encode_reply(*decoded) == again);
  return 0;
}
