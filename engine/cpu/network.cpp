#include "engine/cpu/network.h"

#include <algorithm>

#include "kernels/base/check.h"

namespace tg::engine::cpu {
namespace {

std::span<float> span_of(const dnnl::memory& memory) { return {floats_of(memory), float_count(memory)}; }

}  // namespace

Network::Network(Library& library, const Model& model, const NetworkOptions& options)
    : NetworkOf(library, model, options),
      images_(library.view(row_desc(Cpu::extent(options.batch, model.input).dims()))),
      load_images_(Operation::make_reorder(library, "load of the images", images_, activation(0).value)) {
  make_stages();
  for (const HeadPlan& head : plan_.heads) logits_.push_back(activation(head.logits));
  place_buffers();
}

void Network::forward(const Pass& pass, const float* images, int count, const Engine::SegmentGate& gate) {
  TG_CHECK(count >= 0 && count <= options_.batch, count, options_.batch);
  if (count < options_.batch) {
    const std::size_t used = static_cast<std::size_t>(count) * model_.input.elements();
    if (short_batch_.size() == 0) {
      short_batch_ = AlignedArray<float>(static_cast<std::size_t>(options_.batch) * model_.input.elements());
    }
    std::copy(images, images + used, short_batch_.begin());
    std::fill(short_batch_.begin() + used, short_batch_.end(), 0.0F);
    images = short_batch_.data();
  }
  point(images_, images);
  load_images_.run();
  run_forward(pass, gate);
}

std::span<const float> Network::logits(std::size_t head) const { return span_of(logits_[head].value); }

std::span<float> Network::logits_gradient(std::size_t head) { return span_of(logits_[head].gradient); }

void Network::read_statistics(float* measured) const {
  for (const Running& each : running_)
    if (each.stage != nullptr) each.stage->read_statistics(measured);
}

}  // namespace tg::engine::cpu
