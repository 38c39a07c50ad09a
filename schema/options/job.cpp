#include "schema/options/job.h"

#include <algorithm>
#include <map>

#include "schema/control/status.h"
#include "schema/limits.h"
#include "schema/options/data_keys.h"
#include "schema/options/node_config.h"
#include "schema/options/option_rows.h"

namespace tg::schema {
namespace {

constexpr std::uint64_t kMaxEpochs = 1'000'000;
constexpr std::uint64_t kMaxSteps = UINT32_MAX - 1;  // a step's number is 32 bits of a frame's header
constexpr std::uint64_t kMaxChunkParameters = kMaxChunkPayloadBytes * 4;  // raw codes take at most two bits each
static_assert(kLargeChunkParameters <= kMaxChunkParameters, "the automatic choice is a value that a job may set");
constexpr WholeRange kTimeoutRange{100, 86'400'000};
constexpr WholeRange kCheckpointRange{0, std::uint64_t{30} * 24 * 3'600'000};

using Row = Option<JobSpec>;
constexpr std::uint64_t kMaxFeatures = 65'536;  // features of a hidden layer
constexpr std::size_t kMaxHidden = 32;          // hidden layers
constexpr double kMaxClassWeight = 1e6;
constexpr std::size_t kMaxClassWeights = 1024;
constexpr std::size_t kMaxDropout = 16;  // layers
constexpr std::size_t kMaxPrefixes = 64, kMaxPrefixBytes = 64;

Row freeze_row() {
  const auto check = [](const std::string& value, std::size_t most_bytes) -> Status {
    return value.empty() ? bad_value(value, "the beginning of a name") : check_text(value, most_bytes);
  };
  return list_row("freeze", &JobSpec::freeze, string_row("", &JobSpec::initial, kMaxPrefixBytes, "text", "", +check),
                  &JobSpec::initial, kMaxPrefixes, "beginnings of names separated by commas, such as conv1.,layer1.",
                  "Parameters that are not trained: those whose PyTorch names begin with one of these. Nothing is sent "
                  "for them. Batch normalization still uses the statistics of the batch and updates its running ones, "
                  "as with requires_grad = False; empty = none.");
}

Row model_row() {
  Row row = choice_row("model", &JobSpec::model, "The network to train.");
  row.set = [set_word = row.set](JobSpec& spec, const std::string& value) -> Status {
    if (value.find_first_of("./") == std::string::npos) return set_word(spec, value);
    return bad_value(value,
                     "a model's name: networks of your own are not possible yet. tgctl models lists those that are "
                     "there; initial = FILE starts one from given parameters");
  };
  return row;
}

// A list, or one of two words.
Row class_weights_row() {
  constexpr const char *kNone = "none", *kBalanced = "balanced";
  Row row = list_row("class-weights", &JobSpec::class_weights,
                     real_row("", &JobSpec::test_share, {0, kMaxClassWeight, true, false}, ""), &JobSpec::test_share,
                     kMaxClassWeights, "none, balanced, or a number per class separated by commas, such as 1,2,0.5",
                     "Factor on each sample's training loss, by its class: a number per class in the order of the "
                     "labels, or balanced: every class counts the same, however many samples it has. Scaled to a mean "
                     "of 1 over the training set; a step's loss is divided by its number of samples, not by the sum of "
                     "their weights as in PyTorch. Evaluation is not weighted.");
  row.set = [set_list = row.set](JobSpec& spec, const std::string& value) -> Status {
    if (const Status set = set_list(spec, value == kNone || value == kBalanced ? "" : value); !set) return set;
    spec.balanced_classes = value == kBalanced;
    return {};
  };
  row.get = [get_list = row.get](const JobSpec& spec) {
    return spec.balanced_classes ? kBalanced : spec.class_weights.empty() ? kNone : get_list(spec);
  };
  return row;
}

void add_model_rows(std::vector<Row>& rows) {
  rows.push_back(model_row());
  rows.push_back(list_row("hidden", &JobSpec::hidden, whole_row("", &JobSpec::data_seed, {1, kMaxFeatures}, ""),
                          &JobSpec::data_seed, kMaxHidden, "numbers separated by commas, such as 256,128",
                          "mlp: features of each hidden layer; empty = none."));
  rows.push_back(real_row("label-smoothing", &JobSpec::label_smoothing, {0, 1, false, true},
                          "Share of each sample's target that is spread evenly over all classes."));
  rows.push_back(
      list_row("dropout", &JobSpec::dropout, real_row("", &JobSpec::label_smoothing, {0, 1, false, true}, ""),
               &JobSpec::label_smoothing, kMaxDropout, "numbers from 0 to below 1 separated by commas, such as 0.5,0.5",
               "Dropout rate of each dropout layer, in the order of the network; 0 = none. Empty = the model's own: "
               "alexnet and vgg-a 0.5,0.5; alexnet-two-column 0.2,0.2; googlenet 0.7,0.7,0.2 (two auxiliary heads, "
               "then the network); googlenet-slim 0.08. Other models have no dropout layer."));
  rows.push_back(class_weights_row());
}

void add_task_rows(std::vector<Row>& rows) {
  rows.push_back(path_row("initial", &JobSpec::initial, kMaxPathBytes,
                          "Parameters to start from, instead of random ones: a safetensors file with PyTorch's names "
                          "on every node, such as tgctl fetch writes; a path that does not begin with / is relative to "
                          "data-dir. The last layer is drawn at random if the file has another number of classes."));
  rows.push_back(freeze_row());
  rows.push_back(whole_row("steps", &JobSpec::steps, {1, kMaxSteps}, "Number of steps in the run."));
  rows.push_back(whole_row("epochs", &JobSpec::epochs, {0, kMaxEpochs},
                           "Passes over the training set, instead of steps; 0 = not used."));
  rows.push_back(whole_row("seed", &JobSpec::seed, {},
                           "Seed for initial parameters, sample order, augmentation and ternary draws."));
  rows.push_back(whole_row("global-batch", &JobSpec::global_batch, {1, kMaxBatch},
                           "Samples per step, over all members. The result does not depend on the number of members, "
                           "except with batch normalization, which sees only its member's share."));
  rows.push_back(whole_row("batch-per-node", &JobSpec::batch_per_node, {0, kMaxBatch},
                           "Samples per step and member, instead of global-batch; 0 = not used."));
  rows.push_back(
      whole_row("micro-batch", &JobSpec::micro_batch, {0, kMaxBatch},
                "Samples that a member computes at once, accumulating their gradients: for models that would not fit "
                "its memory otherwise. The last micro-batch of a step may be smaller; 0 = all at once."));
}

// The value that is not a path.
constexpr const char* kGaussian = "gaussian";
Row replay_gradients_row() {
  const auto parse = [](const std::string& value) -> Result<std::optional<std::string>> {
    if (const Status status = check_path(value, kMaxPathBytes); !status) return status.error();
    return value == kGaussian ? std::nullopt : std::optional(value);
  };
  return value_row(
      "replay-gradients", &JobSpec::replay_gradients, "gaussian, or a path",
      "replay: gaussian, or a file of float32 gradients on every node; {rank} stands for the member's rank.", parse,
      [](const std::optional<std::string>& path) { return path.value_or(kGaussian); });
}

void add_compute_rows(std::vector<Row>& rows) {
  rows.push_back(choice_row(
      "compute", &JobSpec::compute,
      "train on data, or replay: exchange gradients that were made once before the first step, to measure a network."));
  rows.push_back(replay_gradients_row());
  rows.push_back(
      real_row("replay-zeros", &JobSpec::replay_zeros, {0.68, 0.9999, false, false},
               "replay: share of zero codes in gaussian gradients at clip-sigma 2.5; 0.68 = plain gaussian."));
}

// Square roots and products are the same on every machine, a general power is not.
Row power_row() {
  Row row = real_row("schedule-power", &JobSpec::schedule_power, {0.5, 2, false, false},
                     "polynomial: rate * (1 - step/steps) ^ power.");
  row.allowed = "0.5 | 1 | 2";
  const auto set_number = row.set;
  row.set = [set_number](JobSpec& spec, const std::string& value) -> Status {
    JobSpec tried;
    if (const Status status = set_number(tried, value); !status) return status;
    const double power = tried.schedule_power;
    if (power != 0.5 && power != 1 && power != 2) return bad_value(value, "one of 0.5 | 1 | 2");
    spec.schedule_power = power;
    return {};
  };
  return row;
}

void add_learning_rows(std::vector<Row>& rows) {
  const RealRange fraction{0, 1, false, true};
  rows.push_back(choice_row(
      "optimizer", &JobSpec::optimizer,
      "The update rule; adamw: adam with weight decay on the parameters instead of in the gradient, as in PyTorch."));
  rows.push_back(real_row("learning-rate", &JobSpec::learning_rate, {0, 1e6, true, false},
                          "Learning rate at step 0, before warm-up scales it."));
  rows.push_back(choice_row("schedule", &JobSpec::schedule,
                            "How the learning rate decreases; cosine: by half a cosine over all steps."));
  rows.push_back(real_row("schedule-factor", &JobSpec::schedule_factor, {0, 1, true, false},
                          "staircase: factor on the rate at each stair."));
  rows.push_back(whole_row("schedule-every", &JobSpec::schedule_every, {0, kMaxSteps}, "staircase: steps per stair."));
  rows.push_back(power_row());
  rows.push_back(real_row("schedule-floor", &JobSpec::schedule_floor, {0, 1e6, false, false},
                          "Learning rate that a schedule decreases towards; polynomial and cosine reach it."));
  rows.push_back(
      whole_row("warm-up", &JobSpec::warm_up, {0, kMaxSteps},
                "Number N of first steps, which use 1/N, 2/N, ... N/N of the schedule's learning rate; 0 = none."));
  rows.push_back(
      real_row("momentum", &JobSpec::momentum, fraction, "momentum: share of the last update that is kept."));
  rows.push_back(real_row("beta1", &JobSpec::beta1, fraction, "adam, adamw: decay of the first moment."));
  rows.push_back(real_row("beta2", &JobSpec::beta2, fraction, "adam, adamw: decay of the second moment."));
  rows.push_back(real_row("epsilon", &JobSpec::epsilon, {0, 1, true, false}, "adam, adamw: added to the denominator."));
  rows.push_back(real_row("weight-decay", &JobSpec::weight_decay, {0, 1e3, false, false},
                          "This times the parameters, except biases, is added to the gradient; adamw: the parameters "
                          "shrink by this times the learning rate in each step; 0 = off."));
  rows.push_back(choice_row("weight-decay-path", &JobSpec::weight_decay_path,
                            "inside: weight decay is added before ternarizing; outside: at the update; auto: inside, "
                            "but outside with adamw."));
  rows.push_back(real_row("ema", &JobSpec::ema, fraction,
                          "Decay of the moving average of the parameters, which is evaluated; 0 = no average."));
  rows.push_back(whole_row("evaluate-every", &JobSpec::evaluate_every, {0, kMaxSteps},
                           "Steps between evaluations on the test set; 0 = only at the end."));
  rows.push_back(real_row("target-accuracy", &JobSpec::target_accuracy, fraction,
                          "Complete the run early when an evaluation reaches this accuracy on the test set, such as "
                          "0.98. Needs evaluate-every; 0 = off."));
  rows.push_back(whole_row("patience", &JobSpec::patience, {0, kMaxSteps},
                           "Complete the run early after this many evaluations in a row without improvement. Needs "
                           "evaluate-every; 0 = off."));
  rows.push_back(
      choice_row("keep", &JobSpec::keep,
                 "Which model model.safetensors holds in the end: that of the last step, or that of the best "
                 "evaluation (the first of equal ones), for which each member keeps one more copy of the parameters. "
                 "model-raw.safetensors and the state to resume from are those of the last step."));
}

void add_gradient_rows(std::vector<Row>& rows) {
  rows.push_back(choice_row("gradients", &JobSpec::gradients,
                            "How gradients travel: as ternary codes, or as floats for comparison."));
  rows.push_back(real_row("clip-sigma", &JobSpec::clip_sigma, {0, 1e6, false, false},
                          "Clip gradients at this many standard deviations of their segment; 0 = off."));
  rows.push_back(
      choice_row("scaler", &JobSpec::scaler, "Scaler by the paper's formula, or as in its authors' code (repo)."));
  rows.push_back(choice_row(
      "scaler-sharing", &JobSpec::scaler_sharing,
      "A segment's scaler: the largest of all members' (max), or each member's own (none; direct exchange)."));
  rows.push_back(
      choice_row("last-layer", &JobSpec::last_layer,
                 "How the last layer's gradient travels; auto: as float32 for every alexnet and googlenet, as in the "
                 "paper, and as ternary codes for all other models. As float32 it is most of such a step's bits."));
  rows.push_back(whole_row("min-ternary-size", &JobSpec::min_ternary_size, {0, UINT32_MAX},
                           "Segments with fewer parameters than this travel as float32."));
  rows.push_back(whole_row("float-steps", &JobSpec::float_steps, {0, kMaxSteps},
                           "Number of first steps whose gradients travel as float32."));
  rows.push_back(choice_row("exchange", &JobSpec::exchange,
                            "direct: every member sends its codes to every other; sharded: each chunk is summed by one "
                            "owner; auto: depends on the number of members."));
  rows.push_back(choice_row(
      "coding", &JobSpec::coding,
      "Ternary payloads as bit planes (raw) or entropy-coded (entropy); auto: depends on the measured link."));
  rows.push_back(whole_row("bucket-parameters", &JobSpec::bucket_parameters, {0, UINT32_MAX},
                           "Parameters per bucket, which is sent as soon as it is full; 0 = chosen from the model."));
  rows.push_back(whole_row("chunk-parameters", &JobSpec::chunk_parameters, {0, kMaxChunkParameters},
                           "Parameters per chunk; 0 = chosen from the model and the number of members."));
}

void add_running_rows(std::vector<Row>& rows) {
  rows.push_back(
      choice_row("members", &JobSpec::members,
                 "Which nodes take part: all that the peer lines name; tgctl start --without NODE leaves one out."));
  rows.push_back(choice_row("split", &JobSpec::split,
                            "How the members share a step's samples: by the weight in each node's configuration, or by "
                            "the speed that each measures before the run begins, which a resume keeps."));
  rows.push_back(whole_row("digest-every", &JobSpec::digest_every, {1, kMaxSteps},
                           "Steps between comparisons of the members' states."));
  rows.push_back(whole_row("threads", &JobSpec::threads, {0, kMaxThreads},
                           "Threads per member for the engine and for the exchange, fixed so that the run can be "
                           "recomputed; 0 = each node's own setting."));
  rows.push_back(duration_row("start-timeout", &JobSpec::start_timeout_ms, kTimeoutRange,
                              "How long a start waits for absent members."));
  rows.push_back(duration_row(
      "step-timeout", &JobSpec::step_timeout_ms, kTimeoutRange,
      "A member without progress for this long, or for 10 median steps if that is longer, is considered stuck."));
  rows.push_back(duration_row("checkpoint-every", &JobSpec::checkpoint_every_ms, kCheckpointRange,
                              "How often each member writes its state during training, so that the run survives the "
                              "death of all nodes; 0s = only at the end."));
  rows.push_back(duration_row(
      "join-limit", &JobSpec::join_limit_ms, kCheckpointRange,
      "How long the members may wait while a returning node receives the run's state; 0s = no node rejoins."));
  rows.push_back(
      flag_row("auto-resume", &JobSpec::auto_resume,
               "Whether the nodes resume an interrupted run by themselves, as soon as all of them are back."));
  rows.push_back(real_row("link-mbps", &JobSpec::link_mbps, {0, 1e7, false, false},
                          "Mbit/s of each node's link, for predictions, coding = auto and chunk sizes; "
                          "0 = measured at the start."));
  rows.push_back(
      flag_row("trace", &JobSpec::trace, "Whether every member records a timeline (trace.json, Chrome trace format)."));
}

// What does not change the steps that a run has already made.
constexpr std::string_view kResumable[] = {
    "steps",           "epochs",         "learning-rate",    "schedule", "schedule-factor",
    "schedule-every",  "schedule-power", "schedule-floor",   "warm-up",  "evaluate-every",
    "target-accuracy", "patience",       "checkpoint-every", "trace",    "auto-resume",
    "step-timeout",    "start-timeout",  "join-limit"};

// The headings of the reference, in its order. A key has that of its function above, except for these.
constexpr std::string_view kFirstDay = "The first day", kData = "Data", kLearning = "Learning",
                           kGradients = "Gradients: the paper's knobs", kMeasuring = "Measuring", kRunning = "Running";
constexpr std::string_view kGroups[] = {kFirstDay, kData, kLearning, kGradients, kMeasuring, kRunning};
constexpr std::string_view kFirstDayKeys[] = {"model",  "data",         "data-dir",      "steps",
                                              "epochs", "global-batch", "learning-rate", "evaluate-every"};
constexpr std::string_view kMeasuringKeys[] = {"link-mbps", "trace"};

std::vector<Row> make_rows() {
  std::vector<Row> rows;
  const auto add = [&rows](std::string_view group, void (*add_rows)(std::vector<Row>&)) {
    add_rows(rows);
    for (Row& row : rows)
      if (row.group.empty()) row.group = group;
  };
  add(kLearning, add_model_rows);
  add(kData, add_data_keys);
  add(kLearning, add_task_rows);
  add(kMeasuring, add_compute_rows);
  add(kLearning, add_learning_rows);
  add(kGradients, add_gradient_rows);
  add(kRunning, add_running_rows);
  for (Row& row : rows) {
    if (std::ranges::find(kFirstDayKeys, row.name) != std::end(kFirstDayKeys)) row.group = kFirstDay;
    if (std::ranges::find(kMeasuringKeys, row.name) != std::end(kMeasuringKeys)) row.group = kMeasuring;
    row.resumable = std::ranges::find(kResumable, row.name) != std::end(kResumable);
  }
  std::ranges::stable_sort(rows, {}, [](const Row& row) { return std::ranges::find(kGroups, row.group) - kGroups; });
  return rows;
}

// PyTorch's names for keys whose own names are spelled too differently to be found by nearest().
constexpr std::pair<std::string_view, std::string_view> kPytorchNames[] = {
    {"lr", "learning-rate"},   {"batch-size", "global-batch"}, {"arch", "model"},           {"dataset", "data"},
    {"pretrained", "initial"}, {"iterations", "steps"},        {"gamma", "schedule-factor"}};

std::string unknown_job_key(std::string_view name) {
  std::string dashed(name), hint;
  std::ranges::replace(dashed, '_', '-');
  if (find_option(node_options(), dashed) != nullptr)
    hint = "it is a key of a node's tgd.conf, which tgctl help node explains";
  for (const auto& [theirs, ours] : kPytorchNames)
    if (dashed == theirs) hint = "did you mean \"" + std::string(ours) + "\"?";
  return unknown_key(job_options(), name, hint, "tgctl help job");
}

Status set_key(JobSpec& spec, std::string_view key, std::string_view value) {
  const Row* row = find_option(job_options(), key);
  if (row == nullptr) return Error{ErrorKind::kUsage, unknown_job_key(key)};
  const Status status = row->set(spec, std::string(value));
  if (!status) return Error{status.error().kind, std::string(key) + ": " + status.error().message};
  return {};
}

Error invalid(std::string message) { return {ErrorKind::kInvalidJob, std::move(message)}; }

Status validate_compute(const JobSpec& spec) {
  if (spec.compute == Compute::kTrain) {
    const JobSpec defaults;
    if (spec.replay_gradients)
      return invalid("replay-gradients = " + *spec.replay_gradients + " needs compute = replay; compute is train");
    if (spec.replay_zeros != defaults.replay_zeros)
      return invalid("replay-zeros = " + format_real(spec.replay_zeros) + " needs compute = replay; compute is train");
    return {};
  }
  if (spec.replay_gradients && spec.replay_gradients->empty())
    return invalid("replay-gradients is empty: set it to gaussian or to the path of recorded gradients");
  if (spec.evaluate_every > 0) {
    return invalid("evaluate-every = " + std::to_string(spec.evaluate_every) +
                   " needs compute = train: a replayed run has no data to evaluate on; set evaluate-every to 0");
  }
  if (spec.epochs > 0)
    return invalid("epochs = " + std::to_string(spec.epochs) +
                   " needs compute = train: a replayed run has no data to pass over; set steps");
  if (!spec.initial.empty())
    return invalid("initial = " + spec.initial + " needs compute = train: a replayed run learns nothing; leave it out");
  if (spec.balanced_classes || !spec.class_weights.empty())
    return invalid("class-weights needs compute = train: a replayed gradient is of no class; leave it out");
  if (!spec.dropout.empty())
    return invalid("dropout needs compute = train: a replayed gradient passed no layer; leave it out");
  if (spec.micro_batch > 0)
    return invalid("micro-batch = " + std::to_string(spec.micro_batch) +
                   " needs compute = train: a replayed gradient is computed once; set micro-batch to 0");
  // The decay would be added to the same array in every step.
  if (spec.weight_decay > 0 && decays_inside(spec)) {
    return invalid("weight-decay = " + format_real(spec.weight_decay) +
                   " inside the ternary path needs compute = train: replayed gradients stay as they are; set "
                   "weight-decay-path to outside or weight-decay to 0");
  }
  return {};
}

GradientFormat last_layer_of(ModelKind model) {
  switch (model) {
    case ModelKind::kAlexnet:
    case ModelKind::kAlexnetTwoColumn:
    case ModelKind::kGooglenet:
    case ModelKind::kGooglenetSlim:
      return GradientFormat::kFloat32;
    default:
      return GradientFormat::kTernary;
  }
}

}  // namespace

const std::vector<Option<JobSpec>>& job_options() {
  static const std::vector<Row> rows = make_rows();
  return rows;
}

Result<JobSpec> parse_job(std::string_view text, std::string_view file) {
  if (text.size() > kMaxSpecBytes) {
    return Error{ErrorKind::kUsage, std::string(file) + ": " + std::to_string(text.size()) +
                                        " bytes are too long for a job; at most " + std::to_string(kMaxSpecBytes)};
  }
  Result<std::vector<Assignment>> assignments = parse_assignments(text, file);
  if (!assignments) return assignments.error();
  JobSpec spec;
  std::map<std::string, int> seen;
  for (const Assignment& assignment : *assignments) {
    const std::string place = std::string(file) + ":" + std::to_string(assignment.line) + ": ";
    const auto [first, fresh] = seen.emplace(assignment.key, assignment.line);
    if (!fresh)
      return Error{ErrorKind::kUsage,
                   place + assignment.key + " is set again; line " + std::to_string(first->second) + " has set it"};
    const Status status = set_key(spec, assignment.key, assignment.value);
    if (!status) return Error{status.error().kind, place + status.error().message};
  }
  return spec;
}

Status set_job_key(JobSpec& spec, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) return bad_value(assignment, "of the form key=value");
  const auto trim = [](std::string_view part) {
    const std::size_t first = std::min(part.find_first_not_of(' '), part.size());
    return part.substr(first, part.find_last_not_of(' ') + 1 - first);
  };
  return set_key(spec, trim(assignment.substr(0, equals)), trim(assignment.substr(equals + 1)));
}

