#include "engine/data/digits/digits.h"
#include "engine/data/files/array_sets.h"
#include "engine/data/files/cifar.h"
#include "engine/data/files/mnist.h"
#include "engine/data/folder/folder.h"
#include "engine/data/fractals/fractals.h"
#include "engine/dataset.h"

namespace tg::engine {
namespace {

Result<Dataset> load(const DatasetOptions& options) {
  switch (options.kind) {
    case DatasetKind::kSynthetic:
      return make_digits(options);
    case DatasetKind::kMnist:
      return load_mnist(options.directory);
    case DatasetKind::kCifar10:
    case DatasetKind::kCifar100:
      return load_cifar(options.kind, options.directory);
    case DatasetKind::kFolder:
      return load_folder(options);
    case DatasetKind::kIdx:
    case DatasetKind::kNpy:
      return load_arrays(options);
    case DatasetKind::kFractals:
      return make_fractals(options);
  }
  TG_CHECK(false, static_cast<int>(options.kind));
}

}  // namespace

std::optional<SetShape> known_shape(const DatasetOptions& options) {
  switch (options.kind) {
    case DatasetKind::kSynthetic:
    case DatasetKind::kMnist:
      return SetShape{{1, 28, 28}, 10};
    case DatasetKind::kCifar10:
      return SetShape{{3, 32, 32}, 10};
    case DatasetKind::kCifar100:
      return SetShape{{3, 32, 32}, 100};
    case DatasetKind::kFractals: {
      const int side = options.size != 0 ? options.size : kFractalSize;
      return SetShape{{3, side, side}, options.classes != 0 ? options.classes : kFractalClasses};
    }
    case DatasetKind::kFolder:
    case DatasetKind::kIdx:
    case DatasetKind::kNpy:
      return std::nullopt;
  }
  TG_CHECK(false, static_cast<int>(options.kind));
}

Result<std::shared_ptr<const Dataset>> load_dataset(const DatasetOptions& options) {
  try {
    auto data = load(options);
    if (!data) return data.error();
    data->files.set_samples(data->train.count(), data->test.count());
    return std::shared_ptr<const Dataset>(std::make_shared<Dataset>(*std::move(data)));
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::kFailed, std::string("not enough memory to hold data = ") + to_word(options.kind) +
                                         "; free some or choose a smaller set"};
  }
}

}  // namespace tg::engine
