// cuDNN's calls that the engine makes, by their definitions: sums in double.
#include <cudnn.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "engine/cuda/operators/bodies/bf16.h"
#include "tests/engine/cuda/stand_in/device.h"

using tg::engine::cuda::Bf16;
using tg::engine::cuda::bodies::to_bf16;
using tg::engine::cuda::bodies::to_float;
using tg::engine::cuda::stand_in::can_run;
using tg::engine::cuda::stand_in::enqueue;
using tg::engine::cuda::stand_in::knows_nhwc;
using tg::engine::cuda::stand_in::strict;

struct cudnnContext {
  cudaStream_t stream = nullptr;
};
struct cudnnTensorStruct {
  int n, c, h, w;
  cudnnTensorFormat_t format;
  cudnnDataType_t type;

  std::size_t at(int sample, int channel, int row, int column) const {
    return static_cast<std::size_t>(format == CUDNN_TENSOR_NCHW ? ((sample * c + channel) * h + row) * w + column
                                                                : ((sample * h + row) * w + column) * c + channel);
  }
};
struct cudnnFilterStruct : cudnnTensorStruct {};  // n: output channels
struct cudnnConvolutionStruct {
  int pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w;
  int groups = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

namespace {

// Every product of a convolution, with the places of its input, weight and output.
template <class Take>
void each_product(const cudnnTensorStruct& x, const cudnnFilterStruct& f, const cudnnConvolutionStruct& conv,
                  const cudnnTensorStruct& y, const Take& take) {
  for (int n = 0; n < y.n; ++n)
    for (int k = 0; k < y.c; ++k)
      for (int c = 0; c < f.c; ++c) {
        const int from = k / (y.c / conv.groups) * f.c + c;
        for (int r = 0; r < f.h; ++r)
          for (int s = 0; s < f.w; ++s)
            for (int h = 0; h < y.h; ++h) {
              const int row = h * conv.stride_h - conv.pad_h + r * conv.dilation_h;
              if (row < 0 || row >= x.h) continue;
              for (int w = 0; w < y.w; ++w) {
                const int column = w * conv.stride_w - conv.pad_w + s * conv.dilation_w;
                if (column < 0 || column >= x.w) continue;
                take(x.at(n, from, row, column), f.at(k, c, r, s), y.at(n, k, h, w));
              }
            }
      }
}

std::size_t size_of(const cudnnTensorStruct& t) { return static_cast<std::size_t>(t.n) * t.c * t.h * t.w; }

double read(const cudnnTensorStruct& of, const void* from, std::size_t i) {
  return of.type == CUDNN_DATA_FLOAT ? static_cast<const float*>(from)[i] : to_float(static_cast<const Bf16*>(from)[i]);
}
void store(const cudnnTensorStruct& of, const std::vector<double>& sums, void* to) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto value = static_cast<float>(sums[i]);
    if (of.type == CUDNN_DATA_FLOAT) {
      static_cast<float*>(to)[i] = value;
    } else {
      static_cast<Bf16*>(to)[i] = to_bf16(value);
    }
  }
}

std::size_t workspace_of(int algorithm) { return static_cast<std::size_t>(algorithm) << 20; }
// Nothing that is an operand may lie where an algorithm works.
void use(void* workspace, int algorithm) {
  if (algorithm > 0) std::memset(workspace, 0xff, workspace_of(algorithm));
}

// One that does not repeat, two that do, the second with a workspace; Winograd's, where the kernel is large; and one
// that repeats in one kind of arithmetic only.
template <class Found, class Algorithm>
void list(int deterministic, int other, int winograd, int asked, int* count, Found* found) {
  const int mixed = deterministic + 2;
  const int algorithms[] = {other, winograd, mixed, deterministic, deterministic + 1, mixed};
  *count = 0;
  for (const int each : algorithms) {
    if (*count == asked) return;
    const bool last = *count + 1 == static_cast<int>(std::size(algorithms));
    Found& one = found[(*count)++];
    one = {};
    one.algo = static_cast<Algorithm>(each);
    one.status = CUDNN_STATUS_SUCCESS;
    one.determinism = each == other || last ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;
    one.mathType = last ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;
  }
}