Status override_job_key(JobSpec& spec, std::string_view assignment) {
  if (const Status set = set_job_key(spec, assignment); !set) return set;
  const bool steps = assignment.substr(0, assignment.find_first_of("= ")) == "steps";
  if (steps) spec.epochs = 0;
  return {};
}

Status validate_job(const JobSpec& spec, std::size_t members) {
  if (spec.schedule == ScheduleKind::kStaircase && spec.schedule_every == 0) {
    return invalid("schedule = staircase needs schedule-every, the steps of a stair");
  }
  if (spec.schedule_floor > spec.learning_rate) {
    return invalid("schedule-floor = " + format_real(spec.schedule_floor) +
                   " is above learning-rate = " + format_real(spec.learning_rate) + ", from which the schedule falls");
  }
  if (spec.optimizer == OptimizerKind::kAdamW && decays_inside(spec))
    return invalid(
        "weight-decay-path = inside is not for optimizer = adamw, whose weight decay never enters the "
        "gradient; leave it out");
  if (const Status status = validate_data_keys(spec); !status) return status;
  if (spec.hidden != JobSpec().hidden && spec.model != ModelKind::kMlp)
    return invalid(std::string("hidden is for model = mlp; model is ") + to_word(spec.model));
  if (spec.scaler_sharing == ScalerSharing::kNone && spec.exchange == ExchangeKind::kSharded) {
    return invalid("scaler-sharing = none sums floats and exchanges directly; set exchange to direct or auto");
  }
  const char* const evaluates = spec.patience > 0          ? "patience"
                                : spec.target_accuracy > 0 ? "target-accuracy"
                                : spec.keep == Keep::kBest ? "keep = best"
                                                           : nullptr;
  if (evaluates != nullptr && spec.evaluate_every == 0)
    return invalid(std::string(evaluates) + " needs evaluate-every, the steps between evaluations");
  if (const Status status = validate_compute(spec); !status) return status;
  if (members > kMaxMembers) {
    return invalid(std::to_string(members) + " members are too many; at most " + std::to_string(kMaxMembers));
  }
  const std::uint64_t batch = resolved_global_batch(spec, std::max<std::size_t>(members, 1));
  if (batch < 1) return invalid("a step needs at least one sample: set global-batch or batch-per-node");
  if (batch > kMaxBatch) {
    return invalid("a global batch of " + std::to_string(batch) + " samples is too large; at most " +
                   std::to_string(kMaxBatch));
  }
  if (members > 0 && batch < members) {
    return invalid("global-batch = " + std::to_string(batch) + " is less than the " + std::to_string(members) +
                   " members: each needs a sample of every step; set global-batch to " + std::to_string(members) +
                   " or more");
  }
  return {};
}

