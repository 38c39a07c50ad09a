// tgd_plain_train --rule NAME --members N --job FILE [--set KEY=VALUE]...
//
// Trains a job's model in this process, its N members' gradients made one by rule NAME (rules.h), on the job's samples
// as a run shares them. Prints one JSON object. Without arguments: the names of the rules. The job's keys for how
// gradients travel mean nothing here. One that holds batch normalizations is refused, and keys that are not followed.
//
//   tgd_plain_train --rule qsgd-4 --members 4 --job deploy/jobs/lenet-mnist.job --set data-dir=DIR --set steps=1000
//
// Exit status: 0, or 2: usage, or what cannot be read.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "daemon/step/job_data.h"
#include "engine/engine.h"
#include "engine/optimizer.h"
#include "kernels/kernels.h"
#include "schema/options/job.h"
#include "tests/lab/whole_number.h"
#include "tests/plain/rules.h"

namespace tg::plain {
namespace {

constexpr int kEvaluationBatch = 250;
constexpr std::uint64_t kMeasureEvery = 10;  // steps: bits, and how far the applied gradient is from the mean

struct Arguments {
  std::string rule;
  std::size_t members = 0;
  schema::JobSpec job;
};

Result<Arguments> parse(const std::vector<std::string>& words) {
  Arguments arguments;
  std::vector<std::string> settings;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    const std::string& value = words[i + 1];
    if (words[i] == "--rule") {
      arguments.rule = value;
    } else if (words[i] == "--members") {
      const Result<std::size_t> number = lab::whole_number(words[i], value);
      if (!number.ok()) return number.error();
      arguments.members = *number;
    } else if (words[i] == "--job") {
      std::ifstream file(value);
      std::ostringstream text;
      text << file.rdbuf();
      if (!file) return Error{ErrorKind::kIo, value + ": cannot be read"};
      Result<schema::JobSpec> job = schema::parse_job(text.str(), value);
      if (!job.ok()) return job.error();
      arguments.job = *job;
    } else if (words[i] == "--set") {
      settings.push_back(value);
    } else {
      return Error{ErrorKind::kUsage, "unknown option " + words[i]};
    }
  }
  if (words.size() % 2 != 0) return Error{ErrorKind::kUsage, words.back() + " needs a value"};
  for (const std::string& setting : settings)
    if (const Status set = schema::override_job_key(arguments.job, setting); !set.ok()) return set.error();
  if (arguments.members == 0) return Error{ErrorKind::kUsage, "--members N is missing"};
  if (const Status valid = schema::validate_job(arguments.job, arguments.members); !valid.ok()) return valid.error();
  return arguments;
}

// How far the applied gradient is from the mean of the members', over the measured steps.
struct Distance {
  double errors = 0, squares = 0, products = 0;
  void add(std::span<const float> applied, std::span<const std::span<const float>> gradients) {
    for (std::size_t i = 0; i < applied.size(); ++i) {
      double mean = 0;
      for (const std::span<const float> gradient : gradients) mean += static_cast<double>(gradient[i]);
      mean /= static_cast<double>(gradients.size());
      errors += (applied[i] - mean) * (applied[i] - mean);
      squares += mean * mean;
      products += applied[i] * mean;
    }
  }
};

class Training {
 public:
  Training(const Arguments& arguments, Rule& rule, engine::Model model, std::shared_ptr<const engine::Dataset> data,
           engine::Recipe recipe)
      : job_(arguments.job),
        members_(arguments.members),
        rule_(rule),
        model_(std::move(model)),
        data_(std::move(data)),
        recipe_(std::move(recipe)),
        stream_(job_.seed, data_->train.count()),
        optimizer_(daemon::optimizer_of(job_)) {
    for (AlignedArray<float>* each :
         {&parameters_, &slot0_, &slot1_, &average_, &mean_, &next_parameters_, &next_slot0_, &next_slot1_})
      *each = AlignedArray<float>(model_.segments.padded_count());
    engine::initialize(model_.segments, job_.seed, parameters_.data());
    std::ranges::copy(parameters_, average_.begin());
  }

  Result<nlohmann::ordered_json> run();

 private:
  Status make_engines();
  void step(std::uint64_t step);
  // Returns a member's gradient, and adds the loss of its samples.
  AlignedArray<float> gradient_of(std::uint64_t step, std::size_t rank);
  void update(std::uint64_t step, std::size_t parts);
  engine::EvaluationCounts evaluate();
  const kernels::Kernels& kernels() const { return *kernels::available().front(); }

