#include "tests/bench/codec/codec.h"

#include <algorithm>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/aligned_array.h"
#include "kernels/kernels.h"
#include "tests/bench/codec/receiving.h"
#include "tests/bench/codec/subject.h"
#include "tests/bench/made_gradient.h"
#include "tests/bench/reading.h"
#include "tests/bench/row.h"
#include "tests/bench/timing.h"

namespace tg::kernels {
namespace {

double target_of(const std::string& name) {
  return name == "avx512 encode_codes_rans" ? 1.6 : name == "avx512 decode_codes_rans" ? 1.2 : 0;
}

void print_sizes(const Subject& s) {
  const auto row = [&](const char* name, std::size_t bytes, double entropy, double target) {
    const double bits = static_cast<double>(bytes) * 8;
    // The budgets are those of long chunks: what a payload has beside its codes is little there.
    print({name, bits / static_cast<double>(s.elements()), "bit/element", bits / entropy,
           s.elements() >= kChunk ? target : 0, true});
  };
  row("codes, size over entropy", s.codes_bytes, s.codes_bits, s.zeros <= 0.851 ? 1.01 : 1.06);
  row("sums of 8, size over entropy", s.sums_bytes, s.sums_bits, 1.03);
}

// The roof is read from `memory`, which no cache holds.
bool bench_subject(Subject& s, std::span<const float> memory, int rounds) {
  s.draw(*available().front());
  std::vector<Timed> list;
  for (const auto& [name, read] : readers()) {
    list.push_back({name, [memory, read = read] { float_sink = read(memory.data(), memory.size()); }, memory.size()});
  }
  const std::size_t reader_count = list.size();
  for (const Kernels* const k : available()) {
    if (k->name == "scalar") continue;  // slow, and checked by the tests
    if (!s.comes_back(*k)) return false;
    const std::string prefix = std::string(k->name) + " ";
    list.push_back({prefix + "encode_codes_rans", [&s, k] { s.encode_codes(*k); }});
    list.push_back({prefix + "decode_codes_rans", [&s, k] { word_sink = s.decode_codes(*k); }});
    list.push_back({prefix + "encode_sums_rans, 8 members", [&s, k] { s.encode_sums(*k); }});
    list.push_back({prefix + "decode_sums_rans, 8 members", [&s, k] { word_sink = s.decode_sums(*k); }});
  }
  time_all(list, s.elements(), rounds);
  double roof = 0;
  for (std::size_t i = 0; i < reader_count; ++i) roof = std::max(roof, list[i].median());
  std::printf("\n%s: %zu elements, segments: %zu, chunks of %zu, %.1f %% zeros; read-and-sum %.2f G/s\n",
              s.name.c_str(), s.elements(), s.segments.size(), kChunk, s.zeros * 100, roof);
  print_sizes(s);
  for (std::size_t i = reader_count; i < list.size(); ++i) {
    const double rate = list[i].median();
    print({list[i].name + " over read", rate, "G/s", rate / roof, target_of(list[i].name)});
  }
  return true;
}

}  // namespace

bool bench_made(std::size_t elements, int rounds) {
  std::vector<Sparseness> list(kConcentrated.begin(), kConcentrated.end());
  list.insert(list.end(), kLargeScalers.begin(), kLargeScalers.end());
  for (const Sparseness& sparseness : list) {
    const MadeGradient gradient(elements, sparseness);
    Subject subject;
    subject.name = sparseness.name;
    subject.gradients = {gradient.values.span()};
    subject.segments = {{0, elements, {gradient.scale.clip}, gradient.scale.scaler}};
    if (!bench_subject(subject, gradient.values.span(), rounds)) return false;
    subject = {};  // its memory, before the update takes its own
    if (sparseness.factor == 1) bench_receiving(gradient, rounds);
  }
  return true;
}

bool bench_recorded(std::vector<RecordedSubject>& recorded, std::size_t elements, int rounds) {
  if (recorded.empty()) return true;
  const AlignedArray<float> memory(elements);
  return std::ranges::all_of(recorded, [&](auto& one) { return bench_subject(one.subject, memory.span(), rounds); });
}

}  // namespace tg::kernels
