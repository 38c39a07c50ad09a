// A job says what a run does. The user writes it as `key = value` lines; it travels in the same form, canonical: every
// key, sorted. Pure values. Parse errors name the key, the value, what is allowed, the nearest known key and, for
// files, the line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/status.h"
#include "schema/choices.h"
#include "schema/options/options.h"

namespace tg::schema {

struct RunStatus;

struct JobSpec {
  // The model and its data.
  ModelKind model = ModelKind::kLenet;
  std::vector<std::uint64_t> hidden = {256, 128};  // features of an MLP's hidden layers
  double label_smoothing = 0;
  std::vector<double> dropout;        // a rate per dropout layer, in the order of the network; empty = the model's
  std::vector<double> class_weights;  // factors on the loss, by class; empty = 1 each
  bool balanced_classes = false;      // class_weights follow from the data
  DatasetKind data = DatasetKind::kSynthetic;
  std::string data_dir;          // the folder on every node; empty = the node's own data-dir
  std::uint64_t data_seed = 1;   // seed of generated sets, and of the samples held back for testing
  std::uint64_t data_train = 0;  // images of a generated set, 0 = the generator's default
  std::uint64_t data_test = 0;
  std::uint64_t data_classes = 0;  // classes of fractals, 0 = the generator's default
  std::uint64_t image_size = 0;    // pixels of a side, for fractals and for a folder's pictures
  double test_share = 0;           // share of each class held back for testing; 0 = the data have a test set
  Damaged damaged = Damaged::kFatal;
  // How a sample becomes input; nullopt, 0 and empty = chosen to suit the data (engine/recipe.h).
  std::optional<Crop> crop;
  std::uint64_t crop_padding = 0;  // pixels on every side
  double least_area = 0.08;        // share of a picture's area
  std::uint64_t resize = 0;        // pixels of the shorter side
  ResizeShape resize_shape = ResizeShape::kAspect;
  std::optional<Flip> flip;
  std::optional<Colour> colour;
  double colour_strength = 0.4;
  double colour_hue = 0;
  std::optional<Normalization> normalization;
  std::vector<double> mean, deviation;  // per channel
  std::string initial;                  // file with the initial parameters; empty = drawn from the seed
  std::vector<std::string> freeze;      // prefixes of the names of parameters that stay as they are
  std::uint64_t steps = 1000;
  std::uint64_t epochs = 0;  // if set, the steps follow from it once the data are read (resolved_steps)
  std::uint64_t seed = 1;
  std::uint64_t global_batch = 64;
  std::uint64_t batch_per_node = 0;  // if set, global batch = this times members
  std::uint64_t micro_batch = 0;     // samples that the engine computes at once; 0 = the member's whole batch
  // Where the gradients come from.
  Compute compute = Compute::kTrain;
  std::optional<std::string> replay_gradients;  // replay: path of recorded gradients; nullopt = gaussian ones
  double replay_zeros = 0.68;                   // replay: share of zero codes of gaussian gradients
  // Optimizer, schedule and evaluation.
  OptimizerKind optimizer = OptimizerKind::kMomentum;
  double learning_rate = 0.01;
  ScheduleKind schedule = ScheduleKind::kConstant;
  double schedule_factor = 0.1;
  std::uint64_t schedule_every = 0;
  double schedule_power = 0.5;
  double schedule_floor = 0;
  std::uint64_t warm_up = 0;  // steps
  double momentum = 0.9;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  std::optional<WeightDecayPath> weight_decay_path;  // none = auto
  double ema = 0.9999;
  std::uint64_t evaluate_every = 0;  // steps; 0 = only at the end
  double target_accuracy = 0;        // 0..1, with which the run is complete; 0 = none
  std::uint64_t patience = 0;        // evaluations without a better accuracy; 0 = as many as there are
  Keep keep = Keep::kLast;           // the state that model.safetensors holds
  // How gradients travel.
  GradientFormat gradients = GradientFormat::kTernary;
  double clip_sigma = 2.5;  // 0 = off
  ScalerRecipe scaler = ScalerRecipe::kPaper;
  ScalerSharing scaler_sharing = ScalerSharing::kMax;
  std::optional<GradientFormat> last_layer;  // none = auto, by the model (resolved_last_layer)
  std::uint64_t min_ternary_size = 1;        // smaller segments travel as float32
  std::uint64_t float_steps = 0;             // the first steps travel as float32
  std::optional<ExchangeKind> exchange;      // none = auto
  std::optional<Coding> coding;              // none = auto
  std::uint64_t bucket_parameters = 0;       // 0 = chosen from the model
  std::uint64_t chunk_parameters = 0;        // 0 = chosen from the model and N
  // Running.
  Members members = Members::kAll;
  Split split = Split::kWeight;
  std::uint64_t digest_every = 20;  // steps
  std::uint64_t threads = 0;        // per member; 0 = the node's own setting
  std::uint64_t start_timeout_ms = 30'000;
  std::uint64_t step_timeout_ms = 60'000;       // lower bound of the timeout, which is 10 x the median step
  std::uint64_t checkpoint_every_ms = 300'000;  // 0 = only at the end
  std::uint64_t join_limit_ms = 60'000;         // 0 = no node joins
  bool auto_resume = true;                      // by the nodes themselves, as soon as all are back
  double link_mbps = 0;                         // 0 = measured at the start
  bool trace = false;                           // record a timeline of every member

  bool operator==(const JobSpec&) const = default;
};

// The table behind JobSpec: one row per key.
const std::vector<Option<JobSpec>>& job_options();

// Parses a job file's text; `file` is its name for errors.
Result<JobSpec> parse_job(std::string_view text, std::string_view file);
// Sets one key of a spec from "key=value" (--set).
Status set_job_key(JobSpec& spec, std::string_view assignment);
// As set_job_key, but setting steps clears epochs.
Status override_job_key(JobSpec& spec, std::string_view assignment);
// Checks what no single key can: B < 1, staircase without schedule-every, ... For B < N pass the members, 0 = unknown.
Status validate_job(const JobSpec& spec, std::size_t members);
// Every key, sorted, one `key = value` per line, last-layer resolved; otherwise parse_job(canonical_job(s)) == s.
std::string canonical_job(const JobSpec& spec);
// The same for the keys that are not the model's defaults, in the order of the reference; whole lines of at most `most`
// bytes.
std::string changed_keys(const JobSpec& spec, std::size_t most);
std::uint64_t job_hash(const JobSpec& spec);
// Whether weight decay is added to the gradient before it is ternarized; else the update sees to it.
bool decays_inside(const JobSpec& spec);
// How the last layer's gradient travels where gradients is kTernary. By default as in the paper's experiments: float32
// for AlexNet and GoogLeNet in all their forms, ternary for all other models.
GradientFormat resolved_last_layer(const JobSpec& spec);
std::uint64_t resolved_global_batch(const JobSpec& spec, std::size_t members);
// Passes over so many samples, the last step's batch reaching into the next one. An error if that is too many.
Result<std::uint64_t> resolved_steps(const JobSpec& spec, std::uint64_t samples, std::uint64_t global_batch);

// Copies what a run's status shows of its job.
void show_job(const JobSpec& job, RunStatus& status);

}  // namespace tg::schema
