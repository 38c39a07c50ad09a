#include "daemon/store/artefacts.h"

#include "engine/storage/safetensors.h"

namespace tg::daemon {

Status write_artefacts(const std::string& directory, const engine::SegmentTable& segments, const Replica& replica,
                       const std::map<std::string, std::string>& metadata) {
  const auto average = engine::tensors_of(segments, replica.average());
  if (Status s = engine::write_safetensors(directory + "/model.safetensors", average, metadata); !s.ok()) return s;
  const auto raw = engine::tensors_of(segments, replica.parameters());
  if (Status s = engine::write_safetensors(directory + "/model-raw.safetensors", raw, metadata); !s.ok()) return s;
  auto state = engine::tensors_of(segments, replica.parameters());
  for (int slot = 0; slot < replica.slot_count(); ++slot)
    for (auto& tensor : engine::tensors_of(segments, replica.slot(slot), ".slot" + std::to_string(slot)))
      state.push_back(std::move(tensor));
  return engine::write_safetensors(directory + "/state.safetensors", state, metadata);
}

}  // namespace tg::daemon
