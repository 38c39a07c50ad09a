#include "daemon/run/run_numbers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/base/log.h"
#include "kernels/base/median.h"

namespace tg::daemon {
namespace {

constexpr std::size_t kMaxSteps = 64;  // for rates, shares and the median

constexpr std::uint64_t kLayerRows = 100;  // rows of a run that have the zeros by segment

double nonzero_share(const CodeCounts& counts) {
  return counts.elements == 0 ? 0 : static_cast<double>(counts.nonzeros) / static_cast<double>(counts.elements);
}

CodeCounts sum_of(const StepTraffic& traffic) {
  CodeCounts sum;
  for (const CodeCounts& piece : traffic.codes) {
    sum.elements += piece.elements;
    sum.nonzeros += piece.nonzeros;
  }
  return sum;
}

// The share of zeros in each segment that travels in codes, in the network's order.
nlohmann::ordered_json zeros_by_segment(const StepTraffic& traffic, const engine::SegmentTable& segments) {
  std::vector<CodeCounts> sums(segments.size());
  for (const CodeCounts& piece : traffic.codes) {
    sums[piece.segment].elements += piece.elements;
    sums[piece.segment].nonzeros += piece.nonzeros;
  }
  nlohmann::ordered_json shares = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (sums[i].elements > 0) shares[segments[i].name] = 1.0 - nonzero_share(sums[i]);
  return shares;
}

// An owner does not send its own codes, so the bits are counted over the chunks that were sent.
double code_bits_of(const StepTraffic& traffic) {
  return 8.0 * static_cast<double>(traffic.contribution_bytes) / static_cast<double>(traffic.contribution_elements);
}

}  // namespace

void add_evaluation(const Member::Evaluation& evaluation, int classes, schema::RunStatus& status) {
  const auto total = static_cast<double>(evaluation.counts.total);
  status.evaluated = true;
  status.evaluation_step = evaluation.step;
  status.evaluation_accuracy = static_cast<double>(evaluation.counts.correct) / total;
  // With five classes or fewer, the correct one is always among the five highest.
  status.evaluation_accuracy_5 = classes > 5 ? static_cast<double>(evaluation.counts.correct_5) / total : 0;
  status.evaluation_loss = evaluation.counts.loss_sum / total;
  BestEvaluation best{status.best_accuracy, status.best_step};
  best.update(status.evaluation_accuracy, status.evaluation_step);
  status.best_accuracy = best.accuracy;
  status.best_step = best.step;
}

RunNumbers::RunNumbers(std::vector<schema::MemberShare> shares, std::vector<std::uint32_t> seniority, Rank self,
                       std::uint64_t global_batch)
    : shares_(std::move(shares)),
      seniority_(std::move(seniority)),
      self_(self.index()),
      global_batch_(global_batch),
      wait_seconds_(shares_.size()) {}

// Returns the rows by rank.
std::vector<schema::MemberStatus> RunNumbers::member_rows() const {
  std::vector<schema::MemberStatus> rows;
  for (const schema::MemberShare& share : shares_) {
    rows.push_back({.node = share.node, .state = schema::RunState::kRunning});
    rows.back().samples = static_cast<std::uint32_t>(share.samples);
    rows.back().seniority = seniority_[rows.size() - 1];
  }
  return rows;
}

void RunNumbers::on_committed(const Member::Committed& committed, std::uint64_t sent_bytes) {
  traffic_ = committed.traffic;
  sent_bytes_step_ = sent_bytes - std::exchange(sent_bytes_before_, sent_bytes);
  const double seconds = std::chrono::duration<double>(Clock::now() - step_started_).count();
  Per<Rank, double> none(wait_seconds_.size());
  steps_.push_back({seconds, static_cast<double>(sent_bytes_step_), std::exchange(wait_seconds_, std::move(none)),
                    std::exchange(data_wait_seconds_, 0)});
  if (steps_.size() > kMaxSteps) steps_.pop_front();
}

void RunNumbers::on_waited(const std::vector<Rank>& ranks, double seconds) {
  for (const Rank rank : ranks) wait_seconds_[rank] += seconds / static_cast<double>(ranks.size());
}

double RunNumbers::median_step_seconds() const {
  std::vector<double> seconds;
  for (const Step& step : steps_) seconds.push_back(step.seconds);
  return median(std::move(seconds));
}

std::optional<double> RunNumbers::nonzero_ratio() const {
  const CodeCounts sum = sum_of(traffic_);
  if (sum.elements == 0) return std::nullopt;
  return nonzero_share(sum);
}

void RunNumbers::fill(schema::RunStatus& status) const {
  double seconds = 0, sent = 0, data_waits = 0, all_waits = 0;
  Per<Rank, double> waits(wait_seconds_.size());
  for (const Step& step : steps_) {
    seconds += step.seconds;
    sent += step.sent_bytes;
    data_waits += step.data_wait_seconds;
    for (const Rank r : waits.places()) {
      waits[r] += step.wait_seconds[r];
      all_waits += step.wait_seconds[r];
    }
  }
  const double parameters = static_cast<double>(status.parameters);
  if (seconds > 0) status.samples_per_second = static_cast<double>(global_batch_ * steps_.size()) / seconds;
  if (!steps_.empty()) status.sent_bytes_per_step = sent / static_cast<double>(steps_.size());
  if (traffic_.contribution_elements > 0) status.code_bits_per_parameter = code_bits_of(traffic_);
  status.sent_bits_per_parameter = 8.0 * status.sent_bytes_per_step / parameters;
  if (!traffic_.codes.empty()) status.zeros = 1.0 - nonzero_ratio().value_or(1);
  for (const Rank r : waits.places()) {
    schema::MemberStatus& row = status.members[r.index()];
    row.state = status.state;
    row.wait_share = seconds > 0 ? waits[r] / seconds : 0;
  }
  schema::MemberStatus& own = status.members[self_];
  own.step = status.step;
  own.digest = status.digest;
  own.digest_step = status.digest_step;
  own.data_wait_share = seconds > 0 ? std::min(1.0, data_waits / seconds) : 0;
  own.waiting_share = seconds > 0 ? std::min(1.0, all_waits / seconds) : 0;
}

std::string RunNumbers::metrics_row(const schema::RunStatus& status, bool evaluated,
                                    const engine::SegmentTable& segments) const {
  nlohmann::ordered_json row;
  row["step"] = status.step;
  row["loss"] = status.loss;
  row["learning_rate"] = status.learning_rate;
  if (evaluated) {
    row["accuracy"] = status.evaluation_accuracy;
    if (status.evaluation_accuracy_5 > 0) row["accuracy_5"] = status.evaluation_accuracy_5;
    row["evaluation_loss"] = status.evaluation_loss;
  }
  row["sent_bytes"] = sent_bytes_step_;
  row["sent_bits_per_parameter"] = 8.0 * static_cast<double>(sent_bytes_step_) / static_cast<double>(status.parameters);
  if (!traffic_.codes.empty()) row["zeros"] = 1.0 - nonzero_ratio().value_or(1);
  const bool by_layer = evaluated || status.step % std::max<std::uint64_t>(status.steps / kLayerRows, 1) == 0;
  if (by_layer && !traffic_.codes.empty()) row["layer_zeros"] = zeros_by_segment(traffic_, segments);
  if (traffic_.contribution_elements > 0) row["code_bits_per_parameter"] = code_bits_of(traffic_);
  const double seconds = steps_.empty() ? 0 : steps_.back().seconds;
  row["seconds"] = seconds;
  if (seconds > 0) row["samples_per_second"] = static_cast<double>(global_batch_) / seconds;
  nlohmann::ordered_json waits = nlohmann::ordered_json::object();
  if (!steps_.empty())
    for (const Rank r : wait_seconds_.places())
      if (r.index() != self_) waits[shares_[r.index()].node] = steps_.back().wait_seconds[r];
  row["wait_seconds"] = std::move(waits);
  row["data_wait_seconds"] = steps_.empty() ? 0.0 : steps_.back().data_wait_seconds;
  row["time"] = format_utc(unix_time_ms());
  return row.dump();
}

}  // namespace tg::daemon
