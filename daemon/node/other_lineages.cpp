#include "daemon/node/other_lineages.h"

#include <algorithm>

#include "daemon/store/run_history.h"
#include "kernels/base/hex.h"
#include "schema/text.h"

namespace tg::daemon {

Held OtherLineages::held(const RunRecord& record) {
  const auto [known, is_new] = lineages_.try_emplace(record.key);
  if (is_new) {
    const std::string views = context_.storage.store.directory(record.id) + "/" + kViewsFile;
    const RunHistory history(intervals_in(views), record);
    known->second = {record.status.lineage, record.key, history.line(), history.by_order()};
  }
  // An ended run may have come further than this node.
  const auto own = std::ranges::find(record.status.members, record.node, &schema::MemberStatus::node);
  const bool told = schema::is_authoritative(record.status.state) && own != record.status.members.end();
  return {known->second, told ? own->digest_step : record.status.digest_step};
}

std::string OtherLineages::on_lower(const schema::Heartbeat& beat, const Held& own) {
  const Held its{lineage_of(beat), beat.step - std::min<std::uint64_t>(beat.step, 1)};  // its last may be unconfirmed
  if (descends_from(own.lineage, its) || !named_.insert(beat.key).second) return "";
  const std::string& run = beat.lineage_run();
  std::string text = contradiction_text(context_.self.config.node, own.lineage, beat.node, its) +
                     ", which ends and is kept there as run " + schema::set_aside_id(run, hex_digest(beat.key));
  context_.news.log.warning("two-lineages", {{"run", run}, {"what", text}});
  return text;
}

Result<RunRecord> OtherLineages::set_aside(const RunRecord& record, std::uint64_t key, const std::string& why,
                                           bool by_order) const {
  const std::string& node = context_.self.config.node;
  const std::string way = "set aside from run " + record.id + ", which " + node +
                          (by_order ? " joins by tgctl join " + node : " joins again");
  Result<RunRecord> aside = context_.storage.store.set_aside(record.id, key, why + "; " + way);
  if (aside.ok())
    context_.news.log.warning("two-lineages", {{"run", record.id}, {"kept-as", aside->id}, {"what", aside->aside}});
  else
    context_.news.log.error("set-aside-failed", {{"run", record.id}, {"error", aside.error().message}});
  return aside;
}

bool OtherLineages::stays_out(const std::string& run, std::uint32_t by_order) const {
  return run != let_in_ && std::ranges::any_of(context_.storage.store.records(), [&](const RunRecord& one) {
           return schema::is_set_aside(one.id, run) && one.status.lineage < by_order;
         });
}

bool OtherLineages::let_in(const std::string& run) {
  if (run.empty() || !stays_out(run, UINT32_MAX)) return false;
  let_in_ = run;
  return true;
}

std::string OtherLineages::problem() const {
  for (const RunRecord& one : context_.storage.store.records()) {
    const std::string run = one.id.substr(0, one.id.rfind('-'));
    if (one.aside.empty() || one.fetched_ms != 0) continue;
    return "run " + run + " has two lineages, and " + one.node + " has set its own aside, with step " +
           std::to_string(one.status.step) + " of lineage " + std::to_string(one.status.lineage) +
           "; see tgctl status " + one.id + ", then fetch or delete that run";
  }
  return "";
}

}  // namespace tg::daemon
