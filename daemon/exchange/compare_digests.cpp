#include "daemon/exchange/compare_digests.h"

#include <algorithm>
#include <map>

#include "kernels/base/hex.h"

namespace tg::daemon {

std::optional<schema::Fail> compare_digests(const Members& members,
                                            const Per<Rank, std::vector<std::uint64_t>>& digests,
                                            const std::string& when) {
  const Per<Rank, std::string>& names = members.names;
  const std::size_t segments = digests.front().size();
  for (const Rank r : names.places()) {
    if (digests[r].size() == segments) continue;
    return schema::Fail{ErrorKind::kRunFailed, names[r], "scaler wait",
                        names[r] + " sent " + std::to_string(digests[r].size()) + " digests " + when + " where " +
                            names.front() + " sent " + std::to_string(segments) + "; do all nodes run one job?"};
  }
  for (std::size_t s = 0; s < segments; ++s) {
    std::map<std::uint64_t, std::size_t> holders;
    for (const auto& of_member : digests) ++holders[of_member[s]];
    if (holders.size() == 1) continue;
    const auto majority = std::max_element(holders.begin(), holders.end(),
                                           [](const auto& a, const auto& b) { return a.second < b.second; });
    std::string odd, values, about = names.front();
    for (const Rank r : names.places()) {
      values += (values.empty() ? "" : ", ") + names[r] + " " + hex_digest(digests[r][s]);
      if (digests[r][s] == majority->first) continue;
      odd += (odd.empty() ? "" : ", ") + names[r];
      about = names[r];
    }
    const bool minority = majority->second * 2 > names.size();
    return schema::Fail{ErrorKind::kRunFailed, about, "scaler wait",
                        "replicas differ " + when + ", first in segment " + members.segment(s) + ": " +
                            (minority ? odd + " against the others" : "no majority") + " (" + values +
                            "); check that machine's memory and build"};
  }
  return std::nullopt;
}

}  // namespace tg::daemon
