#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "kernels/host_memory_space.h"
#include "tests/engine/random_batch.h"
#include "tests/engine/reference_network.h"
#include "tests/engine/small_networks.h"
#include "tests/gpu/checks.h"
#include "tests/gpu/step.h"

namespace tg::gpu {
namespace {

using namespace engine;

constexpr std::uint64_t kSeed = 0x123456789;      // dropout's
constexpr std::uint64_t kPosition = 0xfffffffeU;  // a batch's samples cross the counter's low word
constexpr float kFactor = 1.5F;

// What an arithmetic may do to a result, as relative errors in norm. tolerance: sums of float32 in another order
// (Winograd's transforms of 5x5 and larger filters lose ten times as much: the engine does not take them); factors that
// are rounded to 10 and 7 bits, through a few layers. loss: of the loss of a few samples.
// Beyond that a gradient may move as it does on the CPU where every parameter moves by `nudge` of itself, about what
// float32 sums lose (2^-20), or half of the last bit that is left: where a value at a relu or a maximum falls the other
// way, a small batch feels it. `nudges` times that: since a layer's float32 sums lose in each of some ten layers; since
// activations and their gradients are rounded as parameters are. Where it comes to more than `rounding` a segment's
// gradient is made of rounding alone (a bias before a batch normalization): it is not compared, and half of all
// segments at most may be so.
struct Arithmetic {
  double tolerance, loss;
  float nudge;
  double nudges, rounding;
  unsigned moves;  // that are tried: where bits are few they move much, and by chance
};
constexpr Arithmetic kFp32{1e-4, 1e-5, 0x1p-20F, 10, 0.02, 2};
constexpr Arithmetic kTf32{1e-2, 2e-3, 0x1p-11F, 3, 0.3, 4};
constexpr Arithmetic kBf16{4e-2, 2e-2, 0x1p-8F, 3, 0.5, 4};
// A few of some 100,000 values at relus and maxima after batch normalizations fall the other way in any float32 sum,
// and each moves what was a sum of many opposite signs: in deep networks PyTorch in float32 is up to 3e-2 from PyTorch
// in float64 (tests/paper/pytorch_models.py). There the whole gradient is held to that; of a segment only what is
// missing, doubled or of the other sign would be seen, and the small networks are there for the rest.
constexpr double kDeepTolerance = 5e-2, kDeepNudges = 3, kDeepSegment = 0.5;
// An error along a direction of signs is normal with deviation 1, in units of its norm / sqrt(n); and the float32
// products of these small networks leave a few parts of the tolerance.
constexpr double kSigns = 5;

const Arithmetic& arithmetic_of(Math math) { return math == Math::kFp32 ? kFp32 : math == Math::kTf32 ? kTf32 : kBf16; }

struct Subject {
  Accelerator& accelerator;
  CheckOptions options;
  Engines& engines;

