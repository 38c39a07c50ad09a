#include "daemon/exchange/transfers.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

// The sender chooses whether each chunk is entropy-coded; the layout says whether it is codes, sums or floats.
bool fits(schema::PayloadFormat sent, GradientFormat planned, bool total) {
  using enum schema::PayloadFormat;
  switch (planned) {
    case GradientFormat::kTernary:
      return total ? sent == kSumsRaw || sent == kSumsRans : sent == kCodesRaw || sent == kCodesRans;
    case GradientFormat::kFloat32:
      return sent == kFloat32;
    case GradientFormat::kFloat16:
      return sent == kFloat16;
  }
  return false;
}

// Bytes of payload, for the credit while it is being made: Gaussian gradients have 0.17 per code, sums two to three
// bits.
std::size_t expected_bytes(const ChunkLayout& chunk, bool total) {
  if (chunk.coded()) return total ? chunk.size() * 3 / 8 : chunk.size() / 6;
  return chunk.size() * (chunk.format == GradientFormat::kFloat16 ? 2 : sizeof(float));
}

}  // namespace

void Transfers::begin_round(const Layout& layout, Round round) {
  TG_CHECK(to_apply_.empty(), round.value());
  layout_ = &layout;
  const std::size_t count = members_.count();
  buckets_.assign(layout.buckets.size(), Bucket{false, Per<Rank, std::size_t>(count), {}, {}});
  ChunkState untouched;
  untouched.held.assign(count, std::nullopt);
  untouched.missing = count - 1;
  chunks_.assign(layout.chunks.size(), untouched);
  peers_.assign(count, Peer{});
  applied_count_ = 0;
  count_frames();
  credit_.begin_round(count, layout.window_bytes, layout.credit_every_bytes());
}

// In the sharded exchange, codes come for the chunks summed here, and totals for the others.
void Transfers::count_frames() {
  for (const ChunkLayout& chunk : layout_->chunks)
    for (const Rank r : members_.ranks())
      peers_[r].to_come += layout_->sharded() ? (chunk.owner == members_.self) + (chunk.owner == r) : 1;
}

void Transfers::count_owed(std::size_t bucket) {
  const BucketLayout& layout = layout_->buckets[bucket];
  std::size_t here = 0;
  for (std::size_t c = layout.first_chunk; c < layout.last_chunk; ++c) {
    if (is_summed_here(layout_->chunks[c]))
      ++here;
    else
      ++peers_[layout_->chunks[c].owner].totals_owed;
  }
  for (const Rank r : members_.ranks())
    if (r != members_.self) peers_[r].contributions_owed += here - buckets_[bucket].before_open[r];
}

void Transfers::open(std::size_t bucket) {
  buckets_[bucket].open = true;
  count_owed(bucket);
  const BucketLayout& layout = layout_->buckets[bucket];
  const std::size_t count = members_.count();
  // Staggered: of every `count` chunks in a row, which have an owner each, a member begins with the next rank's. So no
  // owner is first for all, and the parts of a sum arrive together.
  std::vector<std::size_t> order(layout.last_chunk - layout.first_chunk);
  std::iota(order.begin(), order.end(), layout.first_chunk);
  const auto turn = [&](std::size_t index) {
    const std::size_t row = (index - layout.first_chunk) / count;
    return std::pair(row, (layout_->chunks[index].owner.index() + count - 1 - members_.self.index()) % count);
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return turn(a) < turn(b); });
  for (const std::size_t index : order) {
    const bool own_codes_stay = count == 1 || (layout_->sharded() && layout_->chunks[index].owner == members_.self);
    if (!own_codes_stay) {
      buckets_[bucket].to_contribute.push_back(index);
      for (const Rank r : receivers(index)) ++peers_[r].to_contribute;
      continue;
    }
    chunks_[index].contributed = true;  // our codes are made when the chunk is summed
    reduce_if_complete(index);
  }
}

void Transfers::reduce_if_complete(std::size_t index) {
  ChunkState& state = chunks_[index];
  const ChunkLayout& chunk = layout_->chunks[index];
  if (!is_summed_here(chunk) || state.missing > 0 || !state.contributed || state.reducing) return;
  state.reducing = true;
  buckets_[chunk.bucket].to_reduce.push_back(index);
}

// --- frames ---

Transfers::Violation Transfers::violation_of(Rank from, const schema::Chunk& chunk) const {
  const std::string who = members_.names[from] + " sent chunk " + std::to_string(chunk.chunk);
  const bool total = chunk.phase == schema::ChunkPhase::kTotal;
  const auto because = [&](std::string why) { return members_.cause(from, total ? "gather" : "reduce", who + why); };
  if (chunk.chunk >= chunks_.size())
    return because(", which is not in the layout of " + std::to_string(chunks_.size()));
  const ChunkLayout& layout = layout_->chunks[chunk.chunk];
  const ChunkState& state = chunks_[chunk.chunk];
  const bool to_me =
      total ? layout_->sharded() && layout.owner == from && buckets_[layout.bucket].open : is_summed_here(layout);
  if (!to_me) return because(" to the wrong member");
  if (!fits(chunk.format, layout.format, total)) return because(" in a format that the layout does not have");
  if (total && !state.contributed) return because(", summed without the codes of " + members_.own_name());
  if (total ? state.total_came : state.reducing || state.held[from].has_value()) return because(" twice");
  return std::nullopt;
}

