#include "ctl/models/model_table.h"

namespace tg::ctl {
namespace {

constexpr std::array<ModelRow, values_of<ModelKind>().size()> kRows = {{
    {ModelKind::kLenet, 1, 28, 28, 1, 1'256'080, 13'044'000, "the TernGrad paper's LeNet, SAME padding"},
    {ModelKind::kCifarnet, 3, 24, 24, 1, 1'068'298, 36'941'568,
     "the TernGrad paper's CifarNet, of TensorFlow's tutorial"},
    {ModelKind::kGooglenet, 3, 224, 224, 31, 13'004'888, 3'013'496'832,
     "torchvision's googlenet, with two auxiliary heads"},
    {ModelKind::kAlexnet, 3, 224, 224, 63, 61'100'840, 1'428'376'960, "torchvision's alexnet"},
    {ModelKind::kVggA, 3, 224, 224, 32, 132'863'336, 15'218'180'096, "torchvision's vgg11"},
    {ModelKind::kAlexnetTwoColumn, 3, 224, 224, 57, 60'969'321, 1'456'558'080,
     "the TernGrad paper's AlexNet, with LRN and batch norm"},
    {ModelKind::kGooglenetSlim, 3, 224, 224, 1, 6'618'649, 2'996'754'432,
     "the TernGrad paper's GoogLeNet, of TensorFlow's slim"},
    {ModelKind::kResnet18, 3, 224, 224, 1, 11'689'512, 3'628'146'688, "torchvision's resnet18"},
    {ModelKind::kResnet20, 3, 32, 32, 1, 272'474, 81'626'368,
     "He et al.'s ResNet for CIFAR-10, with projections (option B)"},
    {ModelKind::kResnet50, 3, 224, 224, 1, 25'557'032, 8'178'368'512, "torchvision's resnet50"},
    {ModelKind::kMlp, 1, 28, 28, 1, 235'146, 469'504, "dense layers with ReLU between them, hidden = 256,128"},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<std::size_t>(kRows[i].kind) != i) return false;
  return true;
}
static_assert(in_order());

}  // namespace

const std::array<ModelRow, values_of<ModelKind>().size()>& model_rows() { return kRows; }

}  // namespace tg::ctl
