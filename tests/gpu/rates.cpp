#include "tests/gpu/rates.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "engine/optimizer.h"
#include "kernels/base/median.h"
#include "tests/engine/random_batch.h"
#include "tests/gpu/report.h"
#include "tests/gpu/values.h"

namespace tg::gpu {
namespace {

using namespace engine;

constexpr std::size_t kSlice = 512 * 1024;  // as daemon/exchange/gradient_statistics.h cuts them
constexpr int kWarm = 6;

// A member that is alone: batch from the host, forward, backward, statistics, codes to the host, momentum from them.
class Member {
 public:
  Member(Accelerator& subject, const RateOptions& options)
      : home_(subject.home()),
        kernels_(home_.make_kernels()),
        model_(make_model(options.model)),
        batch_(random_batch(model_, options.batch, 1)),
        planes_(model_.segments.padded_count()) {
    auto made = subject.make_engine(model_, {.threads = 1, .batch = options.batch, .evaluation_batch = 1, .seed = 1});
    if (!made) throw Wrong(made.error().message);
    engine_ = std::move(made).value();
    AlignedArray<float> parameters(model_.segments.padded_count());
    initialize(model_.segments, 1, parameters.data());
    for (Half& half : halves_) {
      half.parameters = at_home(home_, *kernels_, parameters.span());
      half.momentum = kernels::HomeArray(home_, parameters.size());
    }
    gradient_ = kernels::HomeArray(home_, parameters.size());
    optimizer_.schedule.base_rate = 0.001;
  }

  double compute() {
    const double loss = engine_->forward(halves_[step_ % 2].parameters.floats().address(), batch_);
    engine_->backward(1.0F, gradient_.floats().address(), [](std::size_t, std::size_t) {});
    return loss / batch_.count;
  }
  void update() {
    Half& from = halves_[step_ % 2];
    Half& to = halves_[(step_ + 1) % 2];
    kernels::Update update = update_for_step(optimizer_, step_);
    std::vector<kernels::ConstFloats> slices;
    for (const Segment& segment : model_.segments.segments())
      for (std::size_t first = 0; first < segment.padded_count(); first += kSlice)
        slices.push_back(std::as_const(gradient_).floats().subspan(segment.offset + first,
                                                                   std::min(kSlice, segment.padded_count() - first)));
    std::vector<kernels::Statistics> parts(slices.size());
    kernels_->statistics(slices, parts);
    std::size_t part = 0;
    for (std::size_t s = 0; s < model_.segments.size(); ++s) {
      const Segment& segment = model_.segments[s];
      kernels::Statistics all;
      for (std::size_t first = 0; first < segment.padded_count(); first += kSlice) all.join(parts[part++]);
      const float clip = kernels::clip_bound(all, segment.element_count, 2.5F);
      const float scaler = std::min(all.max_abs, clip);
      const std::size_t word = segment.offset / kernels::kWordBits;
      const std::size_t words = segment.padded_count() / kernels::kWordBits;
      const kernels::Planes codes{planes_.nonzero.span().subspan(word, words),
                                  planes_.negative.span().subspan(word, words)};
      const auto cut = [&](auto&& array) { return array.floats().subspan(segment.offset, segment.padded_count()); };
      kernels_->ternarize(cut(std::as_const(gradient_)), 0,
                          {1, 0, static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(step_)}, {clip, scaler},
                          codes);
      update.scale = kernels::applied_scale(scaler) / static_cast<float>(batch_.count);
      const kernels::ConstPlanes view{codes.nonzero, codes.negative};
      kernels_->apply_planes(update, {&view, 1},
                             {cut(std::as_const(from.parameters)), cut(std::as_const(from.momentum)), {}},
                             {cut(to.parameters), cut(to.momentum), {}});
    }
    // The next step's parameters are there when this returns, as a digest shows.
    kernels_->digest(std::as_const(to.parameters).floats().subspan(0, kernels::kBlock), 0, 0);
    ++step_;
  }
  std::string build() const { return engine_->build(); }

 private:
  struct Half {
    kernels::HomeArray parameters, momentum;
  };
  kernels::Home& home_;
  const std::unique_ptr<kernels::TensorKernels> kernels_;
  const Model model_;
  const Batch batch_;
  std::unique_ptr<Engine> engine_;
  Half halves_[2];
  kernels::HomeArray gradient_;
  PlaneArrays planes_;
  OptimizerOptions optimizer_;
  std::uint64_t step_ = 0;
};

}  // namespace

void print_rates(Accelerator& subject, const RateOptions& options) {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto ms = [](auto from, auto to) { return std::chrono::duration<double, std::milli>(to - from).count(); };
  const auto made_at = now();
  Member member(subject, options);
  const double made = ms(made_at, now());
  const double first = member.compute();
  member.update();
  double loss = first;
  for (int i = 0; i < kWarm; ++i) {
    loss = member.compute();
    member.update();
  }
  if (!std::isfinite(loss)) throw Wrong(text("the loss went from %g to %g", first, loss));
  std::vector<double> computed, stepped;
  const auto end = now() + std::chrono::duration<double>(options.seconds);
  while (computed.size() < 10 || (now() < end && computed.size() < 2000)) {
    const auto begin = now();
    loss = member.compute();
    const auto between = now();
    member.update();
    computed.push_back(ms(begin, between));
    stepped.push_back(ms(begin, now()));
  }
  std::printf(
      "{\"model\": \"%s\", \"batch\": %d, \"engine\": \"%s\", \"compute_ms\": %.4f, \"step_ms\": %.4f, "
      "\"steps\": %zu, \"first_loss\": %.6g, \"loss\": %.6g, \"made_ms\": %.0f}\n",
      to_word(options.model), options.batch, member.build().c_str(), median(computed), median(stepped), stepped.size(),
      first, loss, made);
}

}  // namespace tg::gpu
