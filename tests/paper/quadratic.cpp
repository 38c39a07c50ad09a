// tgd_paper_quadratic MEMBERS SEED DECADES NOISE
//
// Stochastic gradient descent where Wen et al. 2017, Theorem 1, holds, by rules of tests/plain:
//
//   C(w) = sum over i of curvature_i (w_i - w*_i)^2 / 2
//   w(t+1) = w(t) - a / (t + b) * what the rule makes of the members' gradients
//   a member's gradient: curvature_i (w_i - w*_i) + noise_i, independent of all others
//
// One minimum, to which the gradient points (11); the rates fulfil (12); the noise has a second moment, so (16) holds.
// a times the least curvature is 4: where it is not above 1/2 no rule comes to 1/t (Chung 1954, On a stochastic
// approximation method). NOISE: normal; skewed (exponential, less its mean); none. All rules see the same noise.
//
// Prints a CSV: the squared error |w - w*|^2, (13), while the rate falls by so many powers of ten. The rule "expected"
// is the expectation of float32's, which is a recursion whatever the noise's distribution.
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/aligned_array.h"
#include "kernels/kernels.h"
#include "tests/lab/whole_number.h"
#include "tests/plain/rules.h"

namespace tg::plain {
namespace {

constexpr double kA = 4, kB = 100;
constexpr int kLinesOfADecade = 10;

// Their parts of the error are about equal in the end: a^2 deviation^2 elements / (2 a curvature - 1) / members / t.
struct Part {
  std::size_t elements;
  double curvature, deviation;
};
constexpr std::array<Part, 3> kParts = {{{512, 1, 1}, {256, 2, 2}, {128, 4, 4}}};

// Returns w_i - w*_i at the start: evenly between -1 and 1.
double first_error(const Part& part, std::size_t i) {
  return (2 * static_cast<double>(i) + 1) / static_cast<double>(part.elements) - 1;
}

engine::SegmentTable table() {
  std::vector<engine::Segment> segments;
  for (const Part& part : kParts) {
    engine::Segment one;
    one.name = "part" + std::to_string(segments.size());
    one.element_count = part.elements;
    one.shape = {static_cast<std::int64_t>(part.elements)};
    segments.push_back(one);
  }
  return engine::SegmentTable(segments);
}

enum class Noise { kNone, kNormal, kSkewed };

// Independent numbers of mean 0 and deviation 1.
class Draws {
 public:
  Draws(Noise noise, std::uint64_t seed) : noise_(noise), random_(seed) {}
  double next() {
    if (noise_ == Noise::kNone) return 0;
    if (spare_) return *std::exchange(spare_, std::nullopt);
    const double logarithm = std::log(1 - random_.unit());
    if (noise_ == Noise::kSkewed) return -logarithm - 1;
    const double length = std::sqrt(-2 * logarithm), angle = 2 * std::numbers::pi * random_.unit();
    spare_ = length * std::sin(angle);  // Box and Muller 1958
    return length * std::cos(angle);
  }

 private:
  const Noise noise_;
  simulation::Random random_;
  std::optional<double> spare_;
};

// One rule's run.
struct Row {
  std::string name, rule;
  std::unique_ptr<Rule> made = {};
  std::vector<double> error = {};  // w - w*, flat

  double squared_error() const {
    double sum = 0;
    for (const double one : error) sum += one * one;
    return sum;
  }
};

class Descent {
 public:
  Descent(std::size_t members, std::uint64_t seed, std::size_t decades, Noise noise)
      : members_(members),
        seed_(seed),
        steps_(static_cast<std::uint64_t>(kB * (std::pow(10.0, decades) - 1))),
        noise_(noise),
        draws_(noise, seed) {
    for (std::size_t rank = 0; rank < members; ++rank) {
      noises_.emplace_back(segments_.padded_count());
      gradients_.emplace_back(segments_.padded_count());
    }
    std::vector<double> first(segments_.padded_count());
    for (std::size_t s = 0; s < kParts.size(); ++s)
      for (std::size_t i = 0; i < kParts[s].elements; ++i) {
        first[segments_[s].offset + i] = first_error(kParts[s], i);
        expected_[s] += first_error(kParts[s], i) * first_error(kParts[s], i);
      }
    for (Row& row : rows_) {
      row.made = make_rule(row.rule, {members, steps_});
      row.error = first;
    }
  }

