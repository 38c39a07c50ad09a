#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/base/median.h"
#include "kernels/sample_update.h"
#include "tests/gpu/checks.h"
#include "tests/gpu/kernel_timer.h"
#include "tests/gpu/values.h"

namespace tg::gpu {
namespace {

using namespace kernels;

constexpr std::size_t kFloats = 61'102'592;  // AlexNet's: five times a large cache
constexpr std::size_t kSlice = 512 * 1024;
constexpr int kWarm = 3, kRepeats = 15;

// The device's own copy, through the driver: cuMemcpyDtoD of one array to another.
class DeviceCopy {
 public:
  DeviceCopy() {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == nullptr) throw Wrong(dlerror());
    copy_ = reinterpret_cast<Copy>(dlsym(driver, "cuMemcpyDtoDAsync_v2"));
    synchronize_ = reinterpret_cast<Synchronize>(dlsym(driver, "cuCtxSynchronize"));
    if (copy_ == nullptr || synchronize_ == nullptr) throw Wrong("the driver lacks cuMemcpyDtoDAsync_v2");
  }
  void operator()(const Floats& from, const Floats& to) const {
    const auto address = [](const Floats& floats) { return reinterpret_cast<std::uintptr_t>(floats.address()); };
    const int first = copy_(address(to), address(from), from.size() * sizeof(float), nullptr), second = synchronize_();
    expect(first == 0 && second == 0, text("cuMemcpyDtoDAsync: error %d, %d", first, second));
  }

 private:
  using Copy = int (*)(unsigned long long to, unsigned long long from, std::size_t bytes, void* stream);
  using Synchronize = int (*)();
  Copy copy_ = nullptr;
  Synchronize synchronize_ = nullptr;
};

struct Median {
  double kernels_us = 0, copies_us = 0, call_us = 0;
  Spent last;
};

Median median_of(KernelTimer& timer, const std::function<void()>& what) {
  for (int i = 0; i < kWarm; ++i) what();
  std::vector<double> kernels, copies, calls;
  Median median;
  for (int i = 0; i < kRepeats; ++i) {
    median.last = timer.of(what);
    kernels.push_back(median.last.kernels_us);
    copies.push_back(median.last.copies_us);
    calls.push_back(median.last.call_us);
  }
  median.kernels_us = tg::median(kernels);
  median.copies_us = tg::median(copies);
  median.call_us = tg::median(calls);
  return median;
}

}  // namespace

void check_bandwidth(Report& report, engine::Accelerator& subject, KernelTimer& timer, const std::string& untraced) {
  MemorySpace& space = subject.space();
  const std::unique_ptr<TensorKernels> kernels = space.make_kernels();
  const AlignedArray<float> values = bell(kFloats, 1, 1);
  MemoryArray a = copied_to(space, *kernels, values.span()), b(space, kFloats), c(space, kFloats), d(space, kFloats),
              e(space, kFloats), f(space, kFloats);
  const AlignedArray<float> small = bell(kFloats, 2, 1e-3F);
  kernels->copy_in(std::as_bytes(small.span()), b.floats());

  double bytes_per_us = 0;  // the copy's, reading and writing
  report.run("bandwidth.copy", [&] {
    const DeviceCopy copy;
    const Median spent = median_of(timer, [&] { copy(a.floats(), f.floats()); });
    const double us = timer.traces() ? spent.copies_us + spent.kernels_us : spent.call_us;
    bytes_per_us = 8.0 * kFloats / us;
    const std::string found = text("%.0f us, %.0f GB/s", us, bytes_per_us * 1e-3);
    if (!timer.traces()) throw NotJudged(found + " of the whole call: " + untraced);
    return found + " (traced)";
  });
  if (bytes_per_us == 0 && !report.lists()) return;

  // bytes: that are read and written in the space, per element; target 0: none.
  const auto time = [&](const std::string& name, double bytes, double target, const std::function<void()>& what) {
    report.run("bandwidth." + name, [&] {
      const Median spent = median_of(timer, what);
      const double us = timer.traces() ? spent.kernels_us : spent.call_us;
      const double ratio = bytes * kFloats / us / bytes_per_us;
      std::string found = text("%.0f us, %.2f of the copy", us, ratio);
      if (target > 0) found += text(" (target %.2f)", target);
      if (!timer.traces())
        throw NotJudged(found + "; of the whole call, with copies to and from the host: not judged, " + untraced);
      found += text("; whole call %.0f us, copies %.0f us", spent.call_us, spent.copies_us);
      for (const Activity& one : spent.last.activities)
        if (!one.name.empty()) found += text(", %.60s", one.name.c_str());
      expect(ratio >= target, found);
      return found;
    });
  };

  std::vector<ConstFloats> slices;
  for (std::size_t first = 0; first < kFloats; first += kSlice)
    slices.push_back(std::as_const(a).floats().subspan(first, std::min(kSlice, kFloats - first)));
  std::vector<Statistics> measured(slices.size());
  time("statistics", 4, 0.85, [&] { kernels->statistics(slices, measured); });
  PlaneArrays planes(kFloats);
  time("ternarize", 4.25, 0.85, [&] {
    kernels->ternarize(a.floats(), 0, {1, 2, 3, 4}, {2.5F, 2.5F}, planes.planes());
  });

  const auto update = [](OptimizerKind kind) {
    Update all = sample_update(kind, 0);
    all.past_caches = true;
    return all;
  };
  const AlignedArray<std::int8_t> sums(kFloats);
  const ConstFloats none;
  time("apply_sums_sgd", 9, 0.95, [&] {
    kernels->apply_sums(update(OptimizerKind::kSgd), sums.span(), {a.floats(), {}, {}}, {c.floats(), {}, {}});
  });
  time("apply_sums_momentum", 17, 0.95, [&] {
    kernels->apply_sums(update(OptimizerKind::kMomentum), sums.span(), {a.floats(), b.floats(), {}},
                        {c.floats(), d.floats(), {}});
  });
  time("apply_sums_adam", 25, 0.95, [&] {
    kernels->apply_sums(update(OptimizerKind::kAdam), sums.span(), {a.floats(), b.floats(), e.floats()},
                        {c.floats(), d.floats(), f.floats()});
  });
  time("apply_floats_momentum", 20, 0.95, [&] {
    kernels->apply_floats(update(OptimizerKind::kMomentum), values.span(), {a.floats(), b.floats(), {}},
                          {c.floats(), d.floats(), {}});
  });
  for (const std::size_t members : {2, 4, 8}) {
    const std::vector<ConstPlanes> all(members, planes.view());
    time(text("apply_planes_momentum_%zu", members), 16 + 0.25 * static_cast<double>(members), 0.95, [&] {
      kernels->apply_planes(update(OptimizerKind::kMomentum), all, {a.floats(), b.floats(), {}},
                            {c.floats(), d.floats(), {}});
    });
  }
  time("add_scaled", 12, 0, [&] { kernels->add_scaled(b.floats(), 1e-4F, c.floats()); });
  time("average", 12, 0, [&] { kernels->average(b.floats(), 1e-4F, c.floats()); });
  time("digest", 4, 0.95, [&] { kernels->digest(a.floats(), 0, 1); });
}

}  // namespace tg::gpu
