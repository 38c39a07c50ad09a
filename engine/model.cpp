#include "engine/model.h"

#include "engine/models/builder.h"

namespace tg::engine {

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names = {"lenet", "cifarnet"};
  return names;
}

Result<Model> make_model(std::string_view name) {
  if (name == "lenet") return make_lenet();
  if (name == "cifarnet") return make_cifarnet();
  std::string known;
  for (const std::string& each : model_names()) known += (known.empty() ? "" : ", ") + each;
  return Error{ErrorKind::kInvalidJob, "unknown model '" + std::string(name) + "'; known models: " + known};
}

}  // namespace tg::engine