  void run(const char* noise) {
    std::puts("noise,rule,members,seed,t+b,squared error");
    const auto line = [&](const std::string& rule, double t, double error) {
      std::printf("%s,%s,%zu,%llu,%.0f,%.9g\n", noise, rule.c_str(), members_, static_cast<unsigned long long>(seed_),
                  t + kB, error);
    };
    int lines = 0;
    for (std::uint64_t t = 0; t <= steps_; ++t) {
      if (static_cast<double>(t) >= std::round(kB * std::pow(10.0, 1.0 * lines / kLinesOfADecade)) - kB) {
        for (const Row& row : rows_) line(row.name, static_cast<double>(t), row.squared_error());
        line("expected", static_cast<double>(t), expected_[0] + expected_[1] + expected_[2]);
        ++lines;
      }
      step(t);
    }
  }

 private:
  void step(std::uint64_t t) {
    const double rate = kA / (static_cast<double>(t) + kB);
    for (AlignedArray<float>& noise : noises_)
      for (std::size_t s = 0; s < kParts.size(); ++s)
        for (std::size_t i = 0; i < kParts[s].elements; ++i)
          noise[segments_[s].offset + i] = static_cast<float>(kParts[s].deviation * draws_.next());
    for (Row& row : rows_) step(row, t, rate);
    for (std::size_t s = 0; s < kParts.size(); ++s) {
      const double kept = 1 - rate * kParts[s].curvature,
                   moved = noise_ == Noise::kNone ? 0 : rate * kParts[s].deviation;
      expected_[s] = kept * kept * expected_[s] +
                     moved * moved * static_cast<double>(kParts[s].elements) / static_cast<double>(members_);
    }
  }

  void step(Row& row, std::uint64_t t, double rate) {
    std::vector<std::span<const float>> spans;
    for (std::size_t rank = 0; rank < members_; ++rank) {
      for (std::size_t s = 0; s < kParts.size(); ++s)
        for (std::size_t i = segments_[s].offset; i < segments_[s].offset + kParts[s].elements; ++i)
          gradients_[rank][i] = static_cast<float>(kParts[s].curvature * row.error[i]) + noises_[rank][i];
      spans.emplace_back(gradients_[rank].span());
    }
    row.made->mean({kernels_, seed_, static_cast<std::uint32_t>(t), false}, segments_, spans, mean_.span());
    for (std::size_t s = 0; s < kParts.size(); ++s)
      for (std::size_t i = segments_[s].offset; i < segments_[s].offset + kParts[s].elements; ++i)
        row.error[i] -= rate * static_cast<double>(mean_[i]);
  }

  const engine::SegmentTable segments_ = table();
  const kernels::Kernels& kernels_ = *kernels::available().front();
  const std::size_t members_;
  const std::uint64_t seed_, steps_;
  const Noise noise_;
  Draws draws_;
  std::array<Row, 3> rows_ = {
      {{"float32", "float32"}, {"ternary", "terngrad-noclip"}, {"ternary clipped", "terngrad"}}};
  std::array<double, 3> expected_ = {};                  // by part
  std::vector<AlignedArray<float>> noises_, gradients_;  // by rank
  AlignedArray<float> mean_ = AlignedArray<float>(segments_.padded_count());
};

bool run(const std::vector<std::string>& words) {
  if (words.size() != 4) return false;
  const Result<std::size_t> members = lab::whole_number("MEMBERS", words[0]),
                            seed = lab::whole_number("SEED", words[1]),
                            decades = lab::whole_number("DECADES", words[2]);
  if (!members || !seed || !decades || *members == 0 || *decades == 0) return false;
  for (const auto& [noise, word] :
       {std::pair{Noise::kNone, "none"}, {Noise::kNormal, "normal"}, {Noise::kSkewed, "skewed"}})
    if (words[3] == word) return Descent(*members, *seed, *decades, noise).run(word), true;
  return false;
}

}  // namespace
}  // namespace tg::plain

int main(int argc, char** argv) {
  if (tg::plain::run({argv + 1, argv + argc})) return 0;
  std::fputs("usage: tgd_paper_quadratic MEMBERS SEED DECADES normal|skewed|none\n", stderr);
  return 2;
}
