// No operation of a model falls to one of oneDNN's reference implementations, which are up to 100 x slower: on the
// instruction set that ONEDNN_MAX_CPU_ISA allows. CMakeLists.txt repeats these tests with each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "engine/cpu/cpu_engine.h"
#include "kernels/kernels.h"

namespace tg::engine {
namespace {

struct ModelBatch {
  int threads, batch, evaluation_batch;
};

void PrintTo(const ModelBatch& value, std::ostream* out) {
  *out << value.threads << " threads, batch " << value.batch << ", evaluation batch " << value.evaluation_batch;
}

class Implementations : public testing::TestWithParam<ModelBatch> {};

void expect_no_references(const cpu::CpuEngine& engine, const std::string& model) {
  EXPECT_GT(engine.implementations().size(), 10u) << model;
  for (const std::string& each : engine.implementations()) {  // "conv1 forward: brgconv:avx512_core"
    const std::string implementation = each.substr(each.rfind(": ") + 2);
    for (const char* slow : {"ref", "simple"})
      EXPECT_EQ(implementation.find(slow), std::string::npos) << model << ", " << engine.build() << ", " << each;
  }
}

TEST_P(Implementations, AreNoReferences) {
  const auto& [threads, batch, evaluation_batch] = GetParam();
  for (const ModelKind kind : {ModelKind::kLenet, ModelKind::kCifarnet})
    expect_no_references(cpu::CpuEngine(make_model(kind), {threads, batch, evaluation_batch}), to_word(kind));
}

// The larger networks, whose activations would fill this machine in such batches.
TEST(ImplementationsOfLargeModels, AreNoReferences) {
  for (const ModelKind kind : values_of<ModelKind>()) {
    const Model model = make_model(kind);
    expect_no_references(cpu::CpuEngine(model, {2, 2, 1}), model.name);
  }
}

// The batches of deploy/jobs and of a member among four, and awkward ones.
INSTANTIATE_TEST_SUITE_P(Batches, Implementations,
                         testing::Values(ModelBatch{1, 64, 250}, ModelBatch{2, 128, 250}, ModelBatch{1, 16, 1},
                                         ModelBatch{2, 32, 2}, ModelBatch{1, 1, 1}, ModelBatch{2, 1, 7},
                                         ModelBatch{1, 7, 3}),
                         [](const testing::TestParamInfo<ModelBatch>& each) {
                           return "batch_" + std::to_string(each.param.batch) + "_threads_" +
                                  std::to_string(each.param.threads);
                         });

// The tests above prove nothing about an instruction set that did not run.
TEST(InstructionSet, IsTheOneAskedFor) {
  const char* const limit = std::getenv("ONEDNN_MAX_CPU_ISA");
  const std::string asked = limit == nullptr ? "DEFAULT" : limit;
  const auto& variants = kernels::available();
  const bool has_avx512 =
      std::any_of(variants.begin(), variants.end(), [](const auto* v) { return v->name == "avx512"; });
  if (asked == "AVX512_CORE" && !has_avx512) GTEST_SKIP() << "this processor has no AVX-512";
  const auto engine = make_cpu_engine(make_model(ModelKind::kLenet), {});
  ASSERT_TRUE(engine.ok());
  const std::string build = (*engine)->build();
  if (asked == "AVX2" || !has_avx512) {
    EXPECT_NE(build.find(" avx2"), std::string::npos) << build;
    EXPECT_EQ(build.find("avx512"), std::string::npos) << build;
  } else {
    EXPECT_NE(build.find(" avx512_core"), std::string::npos) << build;
  }
}

}  // namespace
}  // namespace tg::engine
