#include "tests/simulation/exchange/exchange_node.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "kernels/base/check.h"
#include "tests/simulation/simulator/awkward_home.h"
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
      home_(home_under_test(kernels_)),
      tensors_(home_->make_kernels()),
      faults_(faults),
      helpers_(seat().index() % 3),
      drawn_(tiny_segments().padded_count()),
      gradient_(*home_, tiny_segments().padded_count()) {}

std::uint64_t ExchangeNode::digest() const { return daemon::Replica::combine(replica_->segment_digests()); }

schema::Vote ExchangeNode::prepare_run(const daemon::RunIdentity& run) {
  job_ = schema::parse_job(run.spec, "job").value();
  const engine::Model& model = tiny_model();
  helper_.reset();
  member_.reset();
  helped_ = 0;
  replica_ = std::make_unique<daemon::Replica>(*home_, model, engine::slot_count(daemon::optimizer_of(job_).kind),
                                               job_.seed, daemon::keeps_average(job_));
  member_ = std::make_unique<daemon::Member>(
      daemon::Member::Options{run.key, daemon::View::of_all(options_.names.size()), seat(), options_.names,
                              Per<Rank, std::uint16_t>(options_.names.size(), 1), job_, false,
                              schema::resolved_global_batch(job_, options_.names.size())},
      model, static_cast<daemon::Member::Delegate&>(*this));
  ended_ = false;
  schema::Vote vote = options_.vote;
  vote.spec_hash = schema::job_hash(job_);
  vote.model_hash = model.hash();
  vote.state_hash = digest();
  return vote;
}

void ExchangeNode::run_begins(const schema::Commit& choice) {
  member_->begin(choice, {*home_, kernels_, *replica_, gradient_.floats(), pool_});
  helper_ = member_->make_worker();
  settle();
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
}

// --- steps ---

void ExchangeNode::step_begins(Step step) {
  step_ = step.value();
  phase_ = schema::Phase::kBackward;
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
    network_.after(seat(), delay_us, [this, key = running_->key, step, bucket] { ready(key, step, bucket); });
  }
}

void ExchangeNode::ready(std::uint64_t key, std::uint64_t step, std::size_t bucket) {
  if (!trains(key)) return;
  ++progress_;
  daemon::GradientReady event{{daemon::View::kFirst, Step(step)}, bucket, draw_loss(job_.seed, seat().index(), step)};
  if (bucket == 0) event.statistics = draw_statistics(job_.seed, seat().index(), step);
  if (bucket == 0 && faults_.odd_statistic == step) event.statistics.back() = -std::numeric_limits<float>::infinity();
  member_->on(event);
  settle();
  carry_out_all();
}

void ExchangeNode::run_frame(Seat from, const SharedMessage& message) {
  schema::Frame frame = schema::decode_frame(message->bytes->bytes()).value();
  if (!member_ || ended_ || membership_.current() == nullptr || frame.header.run != membership_.current()->key) return;
  if (member_->begun() && frame.header.step == member_->step().next().value()) ++next_step_frames_;
  member_->frame(from, frame.header, frame.body, message);
  const auto* report = std::get_if<schema::Report>(&frame.body);
  if (report != nullptr && report->last) membership_.peer_finished(from);
  settle();
}

// A piece is carried out some time after it was given, and its result comes back some time after that.
void ExchangeNode::help(daemon::Piece piece) {
  ++helped_;
  ++helped_pieces_;
  const auto given = std::make_shared<daemon::Piece>(std::move(piece));
  network_.after(
      seat(), network_.random().between(1, 2'000), [this, key = running_->key, of = member_->origin(), given] {
        if (!trains(key)) return;
        daemon::PieceResult result = helper_->execute(*given, [this, of](daemon::MadeFrame total) {
          member_->on(daemon::TotalMade{of, std::move(total)});
        });
        network_.after(seat(), network_.random().between(1, 2'000), [this, key, of, given, result = std::move(result)] {
          if (!trains(key)) return;
          --helped_;
          ++progress_;
          member_->on(daemon::PieceDone{of, std::move(*given), result});
          settle();
          carry_out_all();
        });
        settle();
        carry_out_all();
      });
}

// Work at once, as a node with nothing else to do; then what came of it.
void ExchangeNode::settle() {
  while (helpers_ == 0) {
    std::optional<daemon::Piece> piece = member_->next_piece(daemon::Taker::kOnlyThread);
    if (!piece) break;
    member_->execute(*std::move(piece));
    ++progress_;
  }
  if (network_.random().one_in(2)) member_->use_idle_time();
  while (helped_ < 2 * helpers_) {
    std::optional<daemon::Piece> piece =
        member_->next_piece(helped_ < helpers_ ? daemon::Taker::kIdleThread : daemon::Taker::kBusyThread);
    if (!piece) break;
    help(*std::move(piece));
    ++progress_;
  }
  if (ended_) return;
  if (member_->stopping()) membership_.stopping();
  if (member_->failed() || member_->finished()) {
    ended_ = true;  // nothing more of this run is looked at
    if (member_->failed())
      membership_.failed(*member_->failed(), network_.now_ms());
    else
      membership_.finished(*member_->finished(), "", network_.now_ms());
    return;
  }
  if (member_->reporting())
    phase_ = schema::Phase::kIdle;
  else if (!member_->waiting().ranks.empty())
    phase_ = member_->waiting().phase;
}

}  // namespace tg::simulation
