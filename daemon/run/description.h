// The description of a model in the artefacts, so that it can be used without this program: network, preprocessing,
// classes. It is one JSON object in the metadata of each file (store/artefacts.h), and independent of the node. `tgctl
// fetch` writes it as model.json.
//
//   {"model": WORD, "parameters": n, "input": {"shape": [C, H, W], "order": "CHW", "channels": "RGB"},
//    "preprocessing": recipe.h, "data": {"kind": WORD, "stored": [C, H, W], "test_samples": n, "test_share": x,
//    "seed": n, "damaged": WORD}, "classes": [NAME, ...], "graph": graph_json.h}
#pragma once

#include <cstddef>
#include <string>

#include "engine/dataset.h"
#include "engine/model.h"
#include "engine/recipe.h"
#include "engine/storage/safetensors_header.h"
#include "schema/options/job.h"

namespace tg::daemon {

// Above this size (tens of thousands of classes with long names) the names are omitted: "classes" is null. A
// description that is still larger (mean and deviation of each of a hundred thousand features) is an error.
inline constexpr std::size_t kMaxDescriptionBytes = std::size_t{4} << 20;
static_assert(2 * kMaxDescriptionBytes < engine::kMaxHeaderBytes, "as a text in a header, each byte is two at most");

// Describes a trained model. Bytes of a name that are not UTF-8 become U+FFFD. Pure; any thread.
Result<std::string> describe(const engine::Model& model, const engine::Recipe& recipe, const engine::Dataset& data,
                             const schema::JobSpec& job);

}  // namespace tg::daemon
