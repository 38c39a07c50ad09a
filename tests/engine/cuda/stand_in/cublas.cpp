// cuBLASLt's calls that the engine makes: a product by its definition, sums in double.
#include <cublasLt.h>

#include <algorithm>
#include <cstring>

#include "engine/cuda/operators/bodies/bf16.h"
#include "tests/engine/cuda/stand_in/device.h"

struct cublasLtContext {};

namespace {

// What an attribute was set to.
template <class Value>
Value get(const cublasLtMatmulDescOpaque_t& product, cublasLtMatmulDescAttributes_t attribute) {
  Value value{};
  std::memcpy(&value, &product.data[attribute], sizeof value);
  return value;
}

struct Layout {
  std::size_t rows, columns, stride;
  cudaDataType type;
  explicit Layout(const cublasLtMatrixLayoutOpaque_t& layout)
      : rows(layout.data[0]),
        columns(layout.data[1]),
        stride(layout.data[2]),
        type(static_cast<cudaDataType>(layout.data[3])) {}

  double read(const void* from, std::size_t i) const {
    using namespace tg::engine::cuda;
    return type == CUDA_R_32F ? static_cast<const float*>(from)[i]
                              : bodies::to_float(static_cast<const Bf16*>(from)[i]);
  }
};

// One algorithm needs no workspace.
constexpr std::size_t kWorkspace = 4096;
constexpr std::uint64_t kWithout = 0x30;

}  // namespace

extern "C" {

std::size_t cublasLtGetVersion() { return 130100; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "?"; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t stride) {
  *layout = new cublasLtMatrixLayoutOpaque_t{};
  (*layout)->data[0] = rows;
  (*layout)->data[1] = columns;
  (*layout)->data[2] = static_cast<std::uint64_t>(stride);
  (*layout)->data[3] = static_cast<std::uint64_t>(type);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t math, cudaDataType) {
  *product = new cublasLtMatmulDescOpaque_t{};
  const bool right =
      math == CUBLAS_COMPUTE_32F || (math == CUBLAS_COMPUTE_32F_FAST_TF32 && !tg::engine::cuda::stand_in::strict());
  return right ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  delete product;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  std::memcpy(&product->data[attribute], value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t{};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) std::memcpy(preference->data, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t* found, int* count) {
  if (preference->data[0] < kWorkspace) {
    *count = 1;
    found[0] = {};
    found[0].algo.data[0] = kWithout;
    return CUBLAS_STATUS_SUCCESS;
  }
  *count = 2;
  for (int i = 0; i < *count; ++i) {
    found[i] = {};
    found[i].algo.data[0] = static_cast<std::uint64_t>(0x2a + i);
    found[i].algo.data[2] = 7;
    found[i].workspaceSize = kWorkspace;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void*, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void*, const void*, cublasLtMatrixLayout_t, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t bytes, cudaStream_t stream) {
  const Layout as(*a_layout), bs(*b_layout), ds(*d_layout);
  const bool at = get<cublasOperation_t>(*product, CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T;
  const bool bt = get<cublasOperation_t>(*product, CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_T;
  const int epilogue = get<cublasLtEpilogue_t>(*product, CUBLASLT_MATMUL_DESC_EPILOGUE);
  const auto* const bias = (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0
                               ? get<const float*>(*product, CUBLASLT_MATMUL_DESC_BIAS_POINTER)
                               : nullptr;
  const std::size_t inner = at ? as.rows : as.columns;
  if (inner != (bt ? bs.columns : bs.rows) || ds.rows != (at ? as.columns : as.rows) ||
      ds.columns != (bt ? bs.rows : bs.columns) || as.type != bs.type || ds.type != CUDA_R_32F)
    return CUBLAS_STATUS_INVALID_VALUE;
  const std::size_t used = algorithm->data[0] == kWithout ? 0 : kWorkspace;
  if (bytes < used || (as.type != CUDA_R_32F && tg::engine::cuda::stand_in::strict()))
    return CUBLAS_STATUS_INVALID_VALUE;
  tg::engine::cuda::stand_in::enqueue(stream, [=] {
    if (used > 0) std::memset(workspace, 0xff, used);  // no factor lies there
    for (std::size_t c = 0; c < ds.columns; ++c)
      for (std::size_t r = 0; r < ds.rows; ++r) {
        double sum = 0;
        for (std::size_t k = 0; k < inner; ++k)
          sum += as.read(a, at ? r * as.stride + k : k * as.stride + r) *
                 bs.read(b, bt ? k * bs.stride + c : c * bs.stride + k);
        if (bias != nullptr) sum += bias[r];
        if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0) sum = std::max(sum, 0.0);
        static_cast<float*>(d)[c * ds.stride + r] = static_cast<float>(sum);
      }
  });
  return CUBLAS_STATUS_SUCCESS;
}
}
