#include <algorithm>
#include <array>
#include <cstdio>
#include <tuple>
#include <utility>

#include "engine/cuda/operators/layout.h"
#include "engine/cuda/stages/stage.h"
#include "kernels/base/aligned_array.h"

namespace tg::engine::cuda {
namespace {

constexpr float kOne = 1, kZero = 0;
constexpr int kMaxAlgorithms = 8;                 // requested from the heuristic
constexpr std::size_t kMaxWorkspace = 32u << 20;  // bytes: a product that splits its sums needs no more
constexpr std::uint32_t kAlignment =
    kCacheLine;  // bytes: the alignment of a memory space's arrays (kernels/memory_space.h)

template <class Owner, class Create, class... Arguments>
Owner make_owned(const Create& create, Arguments... arguments) {
  typename Owner::pointer made = nullptr;
  TG_CUBLAS(create(&made, arguments...));
  return Owner(made);
}

// A cublasLtMatmulAlgo_t in hexadecimal, as many words as it uses.
std::string text_of(const cublasLtMatmulAlgo_t& algorithm) {
  std::size_t words = std::size(algorithm.data);
  while (words > 1 && algorithm.data[words - 1] == 0) --words;
  std::string text = "algorithm";
  for (std::size_t i = 0; i < words; ++i) {
    char word[24];
    std::snprintf(word, sizeof word, "%c%llx", i == 0 ? ' ' : '-', static_cast<unsigned long long>(algorithm.data[i]));
    text += word;
  }
  return text;
}

// cuBLASLt counts columns first: to it, a row-major matrix of r x c is a transposed one of c x r.
struct Matrix {
  std::uint64_t rows, columns;  // as cuBLASLt counts
  bool transposed;
};

struct Operands {
  const float *a, *b;
  float* d;
  const float* bias = nullptr;  // for d's rows, if the epilogue adds it
};

// d = a * b, with an epilogue: one product of fixed shapes. Factors in bf16 are rounded into the library's workspace,
// before what the algorithm needs there; d and its bias are float32.
class Calls {
 public:
  Calls(const Library& library, cudaDataType factors, const Matrix& a, const Matrix& b, cublasLtEpilogue_t epilogue)
      : library_(library),
        rounded_(factors == CUDA_R_16BF),
        a_count_(a.rows * a.columns),
        b_count_(b.rows * b.columns),
        b_offset_(rounded_ ? rounded_bytes(a_count_) : 0),
        factor_bytes_(rounded_ ? b_offset_ + rounded_bytes(b_count_) : 0),
        epilogue_(epilogue),
        product_(make_owned<MatrixProduct>(cublasLtMatmulDescCreate,
                                           rounded_ ? CUBLAS_COMPUTE_32F : library.product_math(), CUDA_R_32F)),
        a_(make_layout(factors, a.rows, a.columns)),
        b_(make_layout(factors, b.rows, b.columns)),
        d_(make_layout(CUDA_R_32F, a.transposed ? a.columns : a.rows, b.transposed ? b.rows : b.columns)) {
    set(CUBLASLT_MATMUL_DESC_TRANSA, a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  }

  using Found = cublasLtMatmulHeuristicResult_t;
  std::string name(const Found& found) const { return (rounded_ ? "bf16 " : "") + text_of(found.algo); }
  std::size_t workspace(const Found& found) const { return factor_bytes_ + found.workspaceSize; }

  // The deterministic algorithms. If most_workspace is less than the library would take, its choice for that follows
  // those for the full size, so that an algorithm chosen with more is still known.
  std::vector<Found> find(const Operands& operands, std::size_t most_workspace) const {
    std::vector<Found> found = find_within(operands, kMaxWorkspace);
    if (most_workspace >= factor_bytes_ + kMaxWorkspace || most_workspace < factor_bytes_) return found;
    for (const Found& each : find_within(operands, most_workspace - factor_bytes_))
      if (std::none_of(found.begin(), found.end(), [&](const Found& one) { return name(one) == name(each); }))
        found.push_back(each);
    return found;
  }

  void run(const cublasLtMatmulAlgo_t& algorithm, const Operands& operands) const {
    bind_bias(operands);
    auto* const workspace = static_cast<std::byte*>(library_.workspace());
    const void *a = operands.a, *b = operands.b;
    if (rounded_) {
      a = rounded(a_count_, operands.a, workspace);
      b = rounded(b_count_, operands.b, workspace + b_offset_);
    }
    TG_CUBLAS(cublasLtMatmul(library_.cublas(), product_.get(), &kOne, a, a_.get(), b, b_.get(), &kZero, operands.d,
                             d_.get(), operands.d, d_.get(), &algorithm, workspace + factor_bytes_,
                             library_.workspace_bytes() - factor_bytes_, library_.compute()));
  }

 private:
  static std::size_t rounded_bytes(std::uint64_t count) {
    return (count * sizeof(Bf16) + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
  }
  const void* rounded(std::uint64_t count, const float* from, std::byte* to) const {
    round_to_bf16(count, from, reinterpret_cast<Bf16*>(to), library_.compute());
    return to;
  }
  static MatrixLayout make_layout(cudaDataType type, std::uint64_t rows, std::uint64_t columns) {
    return make_owned<MatrixLayout>(cublasLtMatrixLayoutCreate, type, rows, columns, static_cast<std::int64_t>(rows));
  }
  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) const {
    TG_CUBLAS(cublasLtMatmulDescSetAttribute(product_.get(), attribute, &value, sizeof value));
  }
  void bind_bias(const Operands& operands) const {
    if ((epilogue_ & CUBLASLT_EPILOGUE_BIAS) != 0) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  }

  // Parts of split sums are added in a separate step, not in the order of arrival, so that results repeat.
  std::vector<Found> find_within(const Operands& operands, std::size_t workspace) const {
    bind_bias(operands);  // the heuristic checks its alignment
    const auto preference = make_owned<MatrixPreference>(cublasLtMatmulPreferenceCreate);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      TG_CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value));
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace));
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE));
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(attribute, kAlignment);
    std::vector<Found> found(kMaxAlgorithms);
    int count = 0;
    const cublasStatus_t result =
        cublasLtMatmulAlgoGetHeuristic(library_.cublas(), product_.get(), a_.get(), b_.get(), d_.get(), d_.get(),
                                       preference.get(), kMaxAlgorithms, found.data(), &count);
    if (result == CUBLAS_STATUS_NOT_SUPPORTED) return {};  // none for these factors, or with so little workspace
    require_success(result, "cublasLtMatmulAlgoGetHeuristic");
    found.resize(static_cast<std::size_t>(count));
    std::erase_if(found, [](const auto& each) { return each.state != CUBLAS_STATUS_SUCCESS; });
    return found;
  }

  const Library& library_;
  const bool rounded_;
  const std::uint64_t a_count_, b_count_;
  const std::size_t b_offset_, factor_bytes_;
  const cublasLtEpilogue_t epilogue_;
  MatrixProduct product_;
  MatrixLayout a_, b_, d_;
};

