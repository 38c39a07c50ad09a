#include "tests/plain/rules.h"

#include "tests/plain/differences.h"
#include "tests/plain/floats.h"
#include "tests/plain/levels.h"
#include "tests/plain/signs.h"
#include "tests/plain/sparse.h"
#include "tests/plain/ternary.h"

namespace tg::plain {
namespace {

constexpr std::size_t kQsgdBucket = 512;  // as its experiments with 4 bits
constexpr double kDropping = 0.01;        // the paper drops 99 %
constexpr double kAtomo = 1.0 / 16;
constexpr int kDorefaBits = 6;  // as its AlexNet

template <class One, class... Values>
NamedRule named(const char* name, Values... values) {
  return {name, [=](const RuleOptions&) { return std::make_unique<One>(values...); }};
}

}  // namespace

const std::vector<NamedRule>& rules() {
  static const std::vector<NamedRule> all = {
      named<Floats>("float32", false),
      named<Floats>("float16", true),
      named<TernGrad>("terngrad", TernaryOptions{}),
      named<TernGrad>("terngrad-noclip", TernaryOptions{.clip_sigma = 0}),
      named<TernGrad>("terngrad-global", TernaryOptions{.global = true}),
      named<TernGrad>("terngrad-global-noclip", TernaryOptions{.clip_sigma = 0, .global = true}),
      named<TernGrad>("terngrad-8192", TernaryOptions{.bucket = 8192}),
      named<TernGrad>("terngrad-8192-noclip", TernaryOptions{.clip_sigma = 0, .bucket = 8192}),
      named<TernGrad>("terngrad-512", TernaryOptions{.bucket = 512}),
      named<TernGrad>("terngrad-512-noclip", TernaryOptions{.clip_sigma = 0, .bucket = 512}),
      named<Qsgd>("qsgd-4", 4, kQsgdBucket),
      named<Qsgd>("qsgd-16", 16, kQsgdBucket),
      named<Fixed16>("fixed16"),
      named<Dorefa>("dorefa-6", kDorefaBits),
      named<OneBit>("one-bit"),
      named<MajorityVote>("majority-vote"),
      {"dithered-sign", [](const RuleOptions& of) { return std::make_unique<DitheredSign>(of.steps / 2); }},
      named<Diana>("diana-largest", Norm::kLargest, true),
      named<Diana>("diana-euclidean", Norm::kEuclidean, true),
      named<Diana>("dqgd", Norm::kEuclidean, false),
      named<Atomo>("atomo", kAtomo),
      named<Largest>("dropping", kDropping, true),
      named<Largest>("hard-threshold", kDropping, false),
      named<Noise>("noise"),
      {"asynchronous", [](const RuleOptions& of) { return std::make_unique<Asynchronous>(of.members); }},
  };
  return all;
}

std::unique_ptr<Rule> make_rule(const std::string& name, const RuleOptions& options) {
  for (const NamedRule& one : rules())
    if (one.name == name) return one.make(options);
  return nullptr;
}

}  // namespace tg::plain
