#include "daemon/store/artefacts.h"

#include <utility>
#include <vector>

namespace tg::daemon {
namespace {

using engine::TensorImage;
using engine::TensorSource;

Result<TensorImage> image_of(const std::vector<TensorSource>& tensors, std::map<std::string, std::string> metadata) {
  const Result<TensorImage> unmarked = TensorImage::of(tensors, {});
  if (!unmarked) return unmarked.error();
  Result<std::string> hash = unmarked->values_sha256();
  if (!hash) return hash.error();
  metadata[kValuesHash] = *std::move(hash);
  return TensorImage::of(tensors, metadata);
}

}  // namespace

Result<Artefacts> artefacts_of(const engine::SegmentTable& segments, const Replica& replica,
                               const std::map<std::string, std::string>& metadata,
                               const std::function<void()>& advance) {
  const auto tensors = [&](kernels::ConstFloats array, const std::string& suffix = "") {
    return engine::tensors_of(
        segments,
        [&replica, array, advance](std::size_t first, std::span<float> values) -> Status {
          replica.copy_out(array, first, values);
          advance();
          return {};
        },
        suffix);
  };
  const auto add = [](std::vector<TensorSource>& all, std::vector<TensorSource> more) {
    for (TensorSource& tensor : more) all.push_back(std::move(tensor));
  };
  std::vector<TensorSource> state = tensors(replica.parameters());
  for (int slot = 0; slot < replica.slot_count(); ++slot)
    add(state, tensors(replica.slot(slot), ".slot" + std::to_string(slot)));
  if (replica.keeps_average()) add(state, tensors(replica.average(), ".average"));
  Artefacts artefacts;
  for (const auto& [name, sources] :
       {std::pair{kModelFile, tensors(replica.average())}, std::pair{kRawModelFile, tensors(replica.parameters())},
        std::pair{kStateFile, std::move(state)}}) {
    Result<TensorImage> image = image_of(sources, metadata);
    if (!image) return Error{image.error().kind, std::string("cannot make ") + name + ": " + image.error().message};
    artefacts.emplace(name, *std::move(image));
  }
  return artefacts;
}

Result<FileMarks> write_artefacts(const std::string& directory, const Artefacts& artefacts) {
  FileMarks marks;
  for (const auto& [name, image] : artefacts) {
    Result<engine::FileMark> mark = engine::write_image(directory + "/" + name, image);
    if (!mark) return mark.error();
    marks.emplace(name, *std::move(mark));
  }
  return marks;
}

}  // namespace tg::daemon