// A product with its algorithm and the type of factors that the algorithm takes.
class Product {
 public:
  Product(const Library& library, const Matrix& a, const Matrix& b, cublasLtEpilogue_t epilogue) {
    forms_.emplace_back(library, CUDA_R_32F, a, b, epilogue);
    if (library.math() == Math::kBf16) forms_.emplace_back(library, CUDA_R_16BF, a, b, epilogue);
  }

  void choose(Trials& trials, const std::string& name, const Operands& operands) {
    std::vector<std::pair<const Calls*, cublasLtMatmulAlgo_t>> all;
    std::vector<Candidate> candidates;
    for (const Calls& calls : forms_)
      for (const Calls::Found& each : calls.find(operands, trials.most_workspace())) {
        all.emplace_back(&calls, each.algo);
        candidates.push_back({calls.name(each), calls.workspace(each),
                              [&calls, &operands, algorithm = each.algo] { calls.run(algorithm, operands); }});
      }
    std::tie(calls_, algorithm_) = all[trials.choose(name, candidates)];
  }
  void run(const Operands& operands) const { calls_->run(algorithm_, operands); }

 private:
  std::vector<Calls> forms_;
  const Calls* calls_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

cublasLtEpilogue_t epilogue(bool bias, bool relu) {
  if (bias) return relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  return relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
}

// With rows x of n x i, weight W of o x i and rows y of n x o:  y = x W^T,  dW = dy^T x,  dx = dy W.
class DenseStage final : public Stage {
 public:
  DenseStage(const StageContext& context, const Dense& layer)
      : Stage(context),
        name_(context.name()),
        library_(context.library),
        input_(context.inputs[0]),
        output_(context.output),
        planes_(planes_of(context, output_.shape)),
        training_(context.training),
        backward_(context.backward()),
        wanted_(context.wants(0)),
        relu_(context.plan.relu),
        weight_offset_(context.model.segments[layer.weight].offset),
        forward_(library_, {inputs(), outputs(), true}, {inputs(), samples(), false},
                 epilogue(layer.bias.has_value(), relu_)),
        backward_weights_(library_, {inputs(), samples(), false}, {outputs(), samples(), true},
                          CUBLASLT_EPILOGUE_DEFAULT),
        backward_data_(library_, {inputs(), outputs(), false}, {outputs(), samples(), false},
                       CUBLASLT_EPILOGUE_DEFAULT) {
    if (layer.bias) bias_offset_ = context.model.segments[*layer.bias].offset;
    if (backward_ && layer.bias) bias_scratch_ = context.backward_scratch(bias_scratch_floats(planes_) * sizeof(float));
  }

