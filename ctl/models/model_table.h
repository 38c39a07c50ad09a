// The models that `tgctl models` shows. tgctl needs no node for it, as the list is the same on every node of this
// build. tgctl has no engine, so the numbers are repeated here; tests/ctl/models_test.cpp compares each with the
// engine's. In the order of ModelKind. Constant; any thread.
#pragma once

#include <array>
#include <cstdint>

#include "engine/choices.h"

namespace tg::ctl {

struct ModelRow {
  ModelKind kind;
  int channels, height, width;  // the published input
  int least_side;               // the smallest square pictures that fit
  std::int64_t parameters;      // at the published input and classes
  std::int64_t operations;      // in one sample's forward pass, a multiply-add being two
  const char* what;             // a line: what it is and where it comes from
};

const std::array<ModelRow, values_of<ModelKind>().size()>& model_rows();

}  // namespace tg::ctl