  const schema::JobSpec& job_;
  const std::size_t members_;
  Rule& rule_;
  const engine::Model model_;
  const std::shared_ptr<const engine::Dataset> data_;
  const engine::Recipe recipe_;
  engine::SampleStream stream_;
  const engine::OptimizerOptions optimizer_;
  std::vector<engine::Share> shares_;
  std::map<int, std::unique_ptr<engine::Engine>> engines_;  // by samples
  AlignedArray<float> parameters_, slot0_, slot1_, average_, mean_, next_parameters_, next_slot0_, next_slot1_;
  engine::Batch batch_;
  double loss_ = 0;  // sum of all samples' since the last evaluation
  Bits bits_;        // the measured steps'
  Distance distance_;
};

Status Training::make_engines() {
  shares_ = engine::split(job_.global_batch, std::vector<std::uint16_t>(members_, 1));
  for (const engine::Share& share : shares_) {
    if (engines_.contains(share.count)) continue;
    const int threads = job_.threads > 0 ? static_cast<int>(job_.threads) : 1;
    auto engine = engine::make_cpu_engine(model_, {threads, share.count, kEvaluationBatch, job_.seed});
    if (!engine.ok()) return engine.error();
    engines_[share.count] = std::move(engine).value();
  }
  return {};
}

AlignedArray<float> Training::gradient_of(std::uint64_t step, std::size_t rank) {
  const engine::Share& share = shares_[rank];
  AlignedArray<float> gradient(model_.segments.padded_count());
  batch_.count = share.count;
  engine::fill_training_batch(*data_, recipe_, stream_, job_.seed, step * job_.global_batch + share.first, batch_);
  engine::Engine& engine = *engines_[share.count];
  loss_ += engine.forward(parameters_.data(), batch_);
  const double factor = static_cast<double>(members_) / static_cast<double>(job_.global_batch);
  engine.backward(static_cast<float>(factor), gradient.data(), [](std::size_t, std::size_t) {});
  if (job_.weight_decay == 0 || !schema::decays_inside(job_)) return gradient;
  for (const engine::Segment& segment : model_.segments.segments())
    if (segment.decays)
      kernels().add_scaled(parameters_.span().subspan(segment.offset, segment.padded_count()),
                           static_cast<float>(job_.weight_decay),
                           gradient.span().subspan(segment.offset, segment.padded_count()));
  return gradient;
}

// parts: of how many updates of a step this is one; each has that part of the rate.
void Training::update(std::uint64_t step, std::size_t parts) {
  kernels::Update update = engine::update_for_step(optimizer_, step);
  update.scale = 1;
  update.rate /= static_cast<float>(parts);
  for (const engine::Segment& segment : model_.segments.segments()) {
    update.weight_decay = segment.decays && !schema::decays_inside(job_) ? static_cast<float>(job_.weight_decay) : 0.0F;
    const auto part = [&](AlignedArray<float>& of) {
      return of.span().subspan(segment.offset, segment.padded_count());
    };
    kernels().apply_floats(update, part(mean_), {part(parameters_), part(slot0_), part(slot1_)},
                           {part(next_parameters_), part(next_slot0_), part(next_slot1_)});
  }
  std::swap(parameters_, next_parameters_);
  std::swap(slot0_, next_slot0_);
  std::swap(slot1_, next_slot1_);
}

void Training::step(std::uint64_t step) {
  const std::size_t at_a_time = rule_.at_a_time(members_);
  for (std::size_t first = 0; first < members_; first += at_a_time) {
    std::vector<AlignedArray<float>> gradients;
    std::vector<std::span<const float>> spans;
    for (std::size_t rank = first; rank < first + at_a_time; ++rank) gradients.push_back(gradient_of(step, rank));
    for (const AlignedArray<float>& gradient : gradients) spans.emplace_back(gradient.span());
    const bool measured = step % kMeasureEvery == 0;
    const Round round{kernels(), job_.seed, static_cast<std::uint32_t>(step), measured};
    Bits bits = rule_.mean(round, model_.segments, spans, mean_.span());
    bits.sent *= static_cast<double>(at_a_time) / static_cast<double>(members_);
    if (measured) bits_ += bits;
    if (measured) distance_.add(mean_.span(), spans);
    update(step, members_ / at_a_time);
  }
  if (job_.ema > 0)
    kernels().average(parameters_.span(), engine::average_rate(job_.ema, step + 1), average_.span());
  else
    std::ranges::copy(parameters_, average_.begin());
}

engine::EvaluationCounts Training::evaluate() {
  engine::EvaluationCounts counts;
  engine::Batch batch;
  const std::size_t all = data_->test.count();
  for (std::size_t first = 0; first < all; first += kEvaluationBatch) {
    batch.count = static_cast<int>(std::min<std::size_t>(kEvaluationBatch, all - first));
    engine::fill_evaluation_batch(*data_, recipe_, first, batch);
    counts += engines_.begin()->second->evaluate(average_.data(), batch);
  }
  return counts;
}

Result<nlohmann::ordered_json> Training::run() {
  if (const Status made = make_engines(); !made.ok()) return made.error();
  const std::uint64_t every = job_.evaluate_every > 0 ? job_.evaluate_every : job_.steps;
  const auto begun = std::chrono::steady_clock::now();
  nlohmann::ordered_json line;
  nlohmann::json curve = nlohmann::json::array();
  for (std::uint64_t done = 0; done < job_.steps;) {
    const std::uint64_t until = std::min(job_.steps, done + every);
    loss_ = 0;
    const auto samples = static_cast<double>((until - done) * job_.global_batch);
    for (; done < until; ++done) step(done);
    const engine::EvaluationCounts counts = evaluate();
    const auto total = static_cast<double>(counts.total);
    curve.push_back({done, static_cast<double>(counts.correct) / total});
    if (done < job_.steps) continue;
    line["train_loss"] = loss_ / samples;  // since the evaluation before
    line["test_loss"] = counts.loss_sum / total;
    line["accuracy"] = static_cast<double>(counts.correct) / total;
    line["top_5"] = static_cast<double>(counts.correct_5) / total;
  }
  const auto of_a_step = static_cast<double>((job_.steps + kMeasureEvery - 1) / kMeasureEvery) *
                         static_cast<double>(model_.segments.parameter_count());
  line["parameters"] = model_.segments.parameter_count();
  line["sent_bits"] = bits_.sent / of_a_step;  // per parameter, member and step
  line["sum_bits"] = bits_.sum / of_a_step;
  line["own_bytes"] = rule_.own_bytes();
  line["variance"] = distance_.errors / distance_.squares;
  line["slope"] = distance_.products / distance_.squares;
  line["curve"] = curve;
  line["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return line;
}

Status check_followed(const schema::JobSpec& job) {
  const std::pair<const char*, bool> not_followed[] = {
      {"initial", !job.initial.empty()},
      {"freeze", !job.freeze.empty()},
      {"class-weights", !job.class_weights.empty() || job.balanced_classes},
      {"target-accuracy", job.target_accuracy > 0},
      {"patience", job.patience > 0},
      {"keep", job.keep != schema::Keep::kLast}};
  for (const auto& [key, given] : not_followed)
    if (given)
      return Error{ErrorKind::kInvalidJob, std::string(key) + ": tgd_plain_train does not follow it; leave it out"};
  return {};
}

Status run(const std::vector<std::string>& words) {
  Result<Arguments> arguments = parse(words);
  if (!arguments.ok()) return arguments.error();
  schema::JobSpec& job = arguments->job;
  if (const Status followed = check_followed(job); !followed.ok()) return followed;
  auto data = engine::load_dataset(daemon::dataset_options(job, job.data_dir, 1));
  if (!data.ok()) return data.error();
  job.global_batch = schema::resolved_global_batch(job, arguments->members);
  const Result<std::uint64_t> steps = schema::resolved_steps(job, (*data)->train.count(), job.global_batch);
  if (!steps.ok()) return steps.error();
  job.steps = *steps;
  const std::unique_ptr<Rule> rule = make_rule(arguments->rule, {arguments->members, job.steps});
  if (!rule)
    return Error{ErrorKind::kUsage, "there is no rule \"" + arguments->rule + "\"; without arguments: all names"};
  auto model = engine::make_model(daemon::model_options(job, (*data)->train.stored, (*data)->classes.size()));
  if (!model.ok()) return model.error();
  if (model->statistics.size() > 0)
    return Error{ErrorKind::kInvalidJob,
                 model->name + " has batch normalizations, which tgd_plain_train does not follow"};
  auto recipe = engine::make_recipe(**data, model->input, daemon::recipe_options(job));
  if (!recipe.ok()) return recipe.error();
  Training training(*arguments, *rule, std::move(model).value(), std::move(data).value(), std::move(recipe).value());
  Result<nlohmann::ordered_json> result = training.run();
  if (!result.ok()) return result.error();
  nlohmann::ordered_json line{{"rule", arguments->rule},
                              {"model", to_word(job.model)},
                              {"data", to_word(job.data)},
                              {"members", arguments->members},
                              {"seed", job.seed},
                              {"steps", job.steps},
                              {"learning_rate", job.learning_rate}};
  line.update(*result);
  std::printf("%s\n", line.dump().c_str());
  return {};
}

}  // namespace
}  // namespace tg::plain

int main(int argc, char** argv) {
  if (argc == 1) {
    for (const tg::plain::NamedRule& rule : tg::plain::rules()) std::printf("%s\n", rule.name.c_str());
    return 0;
  }
  const tg::Status status = tg::plain::run({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "tgd_plain_train: %s\n", status.error().message.c_str());
  return 2;
}
