// State files of a small model, for the tests that find, read and show them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/store/artefacts.h"
#include "daemon/store/checkpoints.h"
#include "daemon/store/state_facts.h"
#include "engine/model.h"

namespace tg::tests {

inline const engine::Model& small_model() {
  static const engine::Model model = [] {
    engine::Model made;
    made.name = "small";
    made.segments = engine::SegmentTable({{.name = "w", .shape = {3}, .element_count = 3}});
    return made;
  }();
  return model;
}

inline daemon::StateFacts facts_at(std::uint64_t step, std::uint32_t lineage = 1, std::uint64_t key = 77,
                                   const std::string& run = "run-1") {
  daemon::StateFacts facts;
  facts.run = run;
  facts.key = key;
  facts.id = {lineage, 1, step, 0xab00 + step};
  facts.spec = "model = lenet\nsteps = 300\n";
  facts.counters.loss = 1.0 / static_cast<double>(step + 1);
  facts.counters.learning_rate = 0.5;
  return facts;
}

// All files of a state with these facts; w is {1, 2, step}.
inline daemon::Artefacts artefacts_at(const daemon::StateFacts& facts) {
  daemon::StateArrays arrays;
  arrays.parameters = [step = static_cast<float>(facts.id.step)](std::size_t first, std::span<float> to) -> Status {
    const std::vector<float> values{1.0F, 2.0F, step};
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first), to.size(), to.begin());
    return {};
  };
  arrays.statistics = arrays.parameters;
  return daemon::artefacts_of(small_model(), arrays, daemon::to_metadata(facts)).value();
}
inline engine::TensorImage state_at(const daemon::StateFacts& facts) {
  return artefacts_at(facts).at(daemon::kStateFile);
}

// As the previous version wrote it.
inline engine::TensorImage old_state_at(std::uint64_t step, const std::string& run = "run-1") {
  const std::vector<float> values{1.0F, 2.0F, static_cast<float>(step)};
  const auto image = [&](const std::map<std::string, std::string>& metadata) {
    const auto read = [values](std::size_t first, std::span<float> to) -> Status {
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first), to.size(), to.begin());
      return {};
    };
    return engine::TensorImage::of({{"w", {3}, read}}, metadata).value();
  };
  const std::string hash = image({}).values_sha256().value();
  return image({{"run", run},
                {"view", "1"},
                {"step", std::to_string(step)},
                {"digest", "00000000000000ab"},
                {"values-sha256", hash},
                {"model-values-sha256", hash},
                {"model-raw-values-sha256", hash}});
}

}  // namespace tg::tests
