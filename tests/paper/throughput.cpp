// Figure 5: training speed of the paper's two clusters, float32 and ternary, by the function that `plan` asks. A CSV.
//
// One member a node of four GPUs, as here: they share the node's link, and what they do among themselves takes no time.
// The paper counts its GPUs as members and does not print their speeds; these are others' measurements of the same
// cards, as near in time as could be found. A network that was not measured on a card is not in the table, but for
// VGG-A: VGG-16's by the operations. Float32 is a ring that begins when forward has ended, and costs only its bits (the
// paper's: a parameter server). The codes are made and coded on 16 cores of a server of 2020
// (daemon/forecast/forecast.cpp).
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/forecast/forecast.h"
#include "daemon/membership/choose_exchange.h"

namespace {

using namespace tg;
using namespace tg::daemon;

constexpr double kGpusOfANode = 4;
constexpr double kVggShare =
    7.61 / 15.47;  // times VGG-16's multiplications, G a sample (Simonyan and Zisserman's layers)

struct Network {
  ModelKind model;
  std::uint64_t batch_of_a_gpu;  // the paper's
  double zeros;  // share of its codes with c = 2.5: measured by this project for a Gaussian gradient, and 0.713 by the
                 // paper
};

struct Cluster {
  std::string name;
  double line_mbps;
  std::map<ModelKind, std::pair<double, std::string>> seconds;  // for a sample on one GPU, and the source
};

std::vector<Cluster> clusters() {
  const std::string torch = "github.com/jcjohnson/cnn-benchmarks: Torch, cuDNN 5.0, 16 samples";
  const std::string tensorflow = "tensorflow.org/performance/benchmarks, May 2017: DGX-1, one P100";
  return {{"4 GTX 1080 a node, 1 Gbit/s",
           1'000,
           {{ModelKind::kAlexnet, {23.18e-3 / 16, torch}},
            {ModelKind::kVggA, {232.55e-3 / 16 * kVggShare, torch + "; VGG-16's by the operations"}}}},
          {"4 P100 a node, 100 Gbit/s",
           100'000,
           {{ModelKind::kAlexnet, {1 / 2987.0, tensorflow + ", 512 samples"}},
            {ModelKind::kGooglenet, {1 / 468.0, "Dell HPC, October 2016: NV-Caffe, one P100, 128 samples"}},
            {ModelKind::kVggA, {1 / 144.0 * kVggShare, tensorflow + ", 32 samples; VGG-16's by the operations"}}}}};
}

}  // namespace

int main() {
  const std::vector<Network> networks = {
      {ModelKind::kAlexnet, 128, 0.713}, {ModelKind::kGooglenet, 64, 0.68}, {ModelKind::kVggA, 32, 0.68}};
  std::puts(
      "cluster,network,gpus,float32 samples/s,ternary samples/s,ternary/float32,float32 ms,ternary ms,compute ms,last "
      "layer,source");
  for (const Cluster& cluster : clusters())
    for (const Network& network : networks) {
      const auto measured = cluster.seconds.find(network.model);
      if (measured == cluster.seconds.end()) continue;
      for (const auto last_layer : {schema::GradientFormat::kFloat32, schema::GradientFormat::kTernary})
        for (std::size_t nodes = 1; nodes <= 128; nodes *= 2) {
          schema::JobSpec job;
          job.model = network.model;
          job.last_layer = last_layer;
          job.global_batch = network.batch_of_a_gpu * static_cast<std::uint64_t>(kGpusOfANode) * nodes;
          const engine::Model model = engine::make_model(network.model);
          StepQuestion question{model, job, nodes};
          question.sample_seconds = measured->second.first / kGpusOfANode;
          question.threads = question.cores = 16;
          question.on_device = true;
          question.payload_mbps = cluster.line_mbps * kPayloadShare;
          question.zeros = network.zeros;
          schema::Commit choice = choice_of(question);
          choice.coding = schema::Coding::kEntropy;
          choice.exchange = schema::ExchangeKind::kDirect;
          const schema::Outcome direct = predict_step(question, choice);
          choice.exchange = schema::ExchangeKind::kSharded;
          const schema::Outcome sharded = predict_step(question, choice);
          const schema::Outcome& ternary = sharded.step < direct.step ? sharded : direct;
          const double copies = 2 * (1 - 1 / static_cast<double>(nodes));
          const double sending =
              copies * 32 * static_cast<double>(model.segments.parameter_count()) / (question.payload_mbps * 1e6);
          const double ring = std::max(direct.compute, direct.compute / 3 + sending);
          const double batch = static_cast<double>(job.global_batch);
          std::printf("%s,%s,%zu,%.0f,%.0f,%.2f,%.1f,%.1f,%.1f,%s,%s\n", ("\"" + cluster.name + "\"").c_str(),
                      model.name.c_str(), nodes * static_cast<std::size_t>(kGpusOfANode), batch / ring,
                      batch / ternary.step, ring / ternary.step, 1e3 * ring, 1e3 * ternary.step, 1e3 * direct.compute,
                      std::string(to_word(last_layer)).c_str(), ("\"" + measured->second.second + "\"").c_str());
        }
    }
  return 0;
}