std::string canonical_job(const JobSpec& spec) {
  JobSpec resolved = spec;
  resolved.last_layer = resolved_last_layer(spec);
  std::map<std::string, std::string> sorted;
  for (const Row& row : job_options()) sorted.emplace(row.name, row.get(resolved));
  std::string text;
  for (const auto& [key, value] : sorted) text += key + " =" + (value.empty() ? "" : " ") + value + "\n";
  return text;
}

std::string changed_keys(const JobSpec& spec, std::size_t most) {
  JobSpec defaults, resolved = spec;
  defaults.last_layer = last_layer_of(spec.model);
  resolved.last_layer = resolved_last_layer(spec);
  std::string text;
  for (const Row& row : job_options()) {
    const std::string value = row.get(resolved);
    if (value == row.get(defaults)) continue;
    const std::string line = row.name + " = " + value + "\n";
    if (text.size() + line.size() > most) break;
    text += line;
  }
  return text;
}

std::uint64_t job_hash(const JobSpec& spec) { return hash_text(canonical_job(spec)); }

bool decays_inside(const JobSpec& spec) {
  const bool at_update = spec.optimizer == OptimizerKind::kAdamW;
  return spec.weight_decay_path.value_or(at_update ? WeightDecayPath::kOutside : WeightDecayPath::kInside) ==
         WeightDecayPath::kInside;
}

