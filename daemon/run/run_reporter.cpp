#include "daemon/run/run_reporter.h"

#include <algorithm>
#include <utility>

#include "daemon/store/run_files.h"
#include "kernels/base/check.h"
#include "schema/limits.h"
#include "schema/text.h"

namespace tg::daemon {
namespace {

constexpr std::chrono::milliseconds kPublishEvery{100};  // the maximum age of the numbers in status
constexpr std::chrono::seconds kLogEvery{10};

}  // namespace

// --- beginnings ---

void RunReporter::begin_view(RunNumbers& numbers) {
  numbers_ = &numbers;
  numbers_->start_counting(context_.network.mesh.links().sent_bytes());  // excludes earlier views
  status_.members = numbers_->member_rows();
}

void RunReporter::on_view_changed(std::uint32_t number, std::uint64_t step, const MemberChange& members,
                                  const std::string& why) {
  status_.view = number;
  status_.view_step = step;
  status_.view_since_ms = unix_time_ms();
  for (const std::string& node : members.joined)
    std::erase_if(status_.departed, [&](const auto& one) { return one.node == node; });
  for (const std::string& node : members.departed)
    status_.departed.push_back({node, status_.view_since_ms, step, schema::clip_text(why, schema::kMaxProblemBytes)});
  std::ranges::sort(status_.departed, {}, &schema::Departure::node);
  ++context_.news.metrics.numbers().view_changes;
}

void RunReporter::begin(schema::RunStatus first, const std::shared_ptr<const Prepared>& prepared,
                        double checkpoint_seconds) {
  TG_CHECK(numbers_ != nullptr);
  first.members = std::move(status_.members);
  status_ = std::move(first);
  prepared_ = prepared;
  Numbers& counted = context_.news.metrics.numbers();
  counted.run_step = status_.step;
  counted.run_started = static_cast<double>(status_.started_ms) / 1000;
  counted.checkpoint_every = checkpoint_seconds;
  logged_ = Clock::now();
  publish(true);
}

Status RunReporter::open_metrics(const std::string& directory, bool append, std::uint64_t after_step) {
  const std::string path = directory + "/" + kMetricsFile;
  last_row_step_ = after_step;
  if (append)
    if (Status cut = truncate_after(path, after_step); !cut.ok()) return cut;
  metrics_ = std::make_shared<LineFile>(path, append ? LineFile::Mode::kAppend : LineFile::Mode::kTruncate);
  return {};
}

// --- a step ---

void RunReporter::on_step_begun(std::uint64_t step) {
  context_.news.progress.step = step;
  numbers_->on_step_begun();
}

void RunReporter::on_computed(const GradientReady& last) {
  computed_ = Clock::now();
  Numbers& counted = context_.news.metrics.numbers();
  counted.observe(StepPart::kForward, last.forward_seconds);
  counted.observe(StepPart::kBackward, last.backward_seconds);
  counted.data_wait_seconds += last.data_seconds;
  numbers_->on_data_wait(last.data_seconds);
}

void RunReporter::on_committed(const Member::Committed& committed) {
  ++context_.news.progress.count;
  context_.news.progress.step = committed.step;
  numbers_->on_committed(committed, context_.network.mesh.links().sent_bytes());
  context_.news.metrics.numbers().observe(StepPart::kExchange,
                                          std::chrono::duration<double>(Clock::now() - computed_).count());
  unconfirmed_ = committed;
}

void RunReporter::on_confirmed(std::uint64_t step) {
  TG_CHECK(unconfirmed_ && unconfirmed_->step == step, step);
  const Member::Committed committed = *std::exchange(unconfirmed_, std::nullopt);
  status_.step = step;
  status_.loss = committed.loss_sum / static_cast<double>(numbers_->global_batch());
  status_.learning_rate = committed.learning_rate;
  Numbers& counted = context_.news.metrics.numbers();
  ++counted.steps;
  counted.samples += numbers_->own_samples();
  counted.loss = status_.loss;
  counted.nonzero_ratio = numbers_->nonzero_ratio().value_or(Numbers::kUnknown);
  counted.run_step = step;
  publish(committed.ends);
  log_progress(committed.ends);
  if (!committed.ends) write_metrics(false);  // else the report writes it
}

// Logs the loss ten times a run, and every ten seconds.
void RunReporter::log_progress(bool ends) {
  const Clock::time_point time = Clock::now();
  const std::uint64_t tenth = std::max<std::uint64_t>(status_.steps / 10, 1);
  if (!ends && status_.step % tenth != 0 && time - logged_ < kLogEvery) return;
  logged_ = time;
  context_.news.log.info("progress", {{"run", run_},
                                      {"step", status_.step},
                                      {"steps", status_.steps},
                                      {"loss", status_.loss},
                                      {"learning-rate", status_.learning_rate}});
  log_damaged();
}

// Logs each skipped file once, as far as the data set keeps their names.
void RunReporter::log_damaged() {
  const std::vector<std::string> messages = prepared_->data->skipped->messages();
  for (; damaged_logged_ < messages.size(); ++damaged_logged_)
    context_.news.log.warning("damaged-file-skipped", {{"run", run_}, {"what", messages[damaged_logged_]}});
  const std::size_t count = prepared_->data->skipped->count();  // counts a file again in every epoch
  if (count > std::max(messages.size(), damaged_counted_))
    context_.news.log.warning("damaged-files-skipped", {{"run", run_}, {"times", count}});
  damaged_counted_ = count;
}

void RunReporter::on_reported(const std::optional<Member::Evaluation>& evaluation) {
  const bool known = status_.evaluated && evaluation && status_.evaluation_step == evaluation->step;
  if (evaluation && !known) {
    add_evaluation(*evaluation, prepared_->model.classes, status_);
    Numbers& counted = context_.news.metrics.numbers();
    counted.observe(StepPart::kEvaluate, std::chrono::duration<double>(Clock::now() - evaluating_).count());
    counted.accuracy = status_.evaluation_accuracy;
    counted.accuracy_5 = status_.evaluation_accuracy_5 > 0 ? status_.evaluation_accuracy_5 : Numbers::kUnknown;
    context_.news.log.info("evaluated", {{"run", run_},
                                         {"step", status_.evaluation_step},
                                         {"accuracy", status_.evaluation_accuracy},
                                         {"loss", status_.evaluation_loss}});
    log_damaged();
  }
  write_metrics(evaluation.has_value());
  publish(true);
}

void RunReporter::write_metrics(bool evaluated) {
  if (status_.step == last_row_step_) return;  // the run was resumed at its last step
  last_row_step_ = status_.step;
  const bool is_due = metrics_->add(numbers_->metrics_row(status_, evaluated, prepared_->model.segments));
  if (is_due || evaluated) context_.storage.writer.post([metrics = metrics_] { metrics->flush(); });
}

void RunReporter::on_waited(const View& view, const Waiting& waiting, double seconds) {
  numbers_->on_waited(waiting.ranks, seconds);
  for (const Rank rank : waiting.ranks)
    context_.news.metrics.numbers().peers[view.seat(rank)].wait_seconds +=
        seconds / static_cast<double>(waiting.ranks.size());
}

std::optional<schema::RunStatus> RunReporter::take_unconfirmed() {
  if (!unconfirmed_) return std::nullopt;
  const Member::Committed committed = *std::exchange(unconfirmed_, std::nullopt);
  schema::RunStatus status = status_;
  status.step = committed.step;
  status.loss = committed.loss_sum / static_cast<double>(numbers_->global_batch());
  status.learning_rate = committed.learning_rate;
  metrics_->add(numbers_->metrics_row(status, false, prepared_->model.segments));
  return status;
}

// --- the run ---

void RunReporter::set_state(schema::RunState state, const std::string& reason) {
  if (status_.state == state) return;
  const std::int64_t now_ms = unix_time_ms();
  Log& log = context_.news.log;
  if (state == schema::RunState::kPaused) {
    log.warning("paused", {{"run", run_}, {"step", status_.step}, {"why", reason}});
  } else if (status_.state == schema::RunState::kPaused) {
    log.info("pause-ended", {{"run", run_}, {"state", to_word(state)}, {"after-ms", now_ms - status_.since_ms}});
  }
  status_.state = state;
  status_.reason = reason;
  status_.since_ms = now_ms;
  publish(true);
}

void RunReporter::set_note(const std::string& reason) {
  if (status_.reason == reason) return;
  status_.reason = reason;
  publish(true);
}

void RunReporter::set_digest(std::uint64_t digest, std::uint64_t step) {
  status_.digest = digest;
  status_.digest_step = step;
}

void RunReporter::publish(bool now) {
  const Clock::time_point time = Clock::now();
  if (!now && time - published_ < kPublishEvery) return;
  published_ = time;
  context_.storage.store.update(refreshed());
}

const schema::RunStatus& RunReporter::refreshed() {
  numbers_->fill(status_);
  return status_;
}

}  // namespace tg::daemon
