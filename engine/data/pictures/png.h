// Decodes PNG with libpng, which is used nowhere else. `bytes` must outlive the decoder.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "engine/data/pictures/decoder.h"

namespace tg::engine {

std::unique_ptr<Decoder> make_png_decoder(std::span<const std::uint8_t> bytes);

}  // namespace tg::engine
