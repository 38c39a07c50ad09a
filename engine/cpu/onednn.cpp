#include "engine/cpu/onednn.h"

#include <algorithm>
#include <utility>

namespace tg::engine::cpu {
namespace {

const char* isa_name(dnnl::cpu_isa isa) {
  static constexpr std::pair<dnnl::cpu_isa, const char*> kNames[] = {
      {dnnl::cpu_isa::sse41, "sse41"},
      {dnnl::cpu_isa::avx, "avx"},
      {dnnl::cpu_isa::avx2, "avx2"},
      {dnnl::cpu_isa::avx2_vnni, "avx2_vnni"},
      {dnnl::cpu_isa::avx512_core, "avx512_core"},
      {dnnl::cpu_isa::avx512_core_vnni, "avx512_core_vnni"},
      {dnnl::cpu_isa::avx512_core_bf16, "avx512_core_bf16"},
      {dnnl::cpu_isa::avx512_core_amx, "avx512_core_amx"},
  };
  for (const auto& [known, name] : kNames)
    if (isa == known) return name;
  return "other";
}

}  // namespace

Library::Library()
    : engine_(checked("engine creation", [] { return dnnl::engine(dnnl::engine::kind::cpu, 0); })),
      stream_(checked("stream creation", [this] { return dnnl::stream(engine_); })) {}

dnnl::memory Library::allocate(const dnnl::memory::desc& desc) const {
  return checked("allocation of " + std::to_string(desc.get_size()) + " bytes",
                 [&] { return dnnl::memory(desc, engine_); });
}

dnnl::memory Library::view(const dnnl::memory::desc& desc) const {
  return checked("creation of a view", [&] { return dnnl::memory(desc, engine_, nullptr); });
}

dnnl::memory Library::scratchpad(const dnnl::memory::desc& desc) {
  scratchpads_.push_back(view(desc));
  return scratchpads_.back();
}

std::size_t Library::scratchpad_bytes() const {
  std::size_t bytes = 0;
  for (const dnnl::memory& each : scratchpads_) bytes = std::max(bytes, each.get_desc().get_size());
  return bytes;
}

void Library::allocate_scratchpad() {
  scratch_ = AlignedArray<std::byte>(scratchpad_bytes());
  for (dnnl::memory& each : scratchpads_) point(each, scratch_.data());
}

void Library::note_implementation(const std::string& operation, const char* implementation) {
  implementations_.push_back(operation + ": " + implementation);
}

void point(dnnl::memory& view, const void* values) {
  checked("binding of a view", [&] { view.set_data_handle(const_cast<void*>(values)); });
}

std::string library_version() {
  const dnnl_version_t* version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch) + " " + isa_name(dnnl::get_effective_cpu_isa());
}

dnnl::primitive_attr attributes() {
  return checked("creation of attributes", [] {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
  });
}

dnnl::primitive_attr attributes_with_relu() {
  return checked("creation of attributes", [] {
    dnnl::post_ops relu;
    relu.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
    dnnl::primitive_attr attributes = cpu::attributes();
    attributes.set_post_ops(relu);
    return attributes;
  });
}

Operation Operation::make_reorder(Library& library, const std::string& name, const dnnl::memory& from,
                                  const dnnl::memory& to) {
  const auto description = checked("choice of " + name, [&] {
    return dnnl::reorder::primitive_desc(library.engine(), from.get_desc(), library.engine(), to.get_desc(),
                                         attributes());
  });
  return make<dnnl::reorder>(library, name, description, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

}  // namespace tg::engine::cpu
