#include "engine/data/digits/digits.h"
#include "engine/data/files/cifar.h"
#include "engine/data/files/idx.h"
#include "engine/dataset.h"

namespace tg::engine {
namespace {

Result<Dataset> load(const DatasetOptions& options) {
  if (options.name == "synthetic") return make_digits(options);
  if (options.name == "mnist") return load_mnist(options.directory);
  if (options.name == "cifar10") return load_cifar10(options.directory);
  std::string known;
  for (const std::string& name : dataset_names()) known += (known.empty() ? "" : ", ") + name;
  return Error{ErrorKind::kInvalidJob, "data = " + options.name + " is unknown; known are " + known};
}

}  // namespace

const std::vector<std::string>& dataset_names() {
  static const std::vector<std::string> names = {"synthetic", "mnist", "cifar10"};
  return names;
}

Result<std::shared_ptr<const Dataset>> load_dataset(const DatasetOptions& options) {
  try {
    auto data = load(options);
    if (!data) return data.error();
    return std::shared_ptr<const Dataset>(std::make_shared<Dataset>(*std::move(data)));
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::kFailed,
                 "not enough memory to hold data = " + options.name + "; free some or choose a smaller set"};
  }
}

}  // namespace tg::engine
