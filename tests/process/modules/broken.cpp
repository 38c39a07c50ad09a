// Modules for tests that cannot be used: of another build, or with half of what a module exports.

#include <string>

#include "engine/accelerator.h"

extern "C" const char* tgd_module_build() { return "0.0.1+of-another-build"; }

#ifndef TGD_WITHOUT_OPEN
extern "C" tg::engine::Accelerator* tgd_open_module(const tg::engine::AcceleratorOptions&, std::string& why) {
  why = "nobody may ask this";
  return nullptr;
}
#endif
