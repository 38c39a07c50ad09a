// Checks the slices of one file of an ended run as they arrive: together never more bytes than its writer's record has,
// and each a full slice before the last. So a faulty node can neither fill the disk nor send without end. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "schema/control/control.h"

namespace tg::ctl {

class Slices {
 public:
  // recorded: the file's bytes in its writer's record, if it has them. max: the bytes that there is room for.
  Slices(std::optional<std::uint64_t> recorded, std::uint64_t max) : recorded_(recorded), max_(max) {}

  // Must be called before the data are used. An error completes "NODE's FILE: ", or for kCorrupt "NODE's FILE is
  // damaged: ".
  Status add(const schema::SliceReply& slice);
  std::uint64_t offset() const { return offset_; }  // where the next slice begins
  bool whole() const { return offset_ == total_; }

 private:
  const std::optional<std::uint64_t> recorded_;
  const std::uint64_t max_;
  std::optional<std::uint64_t> total_;  // from the first slice
  std::uint64_t offset_ = 0;
};

}  // namespace tg::ctl
