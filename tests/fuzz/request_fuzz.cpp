// decode_request on anything: no crash, and what was accepted can be sent on.
#include <cstddef>
#include <cstdint>

#include "schema/control/control.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tg::schema;
  const tg::Result<Request> request = decode_request(std::as_bytes(std::span(data, size)));
  if (!request) return 0;
  const std::string again = encode_request(*request);
  const tg::Result<Request> decoded = decode_request(std::as_bytes(std::span(again)));
  TG_CHECK(decoded.ok(), decoded.ok() ? "" : decoded.error().message);
  TG_CHECK(encode_request(*decoded) == again);
  return 0;
}
