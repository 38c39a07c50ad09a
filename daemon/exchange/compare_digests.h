// Checks whether all replicas agree. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/exchange/members.h"
#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

// digests: each member's, by segment. Nothing if all agree; else a cause that names the first differing segment, the
// members in the minority there and every value. `when` reads like "before step 12".
std::optional<schema::Fail> compare_digests(const Members& members,
                                            const Per<Rank, std::vector<std::uint64_t>>& digests,
                                            const std::string& when);

}  // namespace tg::daemon
