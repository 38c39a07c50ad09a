// tgd_lab_record --members N --out PATTERN [KEY=VALUE]...: trains a model in this process, with float gradients, for
// `steps` of the job, then writes the gradients that each of N members would ternarize next, one file per member, for
// replay-gradients = PATTERN ("{rank}" in it is the member's; engine/replay/recorded.h has the format).
//
//   tgd_lab_record --members 4 --out /tmp/lenet-{rank}.f32 model=lenet steps=300 weight-decay=5e-4
#include <cstdio>
#include <fstream>

#include "daemon/step/job_data.h"
#include "engine/dataset.h"
#include "engine/engine.h"
#include "engine/optimizer.h"
#include "engine/replay/recorded.h"
#include "kernels/kernels.h"
#include "schema/options/job.h"
#include "tests/lab/whole_number.h"

namespace tg::lab {
namespace {

struct Arguments {
  schema::JobSpec job;
  std::size_t members = 0;
  std::string out;
};

Result<Arguments> parse(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--members" && i + 1 < words.size()) {
      const Result<std::size_t> members = whole_number("--members", words[++i]);
      if (!members.ok()) return members.error();
      arguments.members = *members;
    } else if (words[i] == "--out" && i + 1 < words.size()) {
      arguments.out = words[++i];
    } else if (const Status set = schema::set_job_key(arguments.job, words[i]); !set.ok()) {
      return set.error();
    }
  }
  if (arguments.members == 0 || arguments.out.empty())
    return Error{ErrorKind::kUsage, "--members N and --out PATTERN are needed"};
  if (arguments.members > 1 && engine::recorded_path(arguments.out, 0) == arguments.out)
    return Error{ErrorKind::kUsage, "--out " + arguments.out + " names one file for all members; put {rank} into it"};
  if (const Status valid = schema::validate_job(arguments.job, arguments.members); !valid.ok()) return valid.error();
  return arguments;
}

struct Training {
  engine::Model model;
  std::shared_ptr<const engine::Dataset> data;
  engine::Recipe recipe;
  AlignedArray<float> parameters;
};

// Forward and backward of stream positions [first, first + count) into gradients.
Status differentiate(const Training& training, const schema::JobSpec& job, std::uint64_t first, int count, float factor,
                     engine::Engine& engine, AlignedArray<float>& gradients) {
  engine::SampleStream stream(job.seed, training.data->train.count());
  engine::Batch batch;
  batch.count = count;
  engine::fill_training_batch(*training.data, training.recipe, stream, job.seed, first, batch);
  engine.forward(training.parameters.data(), batch);
  engine.backward(factor, gradients.data(), [](std::size_t, std::size_t) {});
  if (job.weight_decay == 0 || !schema::decays_inside(job)) return {};
  for (const engine::Segment& segment : training.model.segments.segments())
    if (segment.decays)
      kernels::available().front()->add_scaled(
          training.parameters.span().subspan(segment.offset, segment.padded_count()),
          static_cast<float>(job.weight_decay), gradients.span().subspan(segment.offset, segment.padded_count()));
  return {};
}

Result<std::unique_ptr<engine::Engine>> make_engine(const Training& training, const schema::JobSpec& job, int batch) {
  return engine::make_cpu_engine(training.model, {job.threads ? static_cast<int>(job.threads) : 1, batch, 1, job.seed});
}

Status train(Training& training, const schema::JobSpec& job) {
  const auto batch = static_cast<int>(job.global_batch);
  auto engine = make_engine(training, job, batch);
  if (!engine.ok()) return engine.error();
  const std::size_t count = training.model.segments.padded_count();
  AlignedArray<float> gradients(count), velocity(count), next_parameters(count), next_velocity(count);
  engine::OptimizerOptions optimizer;
  optimizer.schedule.base_rate = job.learning_rate;
  optimizer.momentum = job.momentum;
  for (std::uint64_t step = 0; step < job.steps; ++step) {
    const Status status = differentiate(training, job, step * job.global_batch, batch, 1.0F / static_cast<float>(batch),
                                        **engine, gradients);
    if (!status.ok()) return status;
    kernels::Update update = engine::update_for_step(optimizer, step);
    update.scale = 1;
    kernels::available().front()->apply_floats(update, gradients.span(),
                                               {training.parameters.span(), velocity.span(), {}},
                                               {next_parameters.span(), next_velocity.span(), {}});
    std::swap(training.parameters, next_parameters);
    std::swap(velocity, next_velocity);
  }
  return {};
}

Status write(const std::string& path, const engine::SegmentTable& segments, const AlignedArray<float>& gradients) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  for (const engine::Segment& segment : segments.segments())
    file.write(reinterpret_cast<const char*>(gradients.data() + segment.offset),
               static_cast<std::streamsize>(segment.element_count * sizeof(float)));
  file.close();
  if (!file) return Error{ErrorKind::kIo, path + ": cannot be written"};
  std::printf("%s\n", path.c_str());
  return {};
}

Status run(const std::vector<std::string>& words) {
  Result<Arguments> arguments = parse(words);
  if (!arguments.ok()) return arguments.error();
  const schema::JobSpec& job = arguments->job;
  engine::Model model = engine::make_model(job.model);
  auto data = engine::load_dataset(daemon::dataset_options(job, job.data_dir, 1));
  if (!data.ok()) return data.error();
  auto recipe = engine::make_recipe(**data, model.input, daemon::recipe_options(job));
  if (!recipe.ok()) return recipe.error();
  Training training{std::move(model), std::move(data).value(), std::move(recipe).value(), {}};
  if (const Status fits = engine::check_labels(*training.data, training.model.classes); !fits.ok()) return fits;
  training.parameters = AlignedArray<float>(training.model.segments.padded_count());
  engine::initialize(training.model.segments, job.seed, training.parameters.data());
  if (const Status trained = train(training, job); !trained.ok()) return trained;
  const float factor = static_cast<float>(arguments->members) / static_cast<float>(job.global_batch);
  const std::vector<engine::Share> shares =
      engine::split(job.global_batch, std::vector<std::uint16_t>(arguments->members, 1));
  for (std::size_t rank = 0; rank < arguments->members; ++rank) {
    const engine::Share share = shares[rank];
    auto engine = make_engine(training, job, share.count);
    if (!engine.ok()) return engine.error();
    AlignedArray<float> gradients(training.model.segments.padded_count());
    const Status status = differentiate(training, job, job.steps * job.global_batch + share.first, share.count, factor,
                                        **engine, gradients);
    if (!status.ok()) return status;
    const Status written = write(engine::recorded_path(arguments->out, rank), training.model.segments, gradients);
    if (!written.ok()) return written;
  }
  return {};
}

}  // namespace
}  // namespace tg::lab

int main(int argc, char** argv) {
  const tg::Status status = tg::lab::run({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "tgd_lab_record: %s\n", status.error().message.c_str());
  return status.error().kind == tg::ErrorKind::kUsage ? 2 : 1;
}
