// The slices of one file of an ended run, as they come: never more than its writer's record says, never less than a
// whole slice before the end. So a node that lies costs neither the disk nor endless time. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "schema/control/control.h"

namespace tg::ctl {

class Slices {
 public:
  // recorded: the file's bytes by its writer's record, nothing where it does not say. most: what there is room for.
  Slices(std::optional<std::uint64_t> recorded, std::uint64_t most) : recorded_(recorded), most_(most) {}

  // Call it before the data goes anywhere. An error completes "NODE's FILE: ", one that is kCorrupt "NODE's FILE is
  // damaged: ".
  Status take(const schema::SliceReply& slice);
  std::uint64_t offset() const { return offset_; }  // of the next slice
  bool whole() const { return offset_ == total_; }

 private:
  const std::optional<std::uint64_t> recorded_;
  const std::uint64_t most_;
  std::optional<std::uint64_t> total_;  // as the first slice said
  std::uint64_t offset_ = 0;
};

}  // namespace tg::ctl
