// What a run leaves on disk is its state, bit for bit, wherever that lives.
#include "daemon/store/artefacts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <vector>

#include "daemon/store/saved_arrays.h"
#include "daemon/store/state_facts.h"
#include "tests/daemon/temporary_directory.h"
#include "tests/engine/safetensors_files.h"
#include "tests/simulation/simulator/awkward_memory.h"
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

TEST(Artefacts, ContainTheAverageTheParametersTheSlotsAndTheStatistics) {
  const kernels::Kernels& best = *kernels::available().front();
  const auto space = simulation::space_under_test(best);
  const auto tensors = space->make_kernels();
  Replica replica(*space, tiny_model(), 1, 7);
  std::vector<float> average(tiny_segments().padded_count());
  replica.copy_out(replica.average(), 0, average);
  const std::vector<float> parameters = drawn(1), slot = drawn(2);
  const kernels::StateFloats next = replica.next(0, parameters.size());
  tensors->copy_in(std::as_bytes(std::span(parameters)), next.parameters);
  tensors->copy_in(std::as_bytes(std::span(slot)), next.slot0);
  replica.commit(simulation::draw_statistics(1, 0, 0));
  replica.confirm(0.25F);
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
  const auto state = open_state_file(directory.path() + "/state.safetensors");
  ASSERT_TRUE(state.ok()) << state.error().message;
  EXPECT_TRUE(check_values(*state).ok());
  const auto copied = artefacts_of(tiny_model(), copy_of(replica, average.size()), {{"run", "run-1"}});
  const tests::TemporaryDirectory from_state, from_copy;
  EXPECT_EQ(write_artefacts(from_state.path(), state->artefacts).value(), *marks);
  EXPECT_EQ(write_artefacts(from_copy.path(), *copied).value(), *marks);

  std::string damaged = tests::read_text(directory.path() + "/state.safetensors");
  damaged[damaged.size() / 2] ^= 1;
  tests::write_text(directory.path() + "/damaged", damaged);
  const auto other = open_state_file(directory.path() + "/damaged");
  EXPECT_FALSE(other.ok() && check_values(*other).ok());
}

// model.safetensors is the best one, of which the state file has what it takes; the others are of the last state.
TEST(Artefacts, AreTheBestModelsIfTheRunKeepsIt) {
  const auto space = simulation::space_under_test(*kernels::available().front());
  Replica replica(*space, tiny_model(), 1, 7);
  replica.make_room_for_best();
  const std::size_t count = tiny_segments().padded_count();
  std::vector<float> best(count), parameters = drawn(1);
  replica.copy_out(replica.average(), 0, best);
  const std::vector<float> statistics(replica.statistics().begin(), replica.statistics().end());
  replica.keep_best();
  space->make_kernels()->copy_in(std::as_bytes(std::span(parameters)), replica.next(0, count).parameters);
  replica.commit(simulation::draw_statistics(1, 0, 0));
  replica.confirm(0.25F);
  const tests::TemporaryDirectory directory, from_state;
  const std::map<std::string, std::string> metadata{{"run", "run-1"}, {"step", "9"}, {kBestStep, "4"}};
  const auto artefacts = artefacts_of(tiny_model(), arrays_of(replica), metadata);
  ASSERT_TRUE(artefacts.ok()) << artefacts.error().message;
  const auto marks = write_artefacts(directory.path(), *artefacts);
  const engine::SegmentTable& table = tiny_model().statistics;
  const std::size_t of_model = tiny_segments().size() + table.size();
  const std::size_t of_state = 2 * of_model + 2 * tiny_segments().size();
  const std::string model_file = directory.path() + "/model.safetensors";
  const std::string raw_file = directory.path() + "/model-raw.safetensors";
  const std::string state_file = directory.path() + "/state.safetensors";
  expect_tensors(model_file, tiny_segments(), "", best, of_model);
  expect_tensors(model_file, table, "", statistics, of_model);
  expect_tensors(raw_file, tiny_segments(), "", parameters, of_model);
  expect_tensors(state_file, tiny_segments(), "", parameters, of_state);
  expect_tensors(state_file, tiny_segments(), ".best", best, of_state);
  expect_tensors(state_file, table, ".best", statistics, of_state);
  EXPECT_EQ(engine::read_safetensors(model_file)->metadata.at(kBestStep), "4");
  EXPECT_FALSE(engine::read_safetensors(raw_file)->metadata.contains(kBestStep));

  const auto state = open_state_file(state_file);
  ASSERT_TRUE(state.ok()) << state.error().message;
  EXPECT_EQ(write_artefacts(from_state.path(), state->artefacts).value(), *marks);
  const auto read = arrays_in(*state, tiny_model(), 1, true, true);
  ASSERT_TRUE(read.ok()) << read.error().message;
  Replica another(*space, tiny_model(), 1, 8);
  another.make_room_for_best();
  ASSERT_TRUE(another.restore(*read, Round(9)).ok());
  EXPECT_TRUE(std::ranges::equal(another.best().statistics, statistics));
  EXPECT_FALSE(arrays_in(*state, tiny_model(), 1, true).ok()) << "of a run that keeps none";
}

// --- and read back, to resume from ---

constexpr std::size_t kPart = 700;  // elements; more than one segment and its padding now and then

