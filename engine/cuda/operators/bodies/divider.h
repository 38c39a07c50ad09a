// Division by a number that is fixed for a launch: one multiplication and a shift, after Granlund and Montgomery (PLDI
// 1994), for dividends below 2^31; a plain division for larger ones.
#pragma once

#include <cstdint>

#include "kernels/base/check.h"
#include "kernels/cuda/host_device.h"

namespace tg::engine::cuda::bodies {

class Divider {
 public:
  Divider() = default;
  explicit Divider(std::uint64_t divisor) : divisor_(static_cast<std::uint32_t>(divisor)) {
    TG_CHECK(divisor > 0 && divisor < 1U << 31, divisor);
    while (1U << shift_ < divisor_) ++shift_;
    // n / d = (n * multiplier / 2^32 + n) / 2^shift, multiplier = floor(2^32 * (2^shift - d) / d) + 1.
    multiplier_ = static_cast<std::uint32_t>(((std::uint64_t{1} << 32) * ((1U << shift_) - divisor_)) / divisor_ + 1);
  }

  struct Parts {
    std::uint64_t quotient;
    std::uint32_t remainder;
  };
  TG_HOST_DEVICE Parts operator()(std::uint64_t dividend) const {
    if (dividend >> 31 != 0) return {dividend / divisor_, static_cast<std::uint32_t>(dividend % divisor_)};
    return of_small(static_cast<std::uint32_t>(dividend));
  }
  // The dividend is below 2^31.
  TG_HOST_DEVICE Parts of_small(std::uint32_t dividend) const {
    const auto high = static_cast<std::uint32_t>(std::uint64_t{dividend} * multiplier_ >> 32);
    const std::uint32_t quotient = (high + dividend) >> shift_;
    return {quotient, dividend - quotient * divisor_};
  }

 private:
  std::uint32_t divisor_ = 1, multiplier_ = 1, shift_ = 0;
};

}  // namespace tg::engine::cuda::bodies
