#include "schema/options/other_words.h"

#include <algorithm>

#include "schema/options/node_config.h"
#include "schema/options/options.h"

namespace tg::schema {
namespace {

constexpr std::string_view kVaried = "training varies pictures by crop, flip and colour",
                           kClasses = "the number of classes follows from the data, for fractals from data-classes",
                           kPrecision = "a node computes in float32; a GPU as math in its tgd.conf says",
                           kGpu = "engine and device in each node's tgd.conf say what it computes with",
                           kOutput = "tgctl fetch RUN -o DIR writes the model to a folder of yours",
                           kLogging = "metrics are kept of every step: tgctl export RUN writes them",
                           kWorkers =
                               "each node reads its samples on its own threads, and the nodes are all those of the "
                               "peer lines: leave it out",
                           kName = "tgctl start --id NAME gives a run its name";

constexpr OtherWord kJobKeys[] = {{"epoch", "epochs"},
                                  {"num-epochs", "epochs"},
                                  {"max-epochs", "epochs"},
                                  {"iterations", "steps"},
                                  {"max-iter", "steps"},
                                  {"max-steps", "steps"},
                                  {"num-steps", "steps"},
                                  {"lr", "learning-rate"},
                                  {"rate", "learning-rate"},
                                  {"batch", "global-batch"},
                                  {"batch-size", "global-batch"},
                                  {"accumulation-steps", "micro-batch"},
                                  {"gradient-accumulation-steps", "micro-batch"},
                                  {"network", "model"},
                                  {"arch", "model"},
                                  {"architecture", "model"},
                                  {"dataset", "data"},
                                  {"data-path", "data-dir"},
                                  {"pretrained", "initial"},
                                  {"weights", "initial"},
                                  {"checkpoint", "initial"},
                                  {"random-seed", "seed"},
                                  {"nodes", "members"},
                                  {"world-size", "members"},
                                  {"workers", kWorkers},
                                  {"num-workers", kWorkers},
                                  {"optim", "optimizer"},
                                  {"decay", "weight-decay"},
                                  {"l2", "weight-decay"},
                                  {"grad-clip", "clip-sigma"},
                                  {"gradient-clipping", "clip-sigma"},
                                  {"compression", "gradients"},
                                  {"quantization", "gradients"},
                                  {"scheduler", "schedule"},
                                  {"lr-schedule", "schedule"},
                                  {"lr-scheduler", "schedule"},
                                  {"gamma", "schedule-factor"},
                                  {"step-size", "schedule-every"},
                                  {"min-lr", "schedule-floor"},
                                  {"warmup", "warm-up"},
                                  {"warmup-steps", "warm-up"},
                                  {"early-stop", "patience"},
                                  {"early-stopping", "patience"},
                                  {"eval-every", "evaluate-every"},
                                  {"eval-interval", "evaluate-every"},
                                  {"val-every", "evaluate-every"},
                                  {"save-every", "checkpoint-every"},
                                  {"save-interval", "checkpoint-every"},
                                  {"checkpoint-interval", "checkpoint-every"},
                                  {"input-size", "image-size"},
                                  {"img-size", "image-size"},
                                  {"val-split", "test-share"},
                                  {"validation-split", "test-share"},
                                  {"test-split", "test-share"},
                                  {"classes", kClasses},
                                  {"num-classes", kClasses},
                                  {"augment", kVaried},
                                  {"augmentation", kVaried},
                                  {"amp", kPrecision},
                                  {"dtype", kPrecision},
                                  {"fp16", kPrecision},
                                  {"precision", kPrecision},
                                  {"cuda", kGpu},
                                  {"gpu", kGpu},
                                  {"gpus", kGpu},
                                  {"loss", "the loss is cross-entropy, with label-smoothing: leave it out"},
                                  {"shuffle", "samples are shuffled anew in every epoch, by seed: leave it out"},
                                  {"log-every", kLogging},
                                  {"log-interval", kLogging},
                                  {"output", kOutput},
                                  {"output-dir", kOutput},
                                  {"save-dir", kOutput},
                                  {"id", kName},
                                  {"name", kName},
                                  {"run-name", kName},
                                  {"resume", "tgctl resume RUN goes on with a run"}};

}  // namespace

std::string meant_by(std::string_view word, OtherWords words) {
  const auto found = std::ranges::find(words, word, &OtherWord::word);
  return found == words.end() ? "" : std::string(found->meant);
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
