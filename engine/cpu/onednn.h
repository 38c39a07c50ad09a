// The one form in which oneDNN is called: a failing call is named, and dnnl::error ends here as std::runtime_error.
//
// A Library owns oneDNN's engine and stream and the one scratch buffer that all its operations share: they run one
// after another, on the thread that calls. Not thread-safe.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/base/aligned_array.h"

namespace tg::engine::cpu {

template <class Call>
decltype(auto) checked(const std::string& name, Call&& call) {
  try {
    return call();
  } catch (const dnnl::error& e) {
    throw std::runtime_error("oneDNN failed at " + name + ": " + e.what() + " (status " + std::to_string(e.status) +
                             ")");
  }
}

using Arguments = std::unordered_map<int, dnnl::memory>;

class Library {
 public:
  Library();

  const dnnl::engine& engine() const { return engine_; }
  const dnnl::stream& stream() const { return stream_; }

  dnnl::memory allocate(const dnnl::memory::desc& desc) const;
  // A view of the caller's memory, bound before use by point().
  dnnl::memory view(const dnnl::memory::desc& desc) const;

  // Every operation's scratch memory; allocate_scratchpad, called once after the last operation, allocates it.
  dnnl::memory scratchpad(const dnnl::memory::desc& desc);
  void allocate_scratchpad();
  std::size_t scratchpad_bytes() const;  // needed by all operations so far, even before it is allocated

  // "conv1 forward: brgconv:avx512_core", in the order of construction.
  void note_implementation(const std::string& operation, const char* implementation);
  const std::vector<std::string>& implementations() const { return implementations_; }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> scratchpads_;
  AlignedArray<std::byte> scratch_;
  std::vector<std::string> implementations_;
};

// Binds a view to the caller's values. oneDNN's type is not const; nothing writes through a view of parameters or
// images.
void point(dnnl::memory& view, const void* values);

// "oneDNN 2.6.3 avx512_core".
std::string library_version();

// The attributes of every primitive: its scratch memory comes from the caller.
dnnl::primitive_attr attributes();
dnnl::primitive_attr attributes_with_relu();

// A primitive with its arguments bound: runs any number of times.
class Operation {
 public:
  Operation() = default;

  template <class Primitive, class Description>
  static Operation make(Library& library, const std::string& name, const Description& description,
                        Arguments arguments) {
    Operation operation;
    operation.library_ = &library;
    operation.name_ = name;
    checked("creation of " + name, [&] {
      operation.primitive_ = Primitive(description);
      arguments.emplace(DNNL_ARG_SCRATCHPAD, library.scratchpad(description.scratchpad_desc()));
      library.note_implementation(name, description.impl_info_str());
    });
    operation.arguments_ = std::move(arguments);
    return operation;
  }
  static Operation make_reorder(Library& library, const std::string& name, const dnnl::memory& from,
                                const dnnl::memory& to);

  // An operation that was never made does nothing, as for a layout that needs no reorder.
  void run() const {
    if (library_ == nullptr) return;
    checked(name_, [this] { primitive_.execute(library_->stream(), arguments_); });
  }

 private:
  Library* library_ = nullptr;
  std::string name_;
  dnnl::primitive primitive_;
  Arguments arguments_;
};

}  // namespace tg::engine::cpu
