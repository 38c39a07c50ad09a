#include "tests/gpu/rates.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
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
constexpr int kWarm = 6, kMinSteps = 10, kMaxSteps = 2000;

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// What is the same in every arithmetic.
struct Work {
  explicit Work(const RateOptions& options)
      : model(make_model(options.model)),
        count(options.batch),
        batch(random_batch(model, count, 1)),
        parameters(model.segments.padded_count()) {
    initialize(model.segments, 1, parameters.data());
  }
  const Model model;
  const int count;  // samples
  const Batch batch;
  AlignedArray<float> parameters;
};

// A member that is alone. The tensor kernels wait for each call, as a node's workers have them.
class Member {
 public:
  Member(Accelerator& subject, const Work& work)
      : space_(subject.space()),
        kernels_(space_.make_kernels()),
        work_(work),
        gradient_(space_, work.parameters.size()),
        planes_(work.parameters.size()) {
    auto made = subject.make_engine(work.model, {.threads = 1, .batch = work.count, .evaluation_batch = 1, .seed = 1});
    if (!made) throw Wrong(made.error().message);
    engine_ = std::move(made).value();
    for (Batch& batch : batches_) {
      batch.count = work.count;
      batch.labels = work.batch.labels;
      batch.images = space_.allocate_host(work.batch.images.size());
      std::ranges::copy(work.batch.images, batch.images.begin());
    }
    for (Half& half : halves_) {
      half.parameters = copied_to(space_, *kernels_, work.parameters.span());
      half.momentum = kernels::MemoryArray(space_, work.parameters.size());
    }
    optimizer_.schedule.base_rate = 0.001;
    for (std::size_t s = 0; s < segments().size(); ++s)
      for (std::size_t first = 0; first < segments()[s].padded_count(); first += kSlice)
        slices_.push_back(std::as_const(gradient_).floats().subspan(
            segments()[s].offset + first, std::min(kSlice, segments()[s].padded_count() - first)));
    measured_.resize(slices_.size());
    scales_.resize(segments().size());
  }

  // The mean loss.
  double compute() {
    const double loss = forward();
    backward();
    return loss;
  }
  double forward() {
    return engine_->forward(half(0).parameters.floats().address(), batches_[step_ % 2]) / work_.count;
  }
  void backward() {
    bool prefetched = false;
    engine_->backward(1.0F, gradient_.floats().address(), [&](std::size_t, std::size_t) {
      if (!std::exchange(prefetched, true)) engine_->prefetch(batches_[(step_ + 1) % 2]);
    });
  }
  void statistics() {
    kernels_->statistics(slices_, measured_);
    std::size_t slice = 0;
    for (std::size_t s = 0; s < segments().size(); ++s) {
      kernels::Statistics all;
      for (std::size_t first = 0; first < segments()[s].padded_count(); first += kSlice) all.join(measured_[slice++]);
      const float clip = kernels::clip_bound(all, segments()[s].element_count, 2.5F);
      scales_[s] = {clip, std::min(all.max_abs, clip)};
    }
  }
  void codes() {
    for (std::size_t s = 0; s < segments().size(); ++s)
      kernels_->ternarize(cut(std::as_const(gradient_), s), 0,
                          {1, 0, static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(step_)}, scales_[s],
                          codes_of(s));
  }
  void apply() {
    kernels::Update update = update_for_step(optimizer_, step_);
    update.past_caches = work_.parameters.size() >= kernels::kPastCaches;
    const Half& from = half(0);
    Half& to = half(1);
    for (std::size_t s = 0; s < segments().size(); ++s) {
      update.scale = kernels::applied_scale(scales_[s].scaler) / static_cast<float>(work_.count);
      const kernels::Planes codes = codes_of(s);
      const kernels::ConstPlanes view{codes.nonzero, codes.negative};
      kernels_->apply_planes(update, {&view, 1}, {cut(from.parameters, s), cut(from.momentum, s), {}},
                             {cut(to.parameters, s), cut(to.momentum, s), {}});
    }
    ++step_;
  }
  // momentum += 0.1 (gradient - momentum), parameters -= rate momentum.
  void update() {
    Half& now = half(0);
    kernels_->average(std::as_const(gradient_).floats(), 0.1F, now.momentum.floats());
    kernels_->add_scaled(std::as_const(now.momentum).floats(), -1e-6F, now.parameters.floats());
  }
  std::string build() const { return engine_->build(); }
  std::string choices() const { return engine_->choices(); }

