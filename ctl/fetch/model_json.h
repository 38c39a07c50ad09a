// Composes model.json, the description of a fetched model: its run and state, its evaluation, and the network,
// preprocessing and classes that nodes wrote into the model file (daemon/run/description.h). Pure.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/base/status.h"

namespace tg::ctl {

// description: from the metadata of a model file. record: run.json of the member with that file. best_step: the step of
// the best evaluation if the file is from it; 0 if it is from the run's last state. The digest is the last state's in
// either case. One key, class list or operator per line. Never throws; an error (kCorrupt) completes "NODE's
// model.safetensors is damaged: ".
//
//   {"model": WORD, "tgd": BUILD, "run": ID, "step": n, "digest": HEX,
//    "evaluation": {"step": n, "accuracy": x, "loss": x, "samples": n} or null, then as in the description}
//
// The loss of a best evaluation that was not the last one is null, because the record does not have it. "samples" is
// absent where damaged files are skipped, because the record does not have the number evaluated.
Result<std::string> compose_model_json(const std::string& description, const std::string& record,
                                       std::uint64_t best_step = 0);

}  // namespace tg::ctl
