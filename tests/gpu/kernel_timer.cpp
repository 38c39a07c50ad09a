#include "tests/gpu/kernel_timer.h"

#include <algorithm>
#include <chrono>

#if __has_include(<cupti.h>)
#include <cupti.h>
#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#define TG_HAS_CUPTI
#endif

namespace tg::gpu {
namespace {

double call_us(const std::function<void()>& what) {
  const auto start = std::chrono::steady_clock::now();
  what();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

class WholeCalls final : public KernelTimer {
 public:
  bool traces() const override { return false; }
  Spent of(const std::function<void()>& what) override { return {.call_us = call_us(what)}; }
};

#ifdef TG_HAS_CUPTI

constexpr std::size_t kBufferBytes = 1 << 20, kAlignment = 8;

// CUPTI's callbacks take no argument of ours.
struct Trace {
  std::mutex mutex;
  Spent spent;
  decltype(&cuptiActivityGetNextRecord) next = nullptr;
};
Trace trace;

// Takes nanoseconds, returns microseconds.
double add(std::uint64_t begin, std::uint64_t end, const char* name) {
  const double us = static_cast<double>(end - begin) * 1e-3;
  trace.spent.activities.push_back({name, static_cast<double>(begin) * 1e-3, us});
  return us;
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  const std::scoped_lock lock(trace.mutex);
  CUpti_Activity* record = nullptr;
  while (valid > 0 && trace.next(buffer, valid, &record) == CUPTI_SUCCESS) {
    // Later versions of the records begin as these do.
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto* const kernel = reinterpret_cast<const CUpti_ActivityKernel9*>(record);
      trace.spent.kernels_us += add(kernel->start, kernel->end, kernel->name == nullptr ? "?" : kernel->name);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      const auto* const copy = reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
      trace.spent.copies_us += add(copy->start, copy->end, "");
    }
  }
  std::free(buffer);
}

class Traced final : public KernelTimer {
 public:
  // Why it cannot be, or nothing.
  std::string open(const std::string& library) {
    void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (handle == nullptr) return dlerror();
    const auto find = [handle](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      return function != nullptr;
    };
    decltype(&cuptiActivityEnable) enable = nullptr;
    decltype(&cuptiActivityRegisterCallbacks) take = nullptr;
    if (!find(enable, "cuptiActivityEnable") || !find(take, "cuptiActivityRegisterCallbacks") ||
        !find(flush_, "cuptiActivityFlushAll") || !find(trace.next, "cuptiActivityGetNextRecord"))
      return library + " lacks functions";
    const auto code = [](CUptiResult result) { return "CUPTI error " + std::to_string(result); };
    if (const CUptiResult result = take(give_buffer, take_buffer); result != CUPTI_SUCCESS) return code(result);
    for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY})
      if (const CUptiResult result = enable(kind); result != CUPTI_SUCCESS) return code(result);
    return {};
  }
  bool traces() const override { return true; }
  Spent of(const std::function<void()>& what) override {
    flush_(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    {
      const std::scoped_lock lock(trace.mutex);
      trace.spent = {};
    }
    const double us = call_us(what);
    flush_(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    const std::scoped_lock lock(trace.mutex);
    trace.spent.call_us = us;
    std::ranges::sort(trace.spent.activities, {}, &Activity::begin_us);
    return trace.spent;
  }

 private:
  decltype(&cuptiActivityFlushAll) flush_ = nullptr;
};

#endif

}  // namespace

std::unique_ptr<KernelTimer> make_kernel_timer([[maybe_unused]] const std::string& library, std::string& why) {
#ifdef TG_HAS_CUPTI
  auto traced = std::make_unique<Traced>();
  why = library.empty() ? "no libcupti.so was given" : traced->open(library);
  if (why.empty()) return traced;
#else
  why = "built without cupti.h";
#endif
  return std::make_unique<WholeCalls>();
}

}  // namespace tg::gpu
