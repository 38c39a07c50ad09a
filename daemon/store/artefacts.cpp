#include "daemon/store/artefacts.h"

#include "engine/storage/safetensors.h"

namespace tg::daemon {

Status write_artefacts(const std::string& directory, const engine::SegmentTable& segments, const Replica& replica,
                       const std::map<std::string, std::string>& metadata) {
  const auto tensors = [&](kernels::ConstFloats array, const std::string& suffix = "") {
    return engine::tensors_of(
        segments,
        [&replica, array](std::size_t first, std::span<float> values) { replica.copy_out(array, first, values); },
        suffix);
  };
  const auto average = tensors(replica.average());
  if (Status s = engine::write_safetensors(directory + "/model.safetensors", average, metadata); !s.ok()) return s;
  auto state = tensors(replica.parameters());
  if (Status s = engine::write_safetensors(directory + "/model-raw.safetensors", state, metadata); !s.ok()) return s;
  for (int slot = 0; slot < replica.slot_count(); ++slot)
    for (auto& tensor : tensors(replica.slot(slot), ".slot" + std::to_string(slot))) state.push_back(std::move(tensor));
  return engine::write_safetensors(directory + "/state.safetensors", state, metadata);
}

}  // namespace tg::daemon
