// decode_frame on anything: no crash, a payload only inside the input, and what was accepted can be sent on.
#include <cstddef>
#include <cstdint>
#include <functional>

#include "schema/frame/frame.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tg::schema;
  const std::span<const std::byte> input = std::as_bytes(std::span(data, size));
  const tg::Result<Frame> frame = decode_frame(input);
  if (!frame) return 0;
  if (const auto* chunk = std::get_if<Chunk>(&frame->body); chunk != nullptr && !chunk->payload.empty()) {
    const std::less_equal<const std::byte*> not_after;
    const std::byte* const end = chunk->payload.data() + chunk->payload.size();
    TG_CHECK(not_after(input.data(), chunk->payload.data()) && not_after(end, input.data() + input.size()));
  }
  FramePool pool;
  const SharedFrame again = encode_frame(frame->header, frame->body, pool);
  const tg::Result<Frame> decoded = decode_frame(again->bytes());
  TG_CHECK(decoded.ok(), decoded.ok() ? "" : decoded.error().message);
  TG_CHECK(decoded->header == frame->header && decoded->body.index() == frame->body.index());
  return 0;
}