  std::unique_ptr<Engine> engine(const Model& model, int batch, int evaluation_batch) const {
    return engines.make(model, {.threads = 1, .batch = batch, .evaluation_batch = evaluation_batch, .seed = kSeed});
  }
  std::unique_ptr<Engine> reference(const Model& model, int batch, int evaluation_batch) const {
    return make_cpu_engine(
               model, {.threads = options.threads, .batch = batch, .evaluation_batch = evaluation_batch, .seed = kSeed})
        .value();
  }
};

kernels::MemorySpace& host() {
  static kernels::HostMemorySpace space(*kernels::available().front());
  return space;
}

struct Network {
  std::string name;
  Model model;
  int batch = 2;
  float bound = 0;  // for uniform parameters; 0: the model's own start
  bool deep = false;
};

AlignedArray<float> parameters_of(const Network& network) {
  if (network.bound > 0) return random_parameters(network.model, network.bound, 12);
  AlignedArray<float> flat = flat_array(network.model);
  initialize(network.model.segments, 22, flat.data());
  return flat;
}

Batch batch_of(const Network& network, int count, std::uint64_t seed) {
  Batch batch = random_batch(network.model, count, seed);
  batch.first_position = kPosition;
  return batch;
}

AlignedArray<float> nudged(const AlignedArray<float>& parameters, float nudge, std::uint64_t seed) {
  AlignedArray<float> moved(parameters.size());
  in_parallel(moved.size(), 1 << 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      moved[i] = parameters[i] * (1 + ((drawn(seed, i) & 1) != 0 ? nudge : -nudge));
  });
  return moved;
}

// Loss, gradient segment by segment, and batch statistics.
std::string compare_steps(const Network& network, const Subject& subject) {
  const Model& model = network.model;
  const Arithmetic& arithmetic = arithmetic_of(subject.options.math);
  const AlignedArray<float> parameters = parameters_of(network);
  const Batch batch = batch_of(network, network.batch, 11);
  const std::unique_ptr<Engine> reference = subject.reference(model, network.batch, 1);
  const Step want = step_of(*reference, host(), parameters.span(), batch, kFactor);
  const Step got =
      step_of(*subject.engine(model, network.batch, 1), subject.accelerator.space(), parameters.span(), batch, kFactor);
  std::vector<Step> moved;
  for (std::uint64_t seed = 1; seed <= arithmetic.moves; ++seed)
    moved.push_back(step_of(*reference, host(), nudged(parameters, arithmetic.nudge, seed).span(), batch, kFactor));

  const auto most = [&](auto error) {
    double largest = 0;
    for (const Step& step : moved) largest = std::max(largest, error(step));
    return largest;
  };
  const auto loss_error = [&](double loss) { return std::abs(loss - want.loss) / std::abs(want.loss); };
  const double loss_tolerance =
      arithmetic.loss + arithmetic.nudges * most([&](const Step& step) { return loss_error(step.loss); });
  expect(loss_error(got.loss) <= loss_tolerance,
         text("loss %.8g instead of %.8g, tolerance %.1e", got.loss, want.loss, loss_tolerance));

  const auto compared = [&](const std::string& name, auto of, double least, double nudges) {
    const double noise = most([&](const Step& step) { return distance(of(step), of(want)); });
    const double error = distance(of(got), of(want)), allowed = least + nudges * noise;
    expect(std::isfinite(error) || std::isinf(noise), name + ": an element is NaN or was not written");
    expect(error <= allowed || !(noise < arithmetic.rounding || network.deep),
           text("gradient of %s: error %.1e of its norm %.2e, tolerance %.1e", name.c_str(), error, norm(of(want)),
                allowed));
    return std::pair(error, noise < arithmetic.rounding);
  };
  double worst = 0;
  std::size_t rounding = 0;
  for (const Segment& segment : model.segments.segments()) {
    const auto of = [&](const Step& step) { return of_segment(step.gradient, segment); };
    const auto [error, meaningful] = network.deep ? compared(segment.name, of, kDeepSegment, kDeepNudges)
                                                  : compared(segment.name, of, arithmetic.tolerance, arithmetic.nudges);
    if (meaningful) worst = std::max(worst, error);
    rounding += !meaningful;
  }
  expect(network.deep || 2 * rounding <= model.segments.size(),
         text("%zu of %zu gradients are rounding alone", rounding, model.segments.size()));
  const auto whole = [](const Step& step) { return step.gradient.span(); };
  const double all = compared("everything", whole, network.deep ? kDeepTolerance : arithmetic.tolerance,
                              network.deep ? kDeepNudges : arithmetic.nudges)
                         .first;
  for (const Segment& segment : model.segments.segments())
    for (std::size_t i = segment.element_count; i < segment.padded_count(); ++i)
      expect(got.gradient[segment.offset + i] == 0, segment.name + ": padding was written");

  double statistics = 0;
  for (const Segment& segment : model.statistics.segments()) {
    const auto of = [&](const Step& step) { return of_segment(step.statistics, segment); };
    const double allowed =
        arithmetic.tolerance + arithmetic.nudges * most([&](const Step& step) { return distance(of(step), of(want)); });
    const double error = distance(of(got), of(want));
    expect(error <= allowed, text("%s: error %.1e, tolerance %.1e", segment.name.c_str(), error, allowed));
    statistics = std::max(statistics, error);
  }
  std::string found = text("loss %.6g off by %.0e, gradient by %.0e, its segments by at most %.0e", got.loss,
                           loss_error(got.loss), all, worst);
  if (rounding > 0) found += text(" but for %zu of %zu", rounding, model.segments.size());
  if (model.statistics.size() > 0) found += text(", batch statistics by %.0e", statistics);
  return found;
}

// The double-precision reference: the loss, and its slope along a random direction of each segment.
std::string compare_with_reference(const Network& network, const Subject& subject) {
  const Model& model = network.model;
  const AlignedArray<float> flat = parameters_of(network);
  const Batch batch = batch_of(network, network.batch, 11);
  const Step got =
      step_of(*subject.engine(model, network.batch, 1), subject.accelerator.space(), flat.span(), batch, 1);
  const Arithmetic& arithmetic = arithmetic_of(subject.options.math);
  std::vector<double> parameters(flat.begin(), flat.end());
  const double loss = reference_loss(model, parameters, batch, kSeed);
  expect(std::abs(got.loss - loss) <= arithmetic.loss * loss, text("loss %.8g instead of %.8g", got.loss, loss));
  double worst = 0;
  for (std::size_t s = 0; s < model.segments.size(); ++s) {
    const Segment& segment = model.segments[s];
    const std::span<const float> gradient = of_segment(got.gradient, segment);
    const double scale = 1 / std::sqrt(static_cast<double>(gradient.size())), step = 1e-6;
    const auto sign = [&](std::size_t i) { return (drawn(23 + s, i) & 1) != 0 ? scale : -scale; };
    const auto loss_at = [&](double move) {
      for (std::size_t i = 0; i < gradient.size(); ++i) parameters[segment.offset + i] += move * sign(i);
      return reference_loss(model, parameters, batch, kSeed);
    };
    const double above = loss_at(step), below = loss_at(-2 * step);
    loss_at(step);
    double slope = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) slope += gradient[i] * sign(i);
    expect(norm(gradient) > 0, segment.name + ": no gradient");
    // A direction of signs sees 1 / sqrt(n) of the norm, and as much of its error.
    const double error = std::abs(slope - (above - below) / (2 * step)) / (norm(gradient) * scale);
    worst = std::max(worst, error);
    expect(error <= kSigns * arithmetic.tolerance,
           text("slope of %s: %.6g instead of %.6g", segment.name.c_str(), slope, (above - below) / (2 * step)));
  }
  return text("loss off by %.0e, slopes by at most %.0e of what they may be", std::abs(got.loss - loss) / loss, worst);
}

