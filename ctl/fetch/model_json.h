// model.json: what a fetched model is, for programs and people: of which run and state, how well it did, and what its
// nodes have written into it of network, preprocessing and classes (daemon/run/description.h). Pure.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/base/status.h"

namespace tg::ctl {

// description: of the metadata of a model file. record: run.json of the member that it is from. best_step: of the best
// evaluation, if that is what the file is of; else 0, and it is of the run's last state, whose digest is said in any
// case. One key, class list or operator a line. Never throws, whatever the texts; an error (kCorrupt) completes "NODE's
// model.safetensors is damaged: ".
//
//   {"model": WORD, "tgd": BUILD, "run": ID, "step": n, "digest": HEX,
//    "evaluation": {"step": n, "accuracy": x, "loss": x, "samples": n} or null, then as in the description}
//
// Of a best evaluation that was not the last one, its loss is not in the record: null. Without samples where damaged
// files are skipped: how many were evaluated is not in the record either.
Result<std::string> compose_model_json(const std::string& description, const std::string& record,
                                       std::uint64_t best_step = 0);

}  // namespace tg::ctl
