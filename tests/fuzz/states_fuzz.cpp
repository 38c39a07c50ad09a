// Any bytes as a file that a run begins with or resumes from: a state that was saved, the parameters of `initial`,
// recorded gradients. An error that names the file, or values that can be read to their end.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/store/artefacts.h"
#include "engine/initial_file.h"
#include "engine/replay/recorded.h"
#include "tests/fuzz/memory_file.h"

namespace {

using namespace tg::engine;

// Two features, a hidden layer of three, two classes: 17 parameters.
const Model& small_model() {
  static const Model model = make_model({.kind = tg::ModelKind::kMlp,
                                         .input = ImageShape{.channels = 2, .height = 1, .width = 1},
                                         .classes = 2,
                                         .hidden = {3}})
                                 .value();
  return model;
}

bool finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

void check_initial(const std::string& path) {
  const auto initial = InitialFile::open(path, small_model(), 1);
  if (!initial) {
    TG_CHECK(initial.error().message.find(path) != std::string::npos, initial.error().message);
    return;
  }
  for (std::size_t i = 0; i < small_model().segments.size(); ++i) {
    std::vector<float> values(small_model().segments[i].padded_count());
    initial->fill_segment(i, 0, values);
    TG_CHECK(finite(values), i);
  }
}

void check_state(const std::string& path) {
  for (const bool check : {false, true}) {
    const auto state = tg::daemon::open_state_file(path);
    if (!state || (check && !tg::daemon::check_values(*state))) continue;
    for (const auto& [name, image] : state->artefacts) {
      std::uint64_t bytes = 0;
      const tg::Status read = image.for_each_slice(0, [&](std::span<const std::byte> slice) -> tg::Status {
        bytes += slice.size();
        return {};
      });
      TG_CHECK(!read || bytes == image.bytes(), name, bytes, image.bytes());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const tg::fuzz::MemoryFile file(data, size);
  check_initial(file.path());
  check_state(file.path());
  if (const auto values = read_recorded(file.path(), small_model())) {
    TG_CHECK(values->size() == small_model().segments.parameter_count() && finite(*values), values->size());
  }
  return 0;
}