// Along the gradient the loss has the gradient's norm as its slope, by the subject's own losses. They are float32: the
// step is such that the loss moves by a thousandth, of which rounding is some 1e-4 and kinks some hundredths at worst.
std::string compare_slope(const Network& network, const Subject& subject) {
  constexpr double kShare = 0.001, kSlopeTolerance = 0.05;
  const AlignedArray<float> flat = parameters_of(network);
  const Batch batch = batch_of(network, network.batch, 13);
  const std::unique_ptr<Engine> engine = subject.engine(network.model, network.batch, 1);
  kernels::MemorySpace& space = subject.accelerator.space();
  const Step at = step_of(*engine, space, flat.span(), batch, 1);
  const double slope = norm(at.gradient.span()), length = kShare * at.loss / slope;
  const auto loss_at = [&](double move) {
    AlignedArray<float> moved(flat.size());
    for (std::size_t i = 0; i < flat.size(); ++i)
      moved[i] = static_cast<float>(flat[i] + move * at.gradient[i] / slope);
    return step_of(*engine, space, moved.span(), batch, 1).loss;
  };
  const double measured = (loss_at(length) - loss_at(-length)) / (2 * length);
  expect(std::abs(measured - slope) <= kSlopeTolerance * slope,
         text("slope along the gradient %.5g instead of %.5g", measured, slope));
  return text("slope along the gradient %.5g, by differences %.5g", slope, measured);
}