  void choose(Trials& trials) override {
    forward_.choose(trials, name_ + (training_ ? " forward" : " evaluation"),
                    {trials.weight(), input_.value.floats(), output_.value.floats(), trials.bias()});
    if (!backward_) return;
    const float* const dy = output_.gradient.floats();
    backward_weights_.choose(trials, name_ + " backward weights", {input_.value.floats(), dy, trials.weight()});
    if (wanted_)
      backward_data_.choose(trials, name_ + " backward data", {trials.weight(), dy, input_.gradient.floats()});
  }

  void forward(const Pass& pass) override {
    forward_.run({pass.parameters + weight_offset_, input_.value.floats(), output_.value.floats(),
                  bias_offset_ ? pass.parameters + *bias_offset_ : nullptr});
  }

  void backward_parameters(const Pass& /*pass*/, float* gradients) override {
    float* const dy = output_.gradient.floats();
    if (relu_) relu_gradient(planes_.elements(), output_.value.floats(), dy, dy, library_.compute());
    if (bias_offset_) bias_gradient(planes_, dy, bias_scratch_.floats(), gradients + *bias_offset_, library_.compute());
    backward_weights_.run({input_.value.floats(), dy, gradients + weight_offset_});
  }

  void backward_data(const Pass& pass) override {
    if (wanted_)
      backward_data_.run({pass.parameters + weight_offset_, output_.gradient.floats(), input_.gradient.floats()});
  }

 private:
  std::uint64_t samples() const { return planes_.samples; }
  std::uint64_t inputs() const { return static_cast<std::uint64_t>(input_.shape.channels); }
  std::uint64_t outputs() const { return planes_.channels; }

  const std::string name_;
  Library& library_;
  const Activation input_, output_;
  const Planes planes_;
  const bool training_, backward_, wanted_, relu_;
  const std::size_t weight_offset_;
  std::optional<std::size_t> bias_offset_;
  Product forward_, backward_weights_, backward_data_;
  View bias_scratch_;
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const Dense& layer) {
  return std::make_unique<DenseStage>(context, layer);
}

}  // namespace tg::engine::cuda