template <class Make>
cudnnStatus_t created(Make** made) {
  *made = new Make{};
  return CUDNN_STATUS_SUCCESS;
}
template <class Made>
cudnnStatus_t destroyed(Made* made) {
  delete made;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t checked(const cudnnTensorStruct& x, const cudnnFilterStruct& f, const cudnnConvolutionStruct& conv,
                      const cudnnTensorStruct& y) {
  const auto length = [](int side, int pad, int kernel, int dilation, int stride) {
    return (side + 2 * pad - (dilation * (kernel - 1) + 1)) / stride + 1;
  };
  const bool fits = x.n == y.n && f.n == y.c && f.c * conv.groups == x.c &&
                    y.h == length(x.h, conv.pad_h, f.h, conv.dilation_h, conv.stride_h) &&
                    y.w == length(x.w, conv.pad_w, f.w, conv.dilation_w, conv.stride_w);
  const bool alike = x.format == f.format && x.format == y.format && x.type == f.type && x.type == y.type;
  if (!fits || !alike || strict() != (conv.math == CUDNN_FMA_MATH)) return CUDNN_STATUS_BAD_PARAM;
  if (x.format == CUDNN_TENSOR_NCHW) return x.type == CUDNN_DATA_FLOAT ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
  if (strict()) return CUDNN_STATUS_BAD_PARAM;
  return knows_nhwc() ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

}  // namespace

extern "C" {

std::size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_BAD_PARAM          ? "CUDNN_STATUS_BAD_PARAM"
         : status == CUDNN_STATUS_EXECUTION_FAILED ? "CUDNN_STATUS_EXECUTION_FAILED"
                                                   : "?";
}
void cudnnGetLastErrorString(char* message, std::size_t) { message[0] = '\0'; }
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) { return created(handle); }
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return destroyed(handle); }
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* made) { return created(made); }
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t made) { return destroyed(made); }
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  if (std::int64_t{n} * c * h * w > INT32_MAX) return CUDNN_STATUS_NOT_SUPPORTED;
  *tensor = {n, c, h, w, format, type};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derived, const cudnnTensorDescriptor_t x,
                                            cudnnBatchNormMode_t) {
  *derived = {1, x->c, 1, 1, x->format, x->type};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* made) { return created(made); }
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t made) { return destroyed(made); }
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  *filter = {{k, c, h, w, format, type}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* made) { return created(made); }
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t made) { return destroyed(made); }
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t conv, int pad_h, int pad_w, int stride_h,
                                              int stride_w, int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t) {
  *conv = {pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w};
  return mode == CUDNN_CROSS_CORRELATION ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t conv, int groups) {
  conv->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t conv, cudnnMathType_t math) {
  conv->math = math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t f,
                                                     const cudnnConvolutionDescriptor_t conv,
                                                     const cudnnTensorDescriptor_t y, int asked, int* count,
                                                     cudnnConvolutionFwdAlgoPerf_t* found) {
  list<cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t>(0, 3, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED,
                                                                 asked, count, found);
  return checked(*x, *f, *conv, *y);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, const cudnnFilterDescriptor_t f,
                                                          const cudnnTensorDescriptor_t y,
                                                          const cudnnConvolutionDescriptor_t conv,
                                                          const cudnnTensorDescriptor_t x, int asked, int* count,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* found) {
  list<cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t>(
      1, 0, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, asked, count, found);
  return checked(*x, *f, *conv, *y);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                            const cudnnTensorDescriptor_t y,
                                                            const cudnnConvolutionDescriptor_t conv,
                                                            const cudnnFilterDescriptor_t f, int asked, int* count,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* found) {
  list<cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t>(
      1, 0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, asked, count, found);
  return checked(*x, *f, *conv, *y);
}
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, const cudnnTensorDescriptor_t,
                                                      const cudnnFilterDescriptor_t, const cudnnConvolutionDescriptor_t,
                                                      const cudnnTensorDescriptor_t,
                                                      cudnnConvolutionFwdAlgo_t algorithm, std::size_t* bytes) {
  *bytes = workspace_of(algorithm);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t, const cudnnFilterDescriptor_t, const cudnnTensorDescriptor_t, const cudnnConvolutionDescriptor_t,
    const cudnnTensorDescriptor_t, cudnnConvolutionBwdDataAlgo_t algorithm, std::size_t* bytes) {
  *bytes = workspace_of(algorithm);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnConvolutionDescriptor_t,
    const cudnnFilterDescriptor_t, cudnnConvolutionBwdFilterAlgo_t algorithm, std::size_t* bytes) {
  *bytes = workspace_of(algorithm);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void*, const cudnnTensorDescriptor_t xd,
                                      const void* x, const cudnnFilterDescriptor_t fd, const void* f,
                                      const cudnnConvolutionDescriptor_t convd, cudnnConvolutionFwdAlgo_t algorithm,
                                      void* workspace, std::size_t bytes, const void*, const cudnnTensorDescriptor_t yd,
                                      void* y) {
  if (bytes < workspace_of(algorithm)) return CUDNN_STATUS_BAD_PARAM;
  if (!can_run(handle->stream, algorithm)) return CUDNN_STATUS_EXECUTION_FAILED;
  enqueue(handle->stream, [=, xs = *xd, fs = *fd, conv = *convd, ys = *yd] {
    use(workspace, algorithm);
    std::vector<double> sums(size_of(ys));
    each_product(xs, fs, conv, ys,
                 [&](std::size_t i, std::size_t j, std::size_t o) { sums[o] += read(xs, x, i) * read(fs, f, j); });
    store(ys, sums, y);
  });
  return checked(*xd, *fd, *convd, *yd);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void*, const cudnnFilterDescriptor_t fd,
                                           const void* f, const cudnnTensorDescriptor_t yd, const void* dy,
                                           const cudnnConvolutionDescriptor_t convd,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace, std::size_t bytes,
                                           const void*, const cudnnTensorDescriptor_t xd, void* dx) {
  if (bytes < workspace_of(algorithm)) return CUDNN_STATUS_BAD_PARAM;
  if (!can_run(handle->stream, algorithm)) return CUDNN_STATUS_EXECUTION_FAILED;
  enqueue(handle->stream, [=, xs = *xd, fs = *fd, conv = *convd, ys = *yd] {
    use(workspace, algorithm);
    std::vector<double> sums(size_of(xs));
    each_product(xs, fs, conv, ys,
                 [&](std::size_t i, std::size_t j, std::size_t o) { sums[i] += read(ys, dy, o) * read(fs, f, j); });
    store(xs, sums, dx);
  });
  return checked(*xd, *fd, *convd, *yd);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void*, const cudnnTensorDescriptor_t xd,
                                             const void* x, const cudnnTensorDescriptor_t yd, const void* dy,
                                             const cudnnConvolutionDescriptor_t convd,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
                                             std::size_t bytes, const void*, const cudnnFilterDescriptor_t fd,
                                             void* df) {
  if (bytes < workspace_of(algorithm)) return CUDNN_STATUS_BAD_PARAM;
  if (!can_run(handle->stream, algorithm)) return CUDNN_STATUS_EXECUTION_FAILED;
  enqueue(handle->stream, [=, xs = *xd, fs = *fd, conv = *convd, ys = *yd] {
    use(workspace, algorithm);
    std::vector<double> sums(size_of(fs));
    each_product(xs, fs, conv, ys,
                 [&](std::size_t i, std::size_t j, std::size_t o) { sums[j] += read(ys, dy, o) * read(xs, x, i); });
    store(fs, sums, df);
  });
  return checked(*xd, *fd, *convd, *yd);
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(cudnnHandle_t handle, cudnnBatchNormMode_t, const void*,
                                                     const void*, const cudnnTensorDescriptor_t xd, const void* x,
                                                     const cudnnTensorDescriptor_t, void* y,
                                                     const cudnnTensorDescriptor_t, const void* gamma, const void* beta,
                                                     double factor, void* running_mean, void* running_variance,
                                                     double epsilon, void* saved_mean, void* saved_inverse) {
  enqueue(handle->stream, [=, shape = *xd] {
    const std::size_t pixels = static_cast<std::size_t>(shape.h) * shape.w;
    const auto at = [&](int n, int c) { return (static_cast<std::size_t>(n) * shape.c + c) * pixels; };
    const double count = static_cast<double>(pixels) * shape.n;
    const auto* const from = static_cast<const float*>(x);
    for (int c = 0; c < shape.c; ++c) {
      double sum = 0, squares = 0;
      for (int n = 0; n < shape.n; ++n)
        for (std::size_t i = 0; i < pixels; ++i) sum += from[at(n, c) + i];
      const double mean = sum / count;
      for (int n = 0; n < shape.n; ++n)
        for (std::size_t i = 0; i < pixels; ++i) squares += (from[at(n, c) + i] - mean) * (from[at(n, c) + i] - mean);
      const double inverse = 1 / std::sqrt(squares / count + epsilon);
      for (int n = 0; n < shape.n; ++n)
        for (std::size_t i = 0; i < pixels; ++i)
          static_cast<float*>(y)[at(n, c) + i] =
              static_cast<float>(static_cast<const float*>(gamma)[c] * (from[at(n, c) + i] - mean) * inverse +
                                 static_cast<const float*>(beta)[c]);
      const auto follow = [&](void* running, double value) {
        float& one = static_cast<float*>(running)[c];
        one = static_cast<float>(value * factor + one * (1 - factor));
      };
      follow(running_mean, mean);
      follow(running_variance, squares / (count - 1));
      static_cast<float*>(saved_mean)[c] = static_cast<float>(mean);
      static_cast<float*>(saved_inverse)[c] = static_cast<float>(inverse);
    }
  });
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBatchNormalizationForwardInference(cudnnHandle_t handle, cudnnBatchNormMode_t, const void*,
                                                      const void*, const cudnnTensorDescriptor_t xd, const void* x,
                                                      const cudnnTensorDescriptor_t, void* y,
                                                      const cudnnTensorDescriptor_t, const void* gamma,
                                                      const void* beta, const void* mean, const void* variance,
                                                      double epsilon) {
  if (x == y) return CUDNN_STATUS_BAD_PARAM;
  enqueue(handle->stream, [=, shape = *xd] {
    const std::size_t pixels = static_cast<std::size_t>(shape.h) * shape.w;
    for (std::size_t i = 0; i < size_of(shape); ++i) {
      const std::size_t c = i / pixels % static_cast<std::size_t>(shape.c);
      static_cast<float*>(y)[i] = static_cast<float>(
          static_cast<const float*>(gamma)[c] * (static_cast<const float*>(x)[i] - static_cast<const float*>(mean)[c]) /
              std::sqrt(static_cast<const float*>(variance)[c] + epsilon) +
          static_cast<const float*>(beta)[c]);
    }
  });
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBatchNormalizationBackward(cudnnHandle_t handle, cudnnBatchNormMode_t, const void*, const void*,
                                              const void*, const void*, const cudnnTensorDescriptor_t xd, const void* x,
                                              const cudnnTensorDescriptor_t, const void* dy,
                                              const cudnnTensorDescriptor_t, void* dx, const cudnnTensorDescriptor_t,
                                              const void* gamma, void* dgamma, void* dbeta, double,
                                              const void* saved_mean, const void* saved_inverse) {
  enqueue(handle->stream, [=, shape = *xd] {
    const std::size_t pixels = static_cast<std::size_t>(shape.h) * shape.w;
    const double count = static_cast<double>(pixels) * shape.n;
    const auto *const from = static_cast<const float*>(x), *const back = static_cast<const float*>(dy);
    for (int c = 0; c < shape.c; ++c) {
      const double mean = static_cast<const float*>(saved_mean)[c],
                   inverse = static_cast<const float*>(saved_inverse)[c];
      double sum = 0, products = 0;
      const auto each = [&](const auto& take) {
        for (int n = 0; n < shape.n; ++n)
          for (std::size_t p = 0; p < pixels; ++p) take((static_cast<std::size_t>(n) * shape.c + c) * pixels + p);
      };
      each([&](std::size_t i) {
        sum += back[i];
        products += back[i] * (from[i] - mean) * inverse;
      });
      each([&](std::size_t i) {
        static_cast<float*>(dx)[i] =
            static_cast<float>(static_cast<const float*>(gamma)[c] * inverse *
                               (back[i] - sum / count - (from[i] - mean) * inverse * products / count));
      });
      static_cast<float*>(dgamma)[c] = static_cast<float>(products);
      static_cast<float*>(dbeta)[c] = static_cast<float>(sum);
    }
  });
  return CUDNN_STATUS_SUCCESS;
}
}
