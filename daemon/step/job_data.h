// What a job's words mean to the engine's data: which set, and how a sample becomes input. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/dataset.h"
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

inline engine::RecipeOptions recipe_options(const schema::JobSpec& job) {
  const auto unless_zero = [](std::uint64_t value) {
    return value == 0 ? std::nullopt : std::optional(static_cast<int>(value));
  };
  engine::RecipeOptions options;
  options.crop = job.crop;
  options.padding = unless_zero(job.crop_padding);
  options.resize = unless_zero(job.resize);
  options.flip = job.flip;
  options.colour = job.colour;
  options.colour_strength = job.colour_strength;
  options.normalization = job.normalization;
  options.mean = job.mean;
  options.deviation = job.deviation;
  return options;
}

}  // namespace tg::daemon