Transfers::Taken Transfers::on_chunk(Rank from, const schema::Chunk& chunk, std::shared_ptr<const void> keep) {
  if (Violation wrong = violation_of(from, chunk)) return {std::move(wrong)};
  Peer& peer = peers_[from];
  --peer.to_come;
  const std::size_t bucket = layout_->chunks[chunk.chunk].bucket;
  ChunkState& state = chunks_[chunk.chunk];
  if (chunk.phase == schema::ChunkPhase::kTotal) {
    state.total_came = true;
    --peer.totals_owed;
    to_apply_.push_back({bucket, chunk.chunk, from, {chunk, std::move(keep)}});
    return {};
  }
  state.held[from] = ReceivedChunk{chunk, std::move(keep)};
  --state.missing;
  if (buckets_[bucket].open)
    --peer.contributions_owed;
  else
    ++buckets_[bucket].before_open[from];
  reduce_if_complete(chunk.chunk);
  return {std::nullopt, on_taken(from, chunk.payload.size())};
}

std::optional<std::uint64_t> Transfers::handed_out(const Apply& apply) {
  return on_taken(apply.owner, apply.total.chunk.payload.size());
}

std::optional<std::uint64_t> Transfers::on_taken(Rank from, std::size_t bytes) {
  const std::optional<std::uint64_t> credit = credit_.on_taken(from, bytes);
  return peers_[from].to_come > 0 ? credit : std::nullopt;  // else it has sent all and needs none
}

Transfers::Violation Transfers::on_credit(Rank from, const schema::Credit& credit) {
  if (credit_.on_granted(from, credit.taken_bytes)) return std::nullopt;
  return members_.cause(from, "exchange",
                        members_.names[from] + " gives credit for " + std::to_string(credit.taken_bytes) +
                            " bytes where " + std::to_string(credit_.sent_to(from)) + " were sent");
}

// --- tasks ---

std::optional<Task> Transfers::next() {
  if (!to_apply_.empty()) {
    Apply apply = std::move(to_apply_.front());
    to_apply_.pop_front();
    return apply;
  }
  for (std::size_t b = buckets_.size(); b-- > 0;) {
    if (auto reduce = next_reduce(b)) return reduce;
    if (auto contribute = next_contribution(b)) return contribute;
  }
  return std::nullopt;
}

std::optional<Task> Transfers::next_reduce(std::size_t bucket) {
  std::deque<std::size_t>& queue = buckets_[bucket].to_reduce;
  if (queue.empty()) return std::nullopt;
  std::vector<Rank> to = layout_->sharded() ? members_.others() : std::vector<Rank>{};
  if (!to.empty() && !credit_.has_credit_for_totals()) return std::nullopt;
  const std::size_t index = queue.front();
  queue.pop_front();
  credit_.reserve(to, expected_bytes(layout_->chunks[index], true));
  return Reduce{bucket, index, std::move(chunks_[index].held), std::move(to)};
}

// The receivers of our own part of a chunk that is summed elsewhere, or everywhere.
std::vector<Rank> Transfers::receivers(std::size_t chunk) const {
  return layout_->sharded() ? std::vector<Rank>{layout_->chunks[chunk].owner} : members_.others();
}

std::optional<Task> Transfers::next_contribution(std::size_t bucket) {
  std::deque<std::size_t>& queue = buckets_[bucket].to_contribute;
  if (queue.empty()) return std::nullopt;
  const bool to_all = !layout_->sharded() && credit_.has_credit(members_.others());
  for (auto at = queue.begin(); at != queue.end(); ++at) {
    const std::size_t index = *at;
    const Rank owner = layout_->chunks[index].owner;
    if (layout_->sharded() ? !credit_.has_credit(owner) : !to_all) continue;
    std::vector<Rank> to = receivers(index);
    for (const Rank r : to) --peers_[r].to_contribute;
    queue.erase(at);
    credit_.reserve(to, expected_bytes(layout_->chunks[index], false));
    return Contribute{bucket, index, std::move(to)};
  }
  return std::nullopt;
}

void Transfers::on_contributed(std::size_t chunk, const std::vector<Rank>& to, std::size_t payload_bytes) {
  credit_.sent(to, payload_bytes, expected_bytes(layout_->chunks[chunk], false));
  chunks_[chunk].contributed = true;
  reduce_if_complete(chunk);
}

void Transfers::on_total_sent(std::size_t chunk, const std::vector<Rank>& to, std::size_t payload_bytes) {
  credit_.sent(to, payload_bytes, expected_bytes(layout_->chunks[chunk], true));
}

void Transfers::on_applied(std::size_t chunk) {
  TG_CHECK(!chunks_[chunk].applied, chunk);
  chunks_[chunk].applied = true;
  ++applied_count_;
}

// --- waiting ---

// Whether a peer that has not given credit keeps our own chunks from leaving.
bool Transfers::blocks_our_chunks(Rank peer) const {
  if (peers_[peer].to_contribute > 0 && !credit_.has_credit(peer)) return true;
  const auto has_totals = [](const Bucket& bucket) { return !bucket.to_reduce.empty(); };
  return layout_->sharded() && credit_.totals_window_full(peer) && std::ranges::any_of(buckets_, has_totals);
}

Waiting Transfers::waiting() const {
  Waiting waiting;
  const auto add = [&](schema::Phase phase, auto waited_for) {
    for (const Rank r : members_.ranks())
      if (r != members_.self && waited_for(r)) waiting.ranks.push_back(r);
    if (!waiting.ranks.empty()) waiting.phase = phase;
  };
  // In the direct exchange one full window stops a member's codes to all: what the others owe waits for the same peer.
  if (!layout_->sharded()) add(schema::Phase::kReduce, [&](Rank r) { return blocks_our_chunks(r); });
  if (waiting.ranks.empty())
    add(schema::Phase::kReduce, [&](Rank r) { return peers_[r].contributions_owed > 0 || blocks_our_chunks(r); });
  if (waiting.ranks.empty()) add(schema::Phase::kGather, [&](Rank r) { return peers_[r].totals_owed > 0; });
  return waiting;
}

}  // namespace tg::daemon
