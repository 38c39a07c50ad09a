// What a device spends in the kernels and copies that a call makes, as the driver's own tracing (CUPTI) says: without
// the launches, and without copies to and from the host where kernels are asked for. CUPTI is loaded while the program
// runs; where there is none, nothing is known but the time of whole calls. One at a time, for one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tg::gpu {

// A kernel, or a copy.
struct Activity {
  std::string name;  // a kernel's, mangled; none of a copy
  double begin_us = 0, us = 0;
};

struct Spent {
  double kernels_us = 0, copies_us = 0, call_us = 0;
  std::vector<Activity> activities = {};  // as they began
};

class KernelTimer {
 public:
  virtual ~KernelTimer() = default;
  // Whether kernels_us and copies_us are known.
  virtual bool traces() const = 0;
  // `what` returns when the device has done all of it.
  virtual Spent of(const std::function<void()>& what) = 0;
};

// A timer has to be made before the device is used. library: path of libcupti.so; why: what is missing, where nothing
// is traced.
std::unique_ptr<KernelTimer> make_kernel_timer(const std::string& library, std::string& why);

}  // namespace tg::gpu
