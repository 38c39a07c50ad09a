#include "ctl/fetch/slices.h"

#include <algorithm>
#include <string>

namespace tg::ctl {

Status Slices::add(const schema::SliceReply& slice) {
  const std::string total = std::to_string(slice.total_bytes);
  if (recorded_ && slice.total_bytes != *recorded_)
    return Error{ErrorKind::kCorrupt, "it has " + total + " bytes instead of " + std::to_string(*recorded_)};
  if (slice.total_bytes > max_)
    return Error{ErrorKind::kFailed,
                 "it has " + total + " bytes, and there is room for " + std::to_string(max_) + "; nothing was fetched"};
  if (total_ && slice.total_bytes != *total_)
    return Error{ErrorKind::kCorrupt, "it had " + std::to_string(*total_) + " bytes, and then " + total};
  total_ = slice.total_bytes;
  const std::uint64_t due = std::min<std::uint64_t>(*total_ - offset_, schema::kFileSliceBytes);
  offset_ += slice.data.size();
  if (slice.data.size() == due && slice.final == whole()) return {};
  return Error{ErrorKind::kCorrupt, std::to_string(offset_) + " of " + total + " bytes arrived, " +
                                        std::to_string(slice.data.size()) + " in the last slice" +
                                        (slice.final ? ", which was marked as the last"
                                         : whole()   ? "; its node says that more follow"
                                                     : "")};
}

}  // namespace tg::ctl
