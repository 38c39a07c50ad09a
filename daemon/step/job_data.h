// Translates a job for the engine: which data, which model, how a sample becomes its input, and how parameters follow
// the gradient. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/dataset.h"
#include "engine/optimizer.h"
#include "schema/options/job.h"

namespace tg::daemon {

// directory: job.data_dir, or the node's. threads: that read, decode and draw while it is loaded.
inline engine::DatasetOptions dataset_options(const schema::JobSpec& job, const std::string& directory,
                                              std::uint64_t threads) {
  engine::DatasetOptions options;
  options.kind = job.data;
  options.directory = directory;
  options.seed = job.data_seed;
  options.synthetic_train = static_cast<std::size_t>(job.data_train);
  options.synthetic_test = static_cast<std::size_t>(job.data_test);
  options.test_share = job.test_share;
  options.damaged = job.damaged;
  options.classes = static_cast<int>(job.data_classes);
  options.size = static_cast<int>(job.image_size);
  options.threads = static_cast<int>(threads);
  return options;
}

// The published model, except for what the job sets.
inline engine::ModelOptions model_options(const schema::JobSpec& job) {
  engine::ModelOptions options;
  options.kind = job.model;
  options.hidden.assign(job.hidden.begin(), job.hidden.end());
  options.label_smoothing = job.label_smoothing;
  options.dropout = job.dropout;
  options.freeze = job.freeze;
  return options;
}

// For data of this shape and as many classes.
inline engine::ModelOptions model_options(const schema::JobSpec& job, const engine::ImageShape& stored,
                                          std::size_t classes) {
  engine::ModelOptions options = model_options(job);
  options.input = engine::input_of(job.data, stored, job.model, static_cast<int>(job.image_size));
  options.classes = static_cast<int>(classes);
  return options;
}

// For this model, once it is known.
inline engine::ModelOptions model_options(const schema::JobSpec& job, const engine::Model& model) {
  engine::ModelOptions options = model_options(job);
  options.input = model.input;
  options.classes = model.classes;
  return options;
}

// Before the data are loaded: for what such data are, as far as it is known.
inline engine::ModelOptions expected_model(const schema::JobSpec& job) {
  if (job.compute == schema::Compute::kReplay) return model_options(job);
  if (const auto set = engine::known_shape(dataset_options(job, "", 1)))
    return model_options(job, set->stored, static_cast<std::size_t>(set->classes));
  engine::ModelOptions options = model_options(job);
  if (job.image_size == 0) return options;
  const int side = static_cast<int>(job.image_size);
  options.input = engine::ImageShape{3, side, side};
  return options;
}

inline engine::RecipeOptions recipe_options(const schema::JobSpec& job) {
  const auto unless_zero = [](std::uint64_t value) {
    return value == 0 ? std::nullopt : std::optional(static_cast<int>(value));
  };
  engine::RecipeOptions options;
  options.crop = job.crop;
  options.padding = unless_zero(job.crop_padding);
  options.resize = unless_zero(job.resize);
  options.resize_shape = job.resize_shape;
  options.least_area = job.least_area;
  options.flip = job.flip;
  options.colour = job.colour;
  options.colour_strength = job.colour_strength;
  options.colour_hue = job.colour_hue;
  options.normalization = job.normalization;
  options.mean = job.mean;
  options.deviation = job.deviation;
  return options;
}

inline engine::OptimizerOptions optimizer_of(const schema::JobSpec& job) {
  engine::OptimizerOptions options;
  options.kind = job.optimizer;
  options.schedule.kind = job.schedule;
  options.schedule.base_rate = job.learning_rate;
  options.schedule.factor = job.schedule_factor;
  options.schedule.every = job.schedule_every;
  options.schedule.power = job.schedule_power;
  options.schedule.steps = job.steps;
  options.schedule.floor = job.schedule_floor;
  options.schedule.warm_up = job.warm_up;
  options.momentum = job.momentum;
  options.beta1 = job.beta1;
  options.beta2 = job.beta2;
  options.epsilon = job.epsilon;
  return options;
}

}  // namespace tg::daemon
