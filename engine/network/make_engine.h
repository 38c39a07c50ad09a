// What the engines of engine/cpu and engine/cuda share while they are made. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "engine/engine.h"
#include "kernels/base/status.h"

namespace tg::engine {

// The activations need more memory than there is for them. Its text says so, without what to do.
class TooLarge : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// "the activations of lenet for 64 samples"
std::string activations_of(const Model& model, const EngineOptions& options);
// which: "free on the device".
TooLarge too_large(const Model& model, const EngineOptions& options, std::uint64_t bytes, std::uint64_t left,
                   const std::string& which);

// Samples that are evaluated at once, of those asked for: their activations stay below this where nothing else is said.
inline constexpr std::uint64_t kEvaluationBytes = 256u << 20;
// About what one sample's activations take in evaluation: an engine's own layouts may need more.
std::size_t evaluation_bytes_of_sample(const Model& model, bool canonical_images);

// Makes the engine of a model that can be trained. What `make` throws becomes an error.
Result<std::unique_ptr<Engine>> make_engine(const Model& model, const EngineOptions& options,
                                            const std::function<std::unique_ptr<Engine>()>& make);

}  // namespace tg::engine
