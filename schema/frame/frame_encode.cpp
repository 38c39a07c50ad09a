#include <algorithm>
#include <cstring>

#include "schema/frame.capnp.h"
#include "schema/frame/frame.h"
#include "schema/frame/frame_buffer.h"
#include "schema/text.h"
#include "schema/wire.h"

namespace tg::schema {
namespace {

void put(wire::Frame::Builder frame, const Hello& hello) {
  wire::Hello::Builder to = frame.initHello();
  to.setProtocol(hello.protocol);
  to.setBuild(text_of(clip_text(hello.build, kMostBuildBytes)));
  to.setNode(text_of(hello.node));
  to.setIncarnation(hello.incarnation);
  to.setNamesHash(hello.names_hash);
  to.setHeard(hello.heard);
  to.setSequence(hello.sequence);
  to.setEcho(hello.echo);
  to.setNames(text_of(clip_text(hello.names, kMostNamesBytes)));
  to.setWeight(hello.weight);
}

void put(wire::Frame::Builder frame, const Refusal& refusal) {
  wire::Refusal::Builder to = frame.initRefusal();
  to.setNode(text_of(refusal.node));
  to.setMessage(text_of(clip_text(refusal.message, kMostReasonBytes)));
}

void put(wire::Frame::Builder frame, const Claim& claim) { frame.initClaim().setRunId(text_of(claim.run_id)); }

void put(wire::Frame::Builder frame, const Grant& grant) {
  wire::Grant::Builder to = frame.initGrant();
  to.setGranted(grant.granted);
  to.setMessage(text_of(clip_text(grant.message, kMostReasonBytes)));
}

template <class Builder, class Values>
void put_list(Builder list, const Values& values) {
  capnp::uint at = 0;
  for (const auto value : values) list.set(at++, value);
}

capnp::uint count_of(std::size_t count, std::size_t most) {
  TG_CHECK(count <= most, count, most);
  return static_cast<capnp::uint>(count);
}

void put(wire::StateId::Builder to, const StateId& state) {
  to.setLineage(state.lineage);
  to.setView(state.view);
  to.setStep(state.step);
  to.setDigest(state.digest);
}

void put(wire::Frame::Builder frame, const Propose& propose) {
  wire::Propose::Builder to = frame.initPropose();
  to.setRunId(text_of(propose.run_id));
  to.setSpec(text_of(propose.spec));
  put_list(to.initWeights(count_of(propose.weights.size(), kMostMembers)), propose.weights);
  if (!propose.resume) return;
  wire::Resume::Builder resume = to.initResume();
  resume.setLineage(propose.resume->lineage);
  resume.setFromNewest(!propose.resume->from_step.has_value());
  resume.setFromStep(propose.resume->from_step.value_or(0));
  resume.setAnyBuild(propose.resume->any_build);
  if (propose.resume->start) put(resume.initStart(), *propose.resume->start);
}

void put(wire::Frame::Builder frame, const Offer& offer) {
  wire::Offer::Builder to = frame.initOffer();
  auto states = to.initStates(count_of(offer.states.size(), kMostStates));
  for (capnp::uint i = 0; i < states.size(); ++i) put(states[i], offer.states[i]);
  to.setProblem(text_of(clip_text(offer.problem, kMostReasonBytes)));
}

void put(wire::Frame::Builder frame, const Reached&) { frame.setReached(); }

void put(wire::Frame::Builder frame, const Vote& vote) {
  wire::Vote::Builder to = frame.initVote();
  to.setAccepted(vote.accepted);
  to.setKind(static_cast<std::uint16_t>(vote.kind));
  to.setMessage(text_of(clip_text(vote.message, kMostReasonBytes)));
  to.setSpecHash(vote.spec_hash);
  to.setModelHash(vote.model_hash);
  to.setDataHash(vote.data_hash);
  to.setStateHash(vote.state_hash);
  to.setStepSeconds(vote.step_seconds);
  to.setLocalBatch(vote.local_batch);
  to.setLinkMbps(vote.link_mbps);
  to.setWorkers(vote.workers);
}

void put(wire::Frame::Builder frame, const Commit& commit) {
  wire::Commit::Builder to = frame.initCommit();
  to.setExchange(static_cast<std::uint16_t>(commit.exchange));
  to.setCoding(static_cast<std::uint16_t>(commit.coding));
  to.setWindowBytes(commit.window_bytes);
  to.setChunkParameters(commit.chunk_parameters);
}

void put(wire::Frame::Builder frame, const Fail& fail) {
  wire::Fail::Builder to = frame.initFail();
  to.setKind(static_cast<std::uint16_t>(fail.kind));
  to.setNode(text_of(fail.node));
  to.setPhase(text_of(clip_text(fail.phase, kMostNameBytes)));
  to.setMessage(text_of(clip_text(fail.message, kMostReasonBytes)));
}

void put(wire::Frame::Builder frame, const StepFrame& step) {
  wire::StepFrame::Builder to = frame.initStepFrame();
  to.setRateBits(step.rate_bits);
  to.setFlags(step.flags);
  to.setNonFiniteSegment(step.non_finite_segment);
  to.setLossSum(step.loss_sum);
  put_list(to.initDigests(count_of(step.digests.size(), kMostDigests)), step.digests);
  put_list(to.initScalers(count_of(step.scalers.size(), kMostSegments)), step.scalers);
  put_list(to.initStatistics(count_of(step.statistics.size(), kMostStatistics)), step.statistics);
}

void put(wire::Frame::Builder frame, const Scalers& scalers) {
  wire::Scalers::Builder to = frame.initScalers();
  to.setBucket(scalers.bucket);
  to.setFlags(scalers.flags);
  to.setNonFiniteSegment(scalers.non_finite_segment);
  put_list(to.initScalers(count_of(scalers.scalers.size(), kMostSegments)), scalers.scalers);
}

void put(wire::Frame::Builder frame, const Report& report) {
  wire::Report::Builder to = frame.initReport();
  to.setLast(report.last);
  to.setCorrect(report.correct);
  to.setCorrect5(report.correct_5);
  to.setTotal(report.total);
  to.setLossSum(report.loss_sum);
  put_list(to.initDigests(count_of(report.digests.size(), kMostDigests)), report.digests);
}

void put(wire::Frame::Builder frame, const Goodbye& goodbye) {
  frame.initGoodbye().setReason(text_of(clip_text(goodbye.reason, kMostReasonBytes)));
}

void put(wire::Frame::Builder frame, const Credit& credit) { frame.initCredit().setTakenBytes(credit.taken_bytes); }

void put(wire::Frame::Builder frame, const Probe& probe) {
  wire::Probe::Builder to = frame.initProbe();
  to.setBurst(probe.burst);
  to.setLast(probe.last);
  const auto* filler = reinterpret_cast<const kj::byte*>(probe.filler.data());
  to.setFiller(kj::arrayPtr(filler, count_of(probe.filler.size(), kMostChunkPayloadBytes)));
}

void put(wire::Frame::Builder frame, const ProbeReply& reply) {
  wire::ProbeReply::Builder to = frame.initProbeReply();
  to.setBurst(reply.burst);
  to.setMicros(reply.micros);
}

void put(wire::Frame::Builder frame, const Ended& ended) {
  wire::Ended::Builder to = frame.initEnded();
  to.setState(static_cast<std::uint16_t>(ended.state));
  to.setReason(text_of(clip_text(ended.reason, kMostReasonBytes)));
  to.setSinceMs(ended.since_ms);
  to.setStep(ended.step);
  to.setDigest(ended.digest);
  to.setHeldStep(ended.held_step);
  to.setHeldDigest(ended.held_digest);
  to.setSave(static_cast<std::uint16_t>(ended.save));
  to.setProblem(text_of(clip_text(ended.problem, kMostProblemBytes)));
  to.setAsks(ended.asks);
}

void put(wire::Frame::Builder, const Chunk&) { TG_CHECK(false, "chunks have their own builder"); }

// Bytes of a body's texts and lists, before any clipping; the fixed fields are not counted.
std::size_t variable_bytes(const Hello& b) { return b.build.size() + b.node.size() + b.names.size(); }
std::size_t variable_bytes(const Refusal& b) { return b.node.size() + b.message.size(); }
std::size_t variable_bytes(const Claim& b) { return b.run_id.size(); }
std::size_t variable_bytes(const Grant& b) { return b.message.size(); }
std::size_t variable_bytes(const Propose& b) { return b.run_id.size() + b.spec.size() + b.weights.size() * 2; }
std::size_t variable_bytes(const Vote& b) { return b.message.size(); }
std::size_t variable_bytes(const Commit&) { return 0; }
std::size_t variable_bytes(const Fail& b) { return b.node.size() + b.phase.size() + b.message.size(); }
std::size_t variable_bytes(const StepFrame& b) {
  return b.digests.size() * 8 + (b.scalers.size() + b.statistics.size()) * 4;
}
std::size_t variable_bytes(const Scalers& b) { return b.scalers.size() * 4; }
std::size_t variable_bytes(const Chunk& b) { return b.payload.size(); }
std::size_t variable_bytes(const Report& b) { return b.digests.size() * 8; }
std::size_t variable_bytes(const Goodbye& b) { return b.reason.size(); }
std::size_t variable_bytes(const Credit&) { return 0; }
std::size_t variable_bytes(const Probe& b) { return b.filler.size(); }
std::size_t variable_bytes(const ProbeReply&) { return 0; }
std::size_t variable_bytes(const Ended& b) { return b.reason.size() + b.problem.size(); }
std::size_t variable_bytes(const Offer& b) {
  return b.states.size() * capnp::sizeInWords<wire::StateId>() * kWordBytes + b.problem.size();
}
std::size_t variable_bytes(const Reached&) { return 0; }

// Fixed fields, pointers, and the last partial word of each text and list: no body has more than 30 words of them.
constexpr std::size_t kFixedBytes = 256;
static_assert(kFixedBytes <= kFrameOverheadBytes, "limits.h counts this much beside texts and lists");

void set_header(wire::Frame::Builder frame, const FrameHeader& header) {
  frame.setRun(header.run);
  frame.setView(header.view);
  frame.setStep(header.step);
}

void write_table(std::byte* frame, std::size_t segment_words) {
  const std::uint32_t table[2] = {0, static_cast<std::uint32_t>(segment_words)};
  std::memcpy(frame, table, sizeof table);
}

}  // namespace

SharedFrame encode_frame(const FrameHeader& header, const FrameBody& body, FramePool& pool) {
  if (const auto* chunk = std::get_if<Chunk>(&body)) {
    ChunkFrameBuilder builder(header, chunk->chunk, chunk->phase, chunk->payload.size(), pool);
    if (!chunk->payload.empty()) std::memcpy(builder.payload().data(), chunk->payload.data(), chunk->payload.size());
    return builder.finish(chunk->payload.size(), chunk->format);
  }
  const std::size_t bound = std::visit([](const auto& b) { return variable_bytes(b); }, body) + kFixedBytes;
  const std::size_t bound_words = (bound + kWordBytes - 1) / kWordBytes;
  auto buffer = std::make_shared<PooledBytes>(pool.state(), bound_words * kWordBytes);
  std::memset(buffer->data(), 0, bound_words * kWordBytes);
  capnp::FlatMessageBuilder message(
      kj::arrayPtr(reinterpret_cast<capnp::word*>(buffer->data()) + kTableWords, bound_words - kTableWords));
  wire::Frame::Builder frame = message.initRoot<wire::Frame>();
  set_header(frame, header);
  std::visit([frame](const auto& b) { put(frame, b); }, body);
  const std::size_t words = message.getSegmentsForOutput()[0].size();
  write_table(buffer->data(), words);
  buffer->resize((kTableWords + words) * kWordBytes);
  return buffer;
}

// The payload is the last object of the segment and everything before it has a fixed size, so its place is known before
// its length is: the payload is written first, the words in front of it at the end.
constexpr std::size_t kPayloadBytesOffset =
    (kTableWords + 1 + capnp::sizeInWords<wire::Frame>() + capnp::sizeInWords<wire::Chunk>()) * kWordBytes;
static_assert(kPayloadBytesOffset == kChunkHeadBytes && kChunkHeadBytes % 64 == 0, "a payload begins on a cache line");
static_assert(kChunkHeadBytes <= kFrameOverheadBytes);

struct ChunkFrameBuilder::State {
  FrameHeader header;
  std::uint32_t chunk;
  ChunkPhase phase;
  std::size_t payload_bound;
  std::shared_ptr<PooledBytes> buffer;
};

ChunkFrameBuilder::ChunkFrameBuilder(const FrameHeader& header, std::uint32_t chunk, ChunkPhase phase,
                                     std::size_t payload_bound, FramePool& pool) {
  TG_CHECK(payload_bound <= kMostChunkPayloadBytes, payload_bound);
  auto buffer = std::make_shared<PooledBytes>(pool.state(), kPayloadBytesOffset + payload_bound + kWordBytes);
  state_ = std::make_unique<State>(State{header, chunk, phase, payload_bound, std::move(buffer)});
}

ChunkFrameBuilder::~ChunkFrameBuilder() = default;
ChunkFrameBuilder::ChunkFrameBuilder(ChunkFrameBuilder&&) noexcept = default;

std::span<std::byte> ChunkFrameBuilder::payload() {
  return {state_->buffer->data() + kPayloadBytesOffset, state_->payload_bound};
}

SharedFrame ChunkFrameBuilder::finish(std::size_t payload_bytes, PayloadFormat format) {
  TG_CHECK(payload_bytes <= state_->payload_bound, payload_bytes, state_->payload_bound);
  PooledBytes& buffer = *state_->buffer;
  const std::size_t payload_words = (payload_bytes + kWordBytes - 1) / kWordBytes;
  const std::size_t words = kPayloadBytesOffset / kWordBytes + payload_words;
  std::memset(buffer.data(), 0, kPayloadBytesOffset);
  std::memset(buffer.data() + kPayloadBytesOffset + payload_bytes, 0, payload_words * kWordBytes - payload_bytes);
  capnp::FlatMessageBuilder message(
      kj::arrayPtr(reinterpret_cast<capnp::word*>(buffer.data()) + kTableWords, words - kTableWords));
  wire::Frame::Builder frame = message.initRoot<wire::Frame>();
  set_header(frame, state_->header);
  wire::Chunk::Builder chunk = frame.initChunk();
  chunk.setChunk(state_->chunk);
  chunk.setPhase(static_cast<std::uint16_t>(state_->phase));
  chunk.setFormat(static_cast<std::uint16_t>(format));
  const capnp::Data::Builder payload = chunk.initPayload(static_cast<capnp::uint>(payload_bytes));
  const auto* expected = reinterpret_cast<const kj::byte*>(buffer.data() + kPayloadBytesOffset);
  TG_CHECK(payload_bytes == 0 || payload.begin() == expected, payload_bytes);
  write_table(buffer.data(), words - kTableWords);
  const std::size_t bytes = words * kWordBytes;
  buffer.resize(bytes);
  if (buffer.capacity() <= std::max(kMostBlockPerFrame * bytes, kSmallBlockBytes)) return std::move(state_->buffer);
  // Credit counts payload bytes; a waiting frame in a block as large as the bound would hold many more.
  auto smaller = std::make_shared<PooledBytes>(buffer.pool(), bytes);
  std::memcpy(smaller->data(), buffer.data(), bytes);
  smaller->resize(bytes);
  state_->buffer.reset();
  return smaller;
}

}  // namespace tg::schema
