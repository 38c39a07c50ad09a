#include "daemon/node/other_lineages.h"

#include <algorithm>

#include "daemon/store/run_history.h"
#include "kernels/base/hex.h"
#include "schema/text.h"

namespace tg::daemon {

Held OtherLineages::held(const RunRecord& record) {
  const auto [known, is_new] = lines_.try_emplace(record.key);
  if (is_new) {
    const std::string views = context_.storage.store.directory(record.id) + "/" + kViewsFile;
    known->second = RunHistory(intervals_in(views), record).line();
  }
  return {{record.status.lineage, record.key, known->second}, record.status.digest_step};
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

Result<RunRecord> OtherLineages::set_aside(const RunRecord& record, const std::string& why) const {
  const std::string& node = context_.self.config.node;
  const std::string way = "set aside from run " + record.id + ", which " + node + " joins by tgctl join " + node;
  const bool told = record.status.reason.find(why) != std::string::npos;  // or a peer's reason took its place
  Result<RunRecord> aside = context_.storage.store.set_aside(record.id, (told ? "" : why + "; ") + way);
  if (aside.ok())
    context_.news.log.warning("two-lineages",
                              {{"run", record.id}, {"kept-as", aside->id}, {"what", aside->status.reason}});
  else
    context_.news.log.error("set-aside-failed", {{"run", record.id}, {"error", aside.error().message}});
  return aside;
}

bool OtherLineages::has_set_aside(const std::string& run) const {
  return std::ranges::any_of(context_.storage.store.records(),
                             [&](const RunRecord& one) { return schema::is_set_aside(one.id, run); });
}

bool OtherLineages::stays_out(const std::string& run) const { return run != let_in_ && has_set_aside(run); }

bool OtherLineages::let_in(const std::string& run) {
  if (run.empty() || !has_set_aside(run)) return false;
  let_in_ = run;
  return true;
}

}  // namespace tg::daemon