// Counts and loss of a full batch, a short one, and none.
std::string compare_evaluations(const Network& network, const Subject& subject) {
  const Model& model = network.model;
  const int whole = subject.options.small ? 7 : 40, part = 3;
  const AlignedArray<float> parameters = parameters_of(network);
  const std::unique_ptr<Engine> reference = subject.reference(model, network.batch, whole);
  const Step measured = step_of(*reference, host(), parameters.span(), batch_of(network, network.batch, 11), 1);
  const float* const statistics = model.statistics.size() > 0 ? measured.statistics.data() : nullptr;
  const std::unique_ptr<Engine> engine = subject.engine(model, network.batch, whole);
  kernels::MemorySpace& space = subject.accelerator.space();
  const std::unique_ptr<kernels::TensorKernels> kernels = space.make_kernels();
  const kernels::MemoryArray at = copied_to(space, *kernels, parameters.span());
  const double tolerance = arithmetic_of(subject.options.math).tolerance;
  double worst = 0;
  std::uint64_t correct = 0, correct_5 = 0;
  for (const int count : {whole, part, 1}) {
    const Batch batch = batch_of(network, count, 54);
    const EvaluationCounts want = reference->evaluate(parameters.data(), statistics, batch);
    std::vector<float> logits(batch.labels.size() * static_cast<std::size_t>(model.classes));
    const EvaluationCounts got = engine->evaluate(at.floats().address(), statistics, batch, logits);
    std::uint64_t highest = 0;
    for (std::size_t i = 0; i < batch.labels.size(); ++i) {
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i) * model.classes;
      if (std::max_element(row, row + model.classes) - row == batch.labels[i]) ++highest;
    }
    expect(highest == got.correct, text("%d samples: %d correct by their logits, %d counted", count,
                                        static_cast<int>(highest), static_cast<int>(got.correct)));
    expect(got.total == want.total, text("%d samples: total %d", count, static_cast<int>(got.total)));
    // A loss far below 1 is as far off as the logits are, whose differences it is made of.
    const double error = std::abs(got.loss_sum - want.loss_sum) / std::max<double>(want.loss_sum, count);
    expect(error <= tolerance, text("%d samples: loss %.8g instead of %.8g", count, got.loss_sum, want.loss_sum));
    // Two logits that are nearly equal may change places: in one sample, where bits are few in a quarter of them.
    const std::uint64_t apart = subject.options.math == Math::kFp32 ? 1 : 1 + static_cast<std::uint64_t>(count) / 4;
    const auto near = [apart](std::uint64_t a, std::uint64_t b) { return a <= b + apart && b <= a + apart; };
    expect(near(got.correct, want.correct) && near(got.correct_5, want.correct_5),
           text("%d samples: %d correct, %d in five instead of %d and %d", count, static_cast<int>(got.correct),
                static_cast<int>(got.correct_5), static_cast<int>(want.correct), static_cast<int>(want.correct_5)));
    worst = std::max(worst, error);
    correct += got.correct;
    correct_5 += got.correct_5;
  }
  expect(engine->evaluate(at.floats().address(), statistics, Batch{}).total == 0, "an empty batch has samples");
  return text("loss off by at most %.0e, %d correct, %d in five", worst, static_cast<int>(correct),
              static_cast<int>(correct_5));
}

// A network of the table, on images of `side` (0: as published).
Network network_of(ModelKind kind, int side, int batch) {
  ModelOptions options{.kind = kind};
  if (side > 0) options.input = ImageShape{published_input(kind).channels, side, side};
  return {text("%s_%d_of_%d", to_word(kind), batch, make_model(options).value().input.height),
          make_model(options).value(), batch};
}

std::vector<Network> networks(bool small) {
  std::vector<Network> all;
  all.push_back(network_of(ModelKind::kMlp, 0, 16));
  all.push_back(network_of(ModelKind::kLenet, 0, small ? 8 : 64));
  all.push_back(network_of(ModelKind::kCifarnet, 0, small ? 4 : 64));
  all.push_back(network_of(ModelKind::kResnet20, small ? 8 : 32, small ? 8 : 32));
  if (small) return all;
  all.push_back(network_of(ModelKind::kAlexnet, 0, 8));
  all.push_back(network_of(ModelKind::kAlexnetTwoColumn, 0, 8));
  all.push_back(network_of(ModelKind::kVggA, 64, 4));
  for (const Network& deep : {network_of(ModelKind::kResnet18, 96, 16), network_of(ModelKind::kGooglenet, 0, 8),
                              network_of(ModelKind::kGooglenetSlim, 0, 8), network_of(ModelKind::kResnet50, 0, 8)}) {
    all.push_back(deep);
    all.back().deep = true;
  }
  return all;
}

}  // namespace

void check_networks(Report& report, Accelerator& accelerator, const CheckOptions& options) {
  Engines engines(accelerator);
  const Subject subject{accelerator, options, engines};
  report.explain([&] { return engines.last(); });
  for (const SmallNetwork& one : small_networks()) {
    const Network network{one.name, one.model().value(), 3, 0.5F};
    const std::string name = std::string("networks.small.") + one.name;
    report.run(name, [&] { return compare_steps(network, subject); });
    report.run(name + ".reference", [&] { return compare_with_reference(network, subject); });
    report.run(name + ".evaluation", [&] { return compare_evaluations(network, subject); });
  }
  for (const Network& network : networks(options.small)) {
    const std::string name = "networks." + network.name;
    report.run(name, [&] { return compare_steps(network, subject); });
    if (options.math == Math::kFp32)  // the losses' difference is in the bits that the others lack
      report.run(name + ".slope", [&] { return compare_slope(network, subject); });
    report.run(name + ".evaluation", [&] { return compare_evaluations(network, subject); });
  }
  report.explain({});
}

}  // namespace tg::gpu