 private:
  struct Half {
    kernels::MemoryArray parameters, momentum;
  };
  const SegmentTable& segments() const { return work_.model.segments; }
  Half& half(std::uint64_t later) { return halves_[(step_ + later) % 2]; }
  template <class Floats>
  Floats part_of(Floats all, std::size_t s) const {
    return all.subspan(segments()[s].offset, segments()[s].padded_count());
  }
  kernels::Floats cut(kernels::MemoryArray& array, std::size_t s) const { return part_of(array.floats(), s); }
  kernels::ConstFloats cut(const kernels::MemoryArray& array, std::size_t s) const {
    return part_of(array.floats(), s);
  }
  kernels::Planes codes_of(std::size_t s) {
    const std::size_t first = segments()[s].offset / kernels::kWordBits;
    const std::size_t count = segments()[s].padded_count() / kernels::kWordBits;
    return {planes_.nonzero.span().subspan(first, count), planes_.negative.span().subspan(first, count)};
  }

  kernels::MemorySpace& space_;
  const std::unique_ptr<kernels::TensorKernels> kernels_;
  const Work& work_;
  Batch batches_[2];  // outlive the engine, which may be reading one
  std::unique_ptr<Engine> engine_;
  Half halves_[2];
  kernels::MemoryArray gradient_;
  PlaneArrays planes_;
  OptimizerOptions optimizer_;
  std::vector<kernels::ConstFloats> slices_;
  std::vector<kernels::Statistics> measured_;
  std::vector<kernels::Scale> scales_;  // by segment
  std::uint64_t step_ = 0;
};

// A time per step for each part of a step and for the whole.
class Times {
 public:
  template <class Part>
  void add(const char* name, Part part) {
    const Clock::time_point begin = Clock::now();
    part();
    add_ms(name, ms_since(begin));
  }
  void add_ms(const char* name, double ms) { by_name_[name].push_back(ms); }
  std::string json() const {
    std::string all;
    for (const auto& [name, times] : by_name_) all += text("\"%s\": %.4f, ", name.c_str(), median(times));
    return all;
  }

 private:
  std::map<std::string, std::vector<double>> by_name_;
};

std::string quoted(const std::string& words) {
  std::string all = "\"";
  for (const char c : words) {
    if (c == '"' || c == '\\') all += '\\';
    all += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return all + '"';
}

void print_rate(Accelerator& subject, const Work& work, const RateOptions& options, const char* math) {
  const Clock::time_point begin = Clock::now();
  Member member(subject, work);
  const double made = ms_since(begin);
  const double first = member.compute();
  double loss = first;
  const auto step = [&](Times& times) {
    const Clock::time_point step_begin = Clock::now();
    times.add("compute_ms", [&] { loss = member.compute(); });
    times.add("statistics_ms", [&] { member.statistics(); });
    times.add("codes_ms", [&] { member.codes(); });
    times.add("apply_ms", [&] { member.apply(); });
    times.add_ms("step_ms", ms_since(step_begin));
    times.add("update_ms", [&] { member.update(); });
  };
  Times warm, times;
  for (int i = 0; i < kWarm; ++i) step(warm);
  int steps = 0;
  for (const Clock::time_point timed = Clock::now();
       steps < kMinSteps || (ms_since(timed) < options.seconds * 1e3 && steps < kMaxSteps); ++steps)
    step(times);
  if (!std::isfinite(loss)) throw Wrong(text("%s: the loss went from %g to %g", math, first, loss));
  std::printf(
      "{\"model\": \"%s\", \"batch\": %d, \"math\": \"%s\", %s\"steps\": %d, \"first_loss\": %.6g, \"loss\": %.6g, "
      "\"made_ms\": %.0f, \"engine\": %s}\n",
      to_word(options.model), options.batch, math, times.json().c_str(), steps, first, loss, made,
      quoted(member.build()).c_str());
}

void print_activities(const char* part, const Spent& spent) {
  for (const Activity& one : spent.activities)
    std::printf("%s %.1f %.1f %s\n", part, one.begin_us - spent.activities[0].begin_us, one.us, one.name.c_str());
  std::printf("%s: %.0f us, in kernels %.0f us, in copies %.0f us\n", part, spent.call_us, spent.kernels_us,
              spent.copies_us);
}

}  // namespace

void print_trace(const SubjectOptions& subject, const RateOptions& options, KernelTimer& timer) {
  const Work work(options);
  Member member(open_subject(subject), work);
  for (int i = 0; i < kWarm; ++i) {
    member.compute();
    member.apply();
  }
  std::printf("%s %d %s\n%s\n", to_word(options.model), options.batch, to_word(subject.math), member.choices().c_str());
  print_activities("forward", timer.of([&] { member.forward(); }));
  print_activities("backward", timer.of([&] { member.backward(); }));
}

void print_rates(const SubjectOptions& subject, const RateOptions& options) {
  const Work work(options);
  for (const Math math : options.maths) {
    SubjectOptions own = subject;
    own.math = math;
    const char* word = "refused";
    try {
      Accelerator& accelerator = open_subject(own);
      word = "failed";
      print_rate(accelerator, work, options, to_word(math));
    } catch (const std::exception& why) {
      std::printf("{\"math\": \"%s\", \"%s\": %s}\n", to_word(math), word, quoted(why.what()).c_str());
    }
    std::fflush(stdout);
  }
}

}  // namespace tg::gpu
