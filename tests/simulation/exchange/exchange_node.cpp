#include "tests/simulation/exchange/exchange_node.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "kernels/base/check.h"
#include "tests/simulation/simulator/awkward_memory.h"
#include "tests/simulation/training/tiny_training.h"

namespace tg::simulation {
namespace {

constexpr std::size_t kFaultySegment = 2;
constexpr std::size_t kFlippedElements = 32;  // the lowest bit of a single one may be rounded away by the next update

const kernels::Kernels& kernels_of(std::size_t rank) {
  const auto& all = kernels::available();
  return *all[rank % all.size()];
}

// What a faulty member sends in the place of a frame: a chunk without its last payload byte, well formed on the wire
// and wrong for the kernels; a step frame with twice the learning rate, without its last statistic, or
// with another first one.
schema::SharedFrame spoilt(const schema::SharedFrame& frame, const Faults& faults, schema::FramePool& pool) {
  schema::Frame decoded = schema::decode_frame(frame->bytes()).value();
  auto* chunk = std::get_if<schema::Chunk>(&decoded.body);
  auto* step = std::get_if<schema::StepFrame>(&decoded.body);
  if (chunk != nullptr && faults.bad_payload == decoded.header.step)
    chunk->payload = chunk->payload.first(chunk->payload.size() - 1);
  else if (step != nullptr && faults.other_rate == decoded.header.step)
    step->rate_bits = std::bit_cast<std::uint32_t>(2.0f * std::bit_cast<float>(step->rate_bits));
  else if (step != nullptr && faults.few_statistics == decoded.header.step)
    step->statistics.pop_back();
  else if (step != nullptr && faults.other_statistic == decoded.header.step)
    step->statistics.front() += 1;
  else
    return frame;
  return schema::encode_frame(decoded.header, decoded.body, pool);
}

}  // namespace

ExchangeNode::ExchangeNode(Network& network, NodeOptions options, Faults faults)
    : VirtualNode(network, std::move(options)),
      kernels_(kernels_of(seat().index())),
      space_(space_under_test(kernels_)),
      tensors_(space_->make_kernels()),
      faults_(faults),
      helpers_(seat().index() % 3),
      drawn_(tiny_segments().padded_count()),
      gradient_(*space_, tiny_segments().padded_count()) {}

std::uint64_t ExchangeNode::digest() const { return daemon::Replica::combine(replica_->segment_digests()); }

schema::Vote ExchangeNode::prepare_run(const daemon::RunIdentity& run, const daemon::View& view) {
  const Result<schema::JobSpec> job = schema::parse_job(run.spec, "job");
  if (options_.hears_lies && (!job.ok() || !schema::validate_job(*job, options_.names.size()).ok()))
    return {false, ErrorKind::kInvalidJob, "a lie"};
  job_ = job.value();
  const engine::Model& model = tiny_model();
  helper_.reset();
  member_.reset();
  replica_ = std::make_unique<daemon::Replica>(*space_, model, engine::slot_count(daemon::optimizer_of(job_).kind),
                                               job_.seed, daemon::keeps_average(job_));
  global_batch_ = schema::resolved_global_batch(job_, options_.names.size());
  make_member(run, view, 0);
  ended_ = false;
  schema::Vote vote = options_.vote;
  vote.spec_hash = schema::job_hash(job_);
  vote.model_hash = model.hash();
  vote.state_hash = digest();
  vote.step_seconds *= static_cast<double>(1 + seat().index());
  return vote;
}

void ExchangeNode::make_member(const daemon::RunIdentity& run, const daemon::View& view, std::uint64_t first_step) {
  helped_ = 0;
  told_ = false;
  daemon::Member::Options options;
  options.run_key = run.run_key;
  options.view = view;
  options.self = seat();
  options.names = options_.names;
  options.job = job_;
  options.has_test_data = job_.evaluate_every > 0;
  options.global_batch = global_batch_;
  options.first_round = Round(first_step);
  options.evaluates_first =
      job_.evaluate_every > 0 && first_step > 0 && (first_step == job_.steps || first_step % job_.evaluate_every == 0);
  member_ =
      std::make_unique<daemon::Member>(std::move(options), tiny_model(), static_cast<daemon::Member::Delegate&>(*this));
}

void ExchangeNode::run_begins(const schema::Commit& choice) {
  choice_ = choice;
  member_->settle(daemon::View(daemon::first_view(choice), options_.names));
  confirmed_digests_ = {{0, digest()}};
  undone_ = 0;
  begin_view();
}

void ExchangeNode::begin_view() {
  member_->begin(choice_, {*space_, kernels_, *replica_, gradient_.floats(), pool_});
  helper_ = member_->make_worker();
  settle();
}

// --- a change of its members ---

VirtualNode::Sealed ExchangeNode::seal_run() {
  member_->seal();
  return {committed_steps(), member_->unfit(), member_->can_go_back()};
}

// Takes the node to the state that the next view begins with: a node that holds it confirms it, one that is a step
// ahead of it goes back.
void ExchangeNode::install(std::uint64_t start) {
  helper_.reset();
  snapshot_source_.reset();
  undone_ += committed_steps() > start;
  cut_short_ += !member_->quiesced() && !member_->reporting();
  member_->install(Round(start));
  confirmed_digests_.emplace(start, digest());
}

// The engine for another share takes its time.
void ExchangeNode::run_changes(const schema::NextView& next) {
  const bool stops = member_->stopping();
  install(next.start);
  step_ = next.start;
  make_member(*running_, daemon::View(next, options_.names), next.start);
  if (stops) member_->request_stop();
  rebuild(next);
}

void ExchangeNode::rebuild(const schema::NextView& next) {
  phase_ = schema::Phase::kIdle;
  ++progress_;
  const std::uint64_t rebuild_us = network_.random().between(1, 300'000) + (next.waits ? 1'000'000 : 0);
  network_.after(seat(), rebuild_us, [this, key = running_->run_key, view = next.number] {
    if (!trains(key, view) || member_->is_sealed()) return;
    begin_view();
    apply_actions();
  });
}

void ExchangeNode::run_is_left(std::uint64_t start) {
  member_->seal();
  if (committed_steps() == start || (committed_steps() == start + 1 && member_->can_go_back())) install(start);
}

// --- a joiner ---

void ExchangeNode::run_quiesces() { member_->request_quiesce(); }

schema::SnapshotOffer ExchangeNode::run_offers_snapshot() {
  snapshot_source_ = std::make_unique<daemon::SnapshotSource>(daemon::SnapshotSource::Past{"a record", ""}, *replica_);
  return {{1, membership_.view().number(), committed_steps(), digest()}, snapshot_source_->parts()};
}

void ExchangeNode::run_sends_snapshot(Seat to, const schema::SnapshotRequest& want) {
  if (!snapshot_source_ || !member_->quiesced()) return;
  const Status given = snapshot_source_->want(want, [&](std::uint64_t at, std::span<const std::byte> bytes) {
    const schema::FrameHeader header{running_->run_key, membership_.view().number(), 0};
    VirtualNode::send({to}, std::make_shared<const Message>(Message{
                                {}, {}, schema::encode_frame(header, schema::SnapshotChunk{at, bytes}, pool_)}));
  });
  EXPECT_TRUE(given.ok()) << given.error().message;
}

void ExchangeNode::run_is_released() {
  snapshot_source_.reset();
  member_->release();
  settle();
}

void ExchangeNode::run_receives_snapshot(const daemon::ReceiveSnapshot& action) {
  auto sink = daemon::SnapshotSink::of(action.feed, {1, job_.steps, tiny_segments().size(), UINT64_MAX}, *replica_,
                                       [](std::span<const std::byte>) { return Status(); });
  if (!sink.ok()) return fails_to_join(sink.error().message);
  snapshot_sink_ = *std::move(sink);
  donor_ = action.from;
  donors_view_ = action.view;
  ask_for_slices();
}

// This is called once a second, too, as long as chunks are missing.
void ExchangeNode::ask_for_slices() {
  if (!snapshot_sink_ || running_) return;
  if (const auto want = snapshot_sink_->due(network_.now_ms())) {
    const schema::FrameHeader header{membership_.current() ? membership_.current()->run_key : 0, donors_view_, 0};
    VirtualNode::send({donor_}, std::make_shared<const Message>(Message{header, *want, nullptr}));
  }
  if (!snapshot_sink_->whole())
    network_.after(seat(), daemon::SnapshotSink::kAgainMs * 1000, [this, sink = snapshot_sink_.get()] {
      if (sink == snapshot_sink_.get()) ask_for_slices();
    });
}

void ExchangeNode::take_slice(Seat from, const schema::FrameHeader&, const schema::SnapshotChunk& slice) {
  if (!snapshot_sink_ || running_ || from != donor_ || snapshot_sink_->whole() || membership_.current() == nullptr)
    return;
  ++progress_;
  const Status taken = snapshot_sink_->take(slice, network_.now_ms());
  if (!taken.ok()) return fails_to_join(taken.error().message);
  ask_for_slices();
  if (!snapshot_sink_->whole()) return;
  if (digest() != snapshot_sink_->state().digest) return fails_to_join("another digest");
  reaches(Moment::kSnapshotDone);
  if (!dead()) membership_.on_snapshot_done(membership_.current()->run_key, "", network_.now_ms());
}

void ExchangeNode::fails_to_join(const std::string& why) {
  EXPECT_TRUE(options_.hears_lies) << why;
  membership_.on_snapshot_done(membership_.current()->run_key, why, network_.now_ms());
}

void ExchangeNode::run_is_joined(const schema::NextView& next, const schema::Commit& choice) {
  EXPECT_EQ(committed_steps(), next.start) << "P6: a member without the state that its view begins with";
  choice_ = choice;
  snapshot_sink_.reset();
  confirmed_digests_ = {{next.start, digest()}};
  undone_ = 0;
  step_ = next.start;
  make_member(*running_, daemon::View(next, options_.names), next.start);
  rebuild(next);
}

void ExchangeNode::run_ends() {
  member_->rest();
  helper_.reset();
  member_.reset();
}

void ExchangeNode::run_asked_to_stop() { member_->request_stop(); }

void ExchangeNode::send(const std::vector<Seat>& to, const schema::SharedFrame& frame) {
  VirtualNode::send(to, std::make_shared<const Message>(Message{{}, {}, spoilt(frame, faults_, pool_)}));
}

void ExchangeNode::committed(const daemon::Member::Committed& committed) {
  ++progress_;
  last_loss_ = committed.loss_sum;
  reaches(Moment::kCommit);
}

void ExchangeNode::confirmed(Step step, bool checkpoint) {
  confirmed_digests_.emplace(step.value(), digest());
  if (checkpoint) reaches(Moment::kCheckpoint);
}

void ExchangeNode::reached(schema::Phase phase, Step) {
  if (phase == schema::Phase::kScalerWait) reaches(Moment::kScalerWait);
  if (phase == schema::Phase::kReduce) reaches(Moment::kReduce);
  if (phase == schema::Phase::kGather) reaches(Moment::kGather);
}

void ExchangeNode::evaluate(Step step) {
  reaches(Moment::kEvaluate);
  network_.after(seat(), network_.random().between(10, 20'000),
                 [this, key = running_->run_key, of = daemon::Origin{member_->members().view.number(), step}] {
                   if (!trains(key, of.view)) return;
                   member_->on_event(daemon::Evaluated{of, {1, 2, 0.5, 1}});
                   settle();
                   apply_actions();
                 });
}

// --- steps ---

void ExchangeNode::step_begins(Step step) {
  step_ = step.value();
  phase_ = schema::Phase::kBackward;
  if (options_.on_moment && step.value() % 3 == 0) member_->request_checkpoint();
  if (faults_.flip_bit != step.value()) return;
  for (std::size_t i = 0; i < kFlippedElements; ++i) replica_->flip_bit(tiny_segments()[kFaultySegment].offset + i);
}

void ExchangeNode::train(Step of, const daemon::Layout& layout, kernels::ConstFloats, bool) {
  const std::uint64_t step = of.value();
  draw_gradient(job_.seed, seat().index(), step, drawn_.span());
  if (faults_.not_a_number == step)
    drawn_[tiny_segments()[kFaultySegment].offset + 7] = std::numeric_limits<float>::quiet_NaN();
  if (faults_.infinite == step) drawn_[3] = std::numeric_limits<float>::infinity();
  tensors_->copy_in(std::as_bytes(drawn_.span()), gradient_.floats());
  std::uint64_t delay_us = 0;
  for (std::size_t bucket = 0; bucket < layout.buckets.size(); ++bucket) {
    delay_us += network_.random().between(10, 4'000) + faults_.extra_compute_us;
    network_.after(
        seat(), delay_us,
        [this, key = running_->run_key, of = daemon::Origin{member_->members().view.number(), Step(step)}, bucket] {
          if (trains(key, of.view)) ready(of, bucket);
        });
  }
}

void ExchangeNode::ready(const daemon::Origin& of, std::size_t bucket) {
  const std::uint64_t step = of.step.value();
  ++progress_;
  daemon::GradientReady event{of, bucket, draw_loss(job_.seed, seat().index(), step)};
  if (bucket == 0) event.statistics = draw_statistics(job_.seed, seat().index(), step);
  if (bucket == 0 && faults_.odd_statistic == step) event.statistics.back() = -std::numeric_limits<float>::infinity();
  member_->on_event(event);
  settle();
  apply_actions();
}

void ExchangeNode::run_frame(Seat from, const SharedMessage& message) {
  schema::Frame frame = schema::decode_frame(message->bytes->bytes()).value();
  if (const auto* slice = std::get_if<schema::SnapshotChunk>(&frame.body))
    return take_slice(from, frame.header, *slice);
  if (!member_ || ended_ || membership_.current() == nullptr || frame.header.run != membership_.current()->run_key)
    return;
  if (!view_links_.is_intact(from) && frame.header.view == member_->members().view.number()) return;
  if (member_->begun() && frame.header.step == member_->step().next().value()) ++next_step_frames_;
  if (!member_->on_frame(from, frame.header, frame.body, message))
    return membership_.on_stale_view(from, frame.header.run, frame.header.view, network_.now_ms());
  const auto* report = std::get_if<schema::Report>(&frame.body);
  if (report != nullptr && report->last) membership_.on_peer_finished(from);
  settle();
}

// A task is carried out some time after it was given, and its result comes back some time after that.
void ExchangeNode::help(daemon::Task task) {
  ++helped_;
  ++helped_tasks_;
  const auto given = std::make_shared<daemon::Task>(std::move(task));
  network_.after(
      seat(), network_.random().between(1, 2'000), [this, key = running_->run_key, of = member_->origin(), given] {
        if (!trains(key, of.view) || !helper_) return;
        daemon::TaskResult result = helper_->execute(*given, [this, of](daemon::MadeFrame total) {
          member_->on_event(daemon::TotalMade{of, std::move(total)});
        });
        network_.after(seat(), network_.random().between(1, 2'000), [this, key, of, given, result = std::move(result)] {
          if (!trains(key, of.view)) return;
          --helped_;
          ++progress_;
          member_->on_event(daemon::TaskDone{of, std::move(*given), result});
          settle();
          apply_actions();
        });
        settle();
        apply_actions();
      });
}

// Does a task at once, as a node with nothing else to do, and then takes its result.
void ExchangeNode::settle() {
  if (!member_->begun()) return;
  while (helpers_ == 0) {
    std::optional<daemon::Task> task = member_->next_task(daemon::ThreadRole::kOnlyThread);
    if (!task) break;
    member_->execute(*std::move(task));
    ++progress_;
  }
  if (network_.random().one_in(2)) member_->use_idle_time();
  while (helped_ < 2 * helpers_) {
    std::optional<daemon::Task> task =
        member_->next_task(helped_ < helpers_ ? daemon::ThreadRole::kIdleThread : daemon::ThreadRole::kBusyThread);
    if (!task) break;
    help(*std::move(task));
    ++progress_;
  }
  if (ended_ || told_ || member_->is_sealed()) return;
  if (member_->quiesced()) membership_.on_quiesced(running_->run_key, network_.now_ms());
  if (member_->stopping()) membership_.on_stopping();
  const std::uint64_t now_ms = network_.now_ms();
  told_ = member_->failed() || member_->finished();
  if (member_->finished()) {
    ended_ = true;  // nothing more of this run is looked at
    reaches(Moment::kEnd);
    if (!dead()) membership_.on_finished(*member_->finished(), "", now_ms);
    return;
  }
  if (const auto& cause = member_->failed()) {
    if (!member_->unfit().empty()) return membership_.on_peer_lost(seat(), member_->unfit(), now_ms);
    if (cause->kind != ErrorKind::kUnreachable) {
      ended_ = true;
      return membership_.on_failed(*cause, now_ms);
    }
    for (const Seat peer : others())
      if (options_.names[peer] == cause->node) membership_.on_peer_lost(peer, cause->message, now_ms);
    return;
  }
  if (member_->reporting())
    phase_ = schema::Phase::kIdle;
  else if (!member_->waiting().ranks.empty())
    phase_ = member_->waiting().phase;
}

}  // namespace tg::simulation