std::vector<float> read_all(const engine::ReadFloats& read, std::size_t count) {
  std::vector<float> values(count, -1);
  for (std::size_t at = 0; at < count; at += kPart) {
    const Status got = read(at, std::span(values).subspan(at, std::min(kPart, count - at)));
    EXPECT_TRUE(got.ok()) << (got.ok() ? "" : got.error().message);
  }
  return values;
}

class SavedArraysTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<float> parameters = drawn(1), slot = drawn(2);
    const kernels::StateFloats next = replica.next(0, parameters.size());
    space->make_kernels()->copy_in(std::as_bytes(std::span(parameters)), next.parameters);
    space->make_kernels()->copy_in(std::as_bytes(std::span(slot)), next.slot0);
    replica.commit(simulation::draw_statistics(1, 0, 0));
    replica.confirm(0.25F);
  }
  // The state file of these arrays.
  StateFile saved(const StateArrays& arrays) {
    StateFacts facts;
    facts.run = "run-1";
    facts.key = 7;
    facts.id = {1, 1, 1, 2};
    facts.spec = "a = b\n";
    const auto artefacts = artefacts_of(tiny_model(), arrays, to_metadata(facts));
    EXPECT_TRUE(engine::write_image(path, artefacts->at(kStateFile)).ok());
    Result<StateFile> file = open_state_file(path);
    EXPECT_TRUE(file.ok()) << file.error().message;
    return *std::move(file);
  }
  // Returns the error of a state file with those tensors.
  std::string refusal(const std::function<void(std::vector<engine::TensorSource>&)>& change) {
    StateFile file = saved(arrays_of(replica));
    change(file.tensors);
    const Result<StateArrays> arrays = arrays_in(file, tiny_model(), 1, true);
    return arrays ? "read" : arrays.error().message;
  }

  const tests::TemporaryDirectory directory;
  const std::string path = directory.path() + "/state.safetensors";
  const std::unique_ptr<kernels::MemorySpace> space = simulation::space_under_test(*kernels::available().front());
  Replica replica{*space, tiny_model(), 1, 7};
};

TEST_F(SavedArraysTest, EqualTheSavedValuesWithZerosBetween) {
  const StateArrays written = arrays_of(replica);
  const Result<StateArrays> read = arrays_in(saved(written), tiny_model(), 1, true);
  ASSERT_TRUE(read.ok()) << read.error().message;
  const std::size_t count = tiny_segments().padded_count();
  const auto flat = [&](kernels::ConstFloats array) {
    std::vector<float> values(count);
    replica.copy_out(array, 0, values);
    return values;
  };
  EXPECT_EQ(read_all(read->parameters, count), flat(replica.parameters()));
  ASSERT_EQ(read->slots.size(), 1u);
  EXPECT_EQ(read_all(read->slots[0], count), flat(replica.slot(0)));
  EXPECT_EQ(read_all(read->average, count), flat(replica.average()));
  EXPECT_NE(read_all(read->average, count), read_all(read->parameters, count));
  const std::vector<float> statistics(replica.statistics().begin(), replica.statistics().end());
  EXPECT_EQ(read_all(read->statistics, statistics.size()), statistics);
  // Written once more it is the same file.
  const engine::FileMark first = engine::mark_of_file(path).value();
  saved(*read);
  EXPECT_EQ(engine::mark_of_file(path).value(), first);
}

TEST_F(SavedArraysTest, EachTensorIsTheModelsOrNamed) {
  const std::string begins = path + " is no state of this job: tensor ";
  const std::string first = tiny_segments()[0].name, statistic = tiny_model().statistics[0].name;
  EXPECT_EQ(refusal([](auto&) {}), "read");
  const auto named = [&](const std::string& name) {
    return [name](std::vector<engine::TensorSource>& tensors) {
      return std::ranges::find(tensors, name, &engine::TensorSource::name);
    };
  };
  for (const std::string& name : {first, first + ".slot0", first + ".average", statistic}) {
    EXPECT_EQ(refusal([&](auto& tensors) { tensors.erase(named(name)(tensors)); }), begins + name + " is missing");
    EXPECT_EQ(refusal([&](auto& tensors) { named(name)(tensors)->name = "another"; }), begins + name + " is missing");
    const std::string shape = refusal([&](auto& tensors) { named(name)(tensors)->shape = {1, 2}; });
    EXPECT_TRUE(shape.starts_with(begins + name + " has the shape [1x2], the model's has [")) << shape;
  }
  EXPECT_EQ(refusal([&](auto& tensors) {
              tensors.push_back(tensors.front());
              tensors.back().name = "another";
            }),
            begins + "another is not of the model");
  // Another optimizer, or another moving average.
  EXPECT_EQ(arrays_in(saved(arrays_of(replica)), tiny_model(), 2, true).error().message,
            begins + first + ".slot1 is missing");
  EXPECT_EQ(arrays_in(saved(arrays_of(replica)), tiny_model(), 0, true).error().message.substr(0, begins.size()),
            begins);
  EXPECT_FALSE(arrays_in(saved(arrays_of(replica)), tiny_model(), 1, false).ok());
}

TEST_F(SavedArraysTest, AFileThatShrinksMeanwhileIsAnError) {
  const Result<StateArrays> read = arrays_in(saved(arrays_of(replica)), tiny_model(), 1, true);
  ASSERT_TRUE(read.ok());
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 8);
  std::vector<float> values(tiny_model().statistics.padded_count());
  const Status got = read->average(0, values);
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.error().message.find(path), std::string::npos) << got.error().message;
}

}  // namespace
}  // namespace tg::daemon
