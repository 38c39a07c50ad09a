// The graph that evaluation runs, as JSON: model.json's description of the network, so that it can be run without
// knowing its name. Auxiliary heads, and operators that lead only to them, are left out; dropout stays, and does
// nothing.
//
//   graph := {"output": VALUE, "operators": [operator, ...]}
//   operator := {"name": VALUE, "kind": WORD, "inputs": [VALUE, ...], attributes}
//
// VALUE is "input" or the name of an operator that comes before; attributes are graph.h's, numbers exact, a window's
// beside the others and its padding as [top, left, bottom, right]; tensors are named as in model.safetensors.
#pragma once

#include <string>

#include "engine/model.h"

namespace tg::engine {

// The model must be trainable. Pure; any thread.
std::string graph_json(const Model& model);

}  // namespace tg::engine
