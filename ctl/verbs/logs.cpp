#include <algorithm>
#include <optional>
#include <string_view>

#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/verbs.h"

namespace tg::ctl {
namespace {

constexpr int kLogsPollMs = 500;
constexpr std::uint64_t kMaxLogBytes = std::uint64_t{1} << 30;  // far more than a run writes

Error malformed_log(const schema::SliceReply& slice, std::uint64_t offset) {
  return {ErrorKind::kCorrupt, slice.node + " reports a log of " + std::to_string(slice.total_bytes) +
                                   " bytes, and sent " + std::to_string(slice.data.size()) + " from byte " +
                                   std::to_string(offset) + "; that is not a run's log"};
}

// The end of a slice may cut its last character, which is then requested again.
std::size_t before_last_character(std::string_view data) {
  constexpr std::size_t kMaxBehind = 3;  // continuation bytes of a UTF-8 character
  for (std::size_t back = 1; back <= std::min(kMaxBehind, data.size()); ++back)
    if (static_cast<unsigned char>(data[data.size() - back]) >= 0xc0) return data.size() - back;
  return data.size();
}

}  // namespace

int logs(Client& client, const Command& command) {
  const Result<schema::RunStatus> run = ask_run(client, command.operand, schema::Pick::kNewest);
  if (!run) return fail(run.error());
  schema::LogsRequest request{run->id, command.node, 0};
  std::optional<std::uint64_t> there;  // bytes at the first request
  while (true) {
    const Result<schema::SliceReply> slice = client.ask_for<schema::SliceReply>(request);
    if (!slice) return fail(slice.error());
    const std::string& data = slice->data;
    if (slice->total_bytes > kMaxLogBytes ||
        data.size() > slice->total_bytes - std::min(request.offset, slice->total_bytes))
      return fail(malformed_log(*slice, request.offset));
    there = there.value_or(slice->total_bytes);
    const bool full = !slice->final && data.size() >= schema::kLogSliceBytes;
    const std::size_t shown = full ? before_last_character(data) : data.size();
    print(std::string_view(data).substr(0, shown));
    request.offset += shown;
    if (slice->final || !output_works()) return kOk;
    if (full && (command.follow || request.offset < *there)) continue;
    if (!command.follow) return kOk;
    if (!sleep_unless_interrupted(kLogsPollMs)) return kInterrupted;
  }
}

}  // namespace tg::ctl
