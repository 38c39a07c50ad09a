// What a run leaves on disk is its state, bit for bit, wherever that lives.
#include "daemon/store/artefacts.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/daemon/temporary_directory.h"
#include "tests/engine/safetensors_files.h"
#include "tests/simulation/simulator/awkward_home.h"
#include "tests/simulation/training/tiny_training.h"

namespace tg::daemon {
namespace {

using simulation::tiny_model;
using simulation::tiny_segments;

std::vector<float> drawn(std::uint64_t step) {
  std::vector<float> values(tiny_segments().padded_count());
  simulation::draw_gradient(1, 0, step, values);
  return values;
}

void expect_tensors(const std::string& path, const engine::SegmentTable& segments, const std::string& suffix,
                    const std::vector<float>& flat, std::size_t tensors) {
  const auto loaded = engine::read_safetensors(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->metadata.at("run"), "run-1");
  EXPECT_EQ(loaded->values.size(), tensors);
  for (const engine::Segment& segment : segments.segments()) {
    const auto begin = flat.begin() + static_cast<std::ptrdiff_t>(segment.offset);
    EXPECT_EQ(loaded->values.at(segment.name + suffix),
              std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(segment.element_count)))
        << path << " " << segment.name << suffix;
  }
}

TEST(Artefacts, HoldTheAverageTheParametersTheSlotsAndTheStatistics) {
  const kernels::Kernels& best = *kernels::available().front();
  const auto home = simulation::home_under_test(best);
  const auto tensors = home->make_kernels();
  Replica replica(*home, tiny_model(), 1, 7);
  std::vector<float> average(tiny_segments().padded_count());
  replica.copy_out(replica.average(), 0, average);
  const std::vector<float> parameters = drawn(1), slot = drawn(2);
  const kernels::StateFloats next = replica.next(0, parameters.size());
  tensors->copy_in(std::as_bytes(std::span(parameters)), next.parameters);
  tensors->copy_in(std::as_bytes(std::span(slot)), next.slot0);
  replica.commit(0.25F, simulation::draw_statistics(1, 0, 0));
  const std::vector<float> statistics(replica.statistics().begin(), replica.statistics().end());
  for (std::size_t i = 0; i < average.size(); ++i) average[i] += 0.25F * (parameters[i] - average[i]);

  const tests::TemporaryDirectory directory;
  const auto artefacts = artefacts_of(tiny_model(), arrays_of(replica), {{"run", "run-1"}});
  ASSERT_TRUE(artefacts.ok()) << artefacts.error().message;
  const auto marks = write_artefacts(directory.path(), *artefacts);
  ASSERT_TRUE(marks.ok()) << marks.error().message;
  const engine::SegmentTable& table = tiny_model().statistics;
  const std::size_t of_model = tiny_segments().size() + table.size(), of_state = of_model + 2 * tiny_segments().size();
  const std::string model_file = directory.path() + "/model.safetensors";
  const std::string raw_file = directory.path() + "/model-raw.safetensors";
  const std::string state_file = directory.path() + "/state.safetensors";
  expect_tensors(model_file, tiny_segments(), "", average, of_model);
  expect_tensors(raw_file, tiny_segments(), "", parameters, of_model);
  expect_tensors(state_file, tiny_segments(), "", parameters, of_state);
  expect_tensors(state_file, tiny_segments(), ".slot0", slot, of_state);
  expect_tensors(state_file, tiny_segments(), ".average", average, of_state);
  for (const std::string& file : {model_file, raw_file, state_file})
    expect_tensors(file, table, "", statistics, file == state_file ? of_state : of_model);
  for (const auto& [name, mark] : *marks) {
    EXPECT_EQ(engine::mark_of_file(directory.path() + "/" + name).value(), mark) << name;
    const auto loaded = engine::read_safetensors(directory.path() + "/" + name);
    EXPECT_EQ(loaded->metadata.at(kValuesHash), artefacts->at(name).values_sha256().value()) << name;
  }

  // The state file alone gives the two others, byte for byte; a copy gives the same.
  const auto state = open_state_file(directory.path() + "/state.safetensors", true);
  ASSERT_TRUE(state.ok()) << state.error().message;
  const auto copied = artefacts_of(tiny_model(), copy_of(replica, average.size()), {{"run", "run-1"}});
  const tests::TemporaryDirectory from_state, from_copy;
  EXPECT_EQ(write_artefacts(from_state.path(), state->artefacts).value(), *marks);
  EXPECT_EQ(write_artefacts(from_copy.path(), *copied).value(), *marks);

  std::string damaged = tests::read_text(directory.path() + "/state.safetensors");
  damaged[damaged.size() / 2] ^= 1;
  tests::write_text(directory.path() + "/damaged", damaged);
  EXPECT_FALSE(open_state_file(directory.path() + "/damaged", true).ok());
}

}  // namespace
}  // namespace tg::daemon
