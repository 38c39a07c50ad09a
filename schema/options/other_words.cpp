#include "schema/options/other_words.h"

#include <algorithm>

#include "schema/options/node_config.h"
#include "schema/options/options.h"

namespace tg::schema {
namespace {

constexpr OtherWord kJobKeys[] = {
    {"epochs", "epoch num-epochs max-epochs"},
    {"steps", "iterations max-iter max-steps num-steps"},
    {"learning-rate", "lr rate"},
    {"global-batch", "batch batch-size"},
    {"micro-batch", "accumulation-steps gradient-accumulation-steps"},
    {"model", "network arch architecture"},
    {"data", "dataset"},
    {"data-dir", "data-path"},
    {"initial", "pretrained weights checkpoint"},
    {"seed", "random-seed"},
    {"members", "nodes world-size"},
    {"each node reads its samples on its own threads, and the nodes are all those of the peer "
     "lines: leave it out",
     "workers num-workers"},
    {"optimizer", "optim"},
    {"weight-decay", "decay l2"},
    {"clip-sigma", "grad-clip gradient-clipping"},
    {"gradients", "compression quantization"},
    {"schedule", "scheduler lr-schedule lr-scheduler"},
    {"schedule-factor", "gamma"},
    {"schedule-every", "step-size"},
    {"schedule-floor", "min-lr"},
    {"warm-up", "warmup warmup-steps"},
    {"patience", "early-stop early-stopping"},
    {"evaluate-every", "eval-every eval-interval val-every"},
    {"checkpoint-every", "save-every save-interval checkpoint-interval"},
    {"image-size", "input-size img-size"},
    {"test-share", "val-split validation-split test-split"},
    {"the number of classes follows from the data, for fractals from data-classes", "classes num-classes"},
    {"training varies pictures by crop, flip and colour", "augment augmentation"},
    {"a node computes in float32; a GPU as math in its tgd.conf says", "amp dtype fp16 precision"},
    {"engine and device in each node's tgd.conf say what it computes with", "cuda gpu gpus"},
    {"the loss is cross-entropy, with label-smoothing: leave it out", "loss"},
    {"samples are shuffled anew in every epoch, by seed: leave it out", "shuffle"},
    {"metrics are kept of every step: tgctl export RUN writes them", "log-every log-interval"},
    {"tgctl fetch RUN -o DIR writes the model to a folder of yours", "output output-dir save-dir"},
    {"tgctl start --id NAME gives a run its name", "id name run-name"},
    {"tgctl resume RUN goes on with a run", "resume"},
};

}  // namespace

std::string meant_by(std::string_view word, OtherWords rows) {
  if (word.empty() || word.find(' ') != word.npos) return "";
  const auto spaced = [](std::string_view text) { return " " + std::string(text) + " "; };
  for (const OtherWord& row : rows)
    if (spaced(row.words).find(spaced(word)) != std::string::npos) return std::string(row.meant);
  return "";
}

std::string job_key_meant(std::string_view name) {
  std::string dashed(name);
  std::ranges::replace(dashed, '_', '-');
  std::string meant = meant_by(dashed, kJobKeys);
  if (meant.empty() && find_option(node_options(), dashed) != nullptr)
    meant = "it is a key of a node's tgd.conf, which tgctl help node explains";
  return meant;
}

}  // namespace tg::schema
