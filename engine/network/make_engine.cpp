#include "engine/network/make_engine.h"

#include <algorithm>
#include <new>
#include <vector>

#include "engine/graph/placement.h"
#include "engine/graph/plan.h"
#include "engine/graph/shapes.h"

namespace tg::engine {

std::string activations_of(const Model& model, const EngineOptions& options) {
  return "the activations of " + model.name + " for " + std::to_string(options.batch) + " samples";
}

TooLarge too_large(const Model& model, const EngineOptions& options, std::uint64_t bytes, std::uint64_t left,
                   const std::string& which) {
  const auto mebibytes = [](std::uint64_t count) { return std::to_string(count >> 20) + " MiB"; };
  return TooLarge(activations_of(model, options) + " need " + mebibytes(bytes + (1u << 20) - 1) + " of memory and " +
                  mebibytes(left) + " are " + which);
}

std::size_t evaluation_bytes_of_sample(const Model& model, bool canonical_images) {
  const Plan plan = make_plan(model, {.training = false, .canonical_images = canonical_images});
  std::vector<BufferNeed> needs;
  for (const Lifetime& lifetime : plan.lifetimes) needs.push_back({lifetime, 0});
  for (std::size_t value = 0; value < plan.shapes.size(); ++value) {
    if (plan.value_buffers[value] == kNoBuffer) continue;
    std::size_t& bytes = needs[plan.value_buffers[value]].bytes;
    bytes = std::max(bytes, plan.shapes[value].elements() * sizeof(float));
  }
  return most_bytes_at_once(needs);
}

Result<std::unique_ptr<Engine>> make_engine(const Model& model, const EngineOptions& options,
                                            const std::function<std::unique_ptr<Engine>()>& make) {
  if (const Result<std::vector<ImageShape>> sound = infer_shapes(model); !sound) return sound.error();
  try {
    return make();
  } catch (const TooLarge& e) {
    return Error{
        ErrorKind::kRefused,
        e.what() +
            std::string("; set micro-batch, make global-batch or image-size smaller, or choose a smaller model")};
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::kFailed, "no memory for " + model.name + " at batch " + std::to_string(options.batch) +
                                         " and evaluation batch " + std::to_string(options.evaluation_batch) +
                                         "; make them smaller"};
  } catch (const std::invalid_argument& e) {
    return Error{ErrorKind::kInvalidJob, e.what()};
  } catch (const std::exception& e) {
    return Error{ErrorKind::kFailed, e.what()};
  }
}

}  // namespace tg::engine
