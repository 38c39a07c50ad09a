#include "daemon/run/run_numbers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/base/median.h"

namespace tg::daemon {
namespace {

constexpr std::size_t kStepsRemembered = 64;  // for rates, shares and the median

double zeros_of(const StepTraffic& traffic) {
  if (traffic.elements == 0) return 0;
  return 1.0 - static_cast<double>(traffic.nonzeros) / static_cast<double>(traffic.elements);
}

}  // namespace

// The members' rows are in the order of their ranks.
RunNumbers::RunNumbers(const std::vector<schema::MemberShare>& shares, Rank self, std::uint64_t global_batch)
    : self_(self.index()), global_batch_(global_batch), wait_seconds_(shares.size()) {
  for (const schema::MemberShare& share : shares) {
    status_.members.push_back({share.node, schema::RunState::kRunning, 0, 0, 0, 0});
    status_.members.back().samples = static_cast<std::uint32_t>(share.samples);
  }
}

void RunNumbers::open_metrics(const std::string& directory) {
  metrics_ = std::make_shared<LineFile>(directory + "/metrics.jsonl");
}

void RunNumbers::committed(const Member::Committed& committed, std::uint64_t sent_bytes) {
  committed_ = committed;
  sent_bytes_step_ = sent_bytes - std::exchange(sent_bytes_before_, sent_bytes);
  const double seconds = std::chrono::duration<double>(Clock::now() - step_started_).count();
  Per<Rank, double> none(wait_seconds_.size());
  steps_.push_back({seconds, static_cast<double>(sent_bytes_step_), std::exchange(wait_seconds_, std::move(none)),
                    std::exchange(data_wait_seconds_, 0)});
  if (steps_.size() > kStepsRemembered) steps_.pop_front();
}

void RunNumbers::confirmed() {
  status_.step = committed_.step;
  status_.loss = committed_.loss_sum / static_cast<double>(global_batch_);
  status_.learning_rate = committed_.learning_rate;
}

// With five classes or fewer the right one is always among the five highest.
void RunNumbers::evaluated(const Member::Evaluation& evaluation, int classes) {
  const auto total = static_cast<double>(evaluation.counts.total);
  status_.evaluated = true;
  status_.evaluation_step = evaluation.step;
  status_.evaluation_accuracy = static_cast<double>(evaluation.counts.correct) / total;
  status_.evaluation_accuracy_5 = classes > 5 ? static_cast<double>(evaluation.counts.correct_5) / total : 0;
  status_.evaluation_loss = evaluation.counts.loss_sum / total;
}

void RunNumbers::waited(const std::vector<Rank>& ranks, double seconds) {
  for (const Rank rank : ranks) wait_seconds_[rank] += seconds / static_cast<double>(ranks.size());
}

void RunNumbers::digest(std::uint64_t digest, std::uint64_t step) {
  status_.digest = digest;
  status_.digest_step = step;
}

double RunNumbers::median_step_seconds() const {
  std::vector<double> seconds;
  for (const Step& step : steps_) seconds.push_back(step.seconds);
  return median(std::move(seconds));
}

void RunNumbers::refresh() {
  double seconds = 0, sent = 0, data_waits = 0;
  Per<Rank, double> waits(wait_seconds_.size());
  for (const Step& step : steps_) {
    seconds += step.seconds;
    sent += step.sent_bytes;
    data_waits += step.data_wait_seconds;
    for (const Rank r : waits.places()) waits[r] += step.wait_seconds[r];
  }
  const double parameters = static_cast<double>(status_.parameters);
  if (seconds > 0) status_.samples_per_second = static_cast<double>(global_batch_ * steps_.size()) / seconds;
  if (!steps_.empty()) status_.sent_bytes_per_step = sent / static_cast<double>(steps_.size());
  const StepTraffic& traffic = committed_.traffic;
  // An owner does not send its own codes, so the bits are counted over the chunks that were sent.
  if (traffic.contribution_elements > 0)
    status_.code_bits_per_parameter =
        8.0 * static_cast<double>(traffic.contribution_bytes) / static_cast<double>(traffic.contribution_elements);
  status_.sent_bits_per_parameter = 8.0 * status_.sent_bytes_per_step / parameters;
  if (traffic.elements > 0) status_.zeros = zeros_of(committed_.traffic);
  for (const Rank r : waits.places()) {
    schema::MemberStatus& row = status_.members[r.index()];
    row.state = status_.state;
    row.wait_share = seconds > 0 ? waits[r] / seconds : 0;
  }
  schema::MemberStatus& own = status_.members[self_];
  own.step = status_.step;
  own.digest = status_.digest;
  own.digest_step = status_.digest_step;
  own.data_wait_share = seconds > 0 ? std::min(1.0, data_waits / seconds) : 0;
}

void RunNumbers::write_metrics(bool evaluated) {
  nlohmann::ordered_json row;
  row["step"] = status_.step;
  row["loss"] = status_.loss;
  row["learning_rate"] = status_.learning_rate;
  if (evaluated) {
    row["accuracy"] = status_.evaluation_accuracy;
    if (status_.evaluation_accuracy_5 > 0) row["accuracy_5"] = status_.evaluation_accuracy_5;
    row["evaluation_loss"] = status_.evaluation_loss;
  }
  row["sent_bytes"] = sent_bytes_step_;
  row["zeros"] = zeros_of(committed_.traffic);
  row["seconds"] = steps_.empty() ? 0.0 : steps_.back().seconds;
  nlohmann::ordered_json waits = nlohmann::ordered_json::object();
  if (!steps_.empty())
    for (const Rank r : wait_seconds_.places())
      if (r.index() != self_) waits[status_.members[r.index()].node] = steps_.back().wait_seconds[r];
  row["wait_seconds"] = std::move(waits);
  row["data_wait_seconds"] = steps_.empty() ? 0.0 : steps_.back().data_wait_seconds;
  metrics_->add(row.dump());
  if (evaluated) metrics_->flush();
}

}  // namespace tg::daemon
