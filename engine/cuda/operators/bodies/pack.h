// A few values side by side, moved by one instruction: four floats are the 16 bytes that a thread can load at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/host_device.h"

namespace tg::engine::cuda::bodies {

inline constexpr int kWide = 4;  // values

template <class T, int kWidth>
struct alignas(sizeof(T) * kWidth) Pack {
  T at[kWidth];
};

// `from` and `to` are aligned to the pack.
template <int kWidth, class T>
TG_HOST_DEVICE Pack<T, kWidth> load(const T* from) {
  return *reinterpret_cast<const Pack<T, kWidth>*>(from);
}
template <class T, int kWidth>
TG_HOST_DEVICE void store(T* to, const Pack<T, kWidth>& pack) {
  *reinterpret_cast<Pack<T, kWidth>*>(to) = pack;
}

// Whether all pointers allow moves in packs of kWide.
template <class... T>
bool allows_wide(const T*... pointers) {
  return (... && (reinterpret_cast<std::uintptr_t>(pointers) % (sizeof(T) * kWide) == 0));
}

}  // namespace tg::engine::cuda::bodies