GradientFormat resolved_last_layer(const JobSpec& spec) { return spec.last_layer.value_or(last_layer_of(spec.model)); }

std::uint64_t resolved_global_batch(const JobSpec& spec, std::size_t members) {
  return spec.batch_per_node > 0 ? spec.batch_per_node * members : spec.global_batch;
}

Result<std::uint64_t> resolved_steps(const JobSpec& spec, std::uint64_t samples, std::uint64_t global_batch) {
  if (spec.epochs == 0) return spec.steps;
  const std::uint64_t steps = (spec.epochs * samples + global_batch - 1) / global_batch;  // 2^20 epochs, 2^32 samples
  if (steps <= kMaxSteps) return std::max<std::uint64_t>(steps, 1);
  return invalid("epochs = " + std::to_string(spec.epochs) + " are " + std::to_string(steps) +
                 " steps of this set; at most " + std::to_string(kMaxSteps));
}

void show_job(const JobSpec& job, RunStatus& status) {
  status.model = to_word(job.model);
  status.data = to_word(job.data);
  status.gradients = to_word(job.gradients);
  status.last_layer = to_word(job.gradients == GradientFormat::kTernary ? resolved_last_layer(job) : job.gradients);
  status.settings = changed_keys(job, kMaxSettingsBytes);
}

}  // namespace tg::schema
