#include <algorithm>
#include <cstring>

#include "schema/described/wire_form.h"
#include "schema/frame.capnp.h"
#include "schema/frame/frame.h"
#include "schema/frame/frame_buffer.h"
#include "schema/text.h"
#include "schema/wire.h"

namespace tg::schema {
namespace {

template <class Builder, class Values>
void write_list(Builder list, const Values& values) {
  capnp::uint at = 0;
  for (const auto& value : values) {
    if constexpr (std::same_as<typename Values::value_type, std::string>)
      list.set(at++, text_of(value));
    else
      list.set(at++, value);
  }
}

capnp::uint count_of(std::size_t count, std::size_t max) {
  TG_CHECK(count <= max, count, max);
  return static_cast<capnp::uint>(count);
}

void write(wire::StateId::Builder to, const StateId& state) {
  fields(state, WireWriter(capnp::DynamicStruct::Builder(to)));
}

void write(wire::Frame::Builder frame, const Propose& propose) {
  wire::Propose::Builder to = frame.initPropose();
  to.setRunId(text_of(propose.run_id));
  to.setSpec(text_of(propose.spec));
  write_list(to.initWeights(count_of(propose.weights.size(), kMaxMembers)), propose.weights);
  write_list(to.initMembers(count_of(propose.members.size(), kMaxMembers)), propose.members);
  write_list(to.initNames(count_of(propose.names.size(), kMaxMembers)), propose.names);
  if (!propose.resume) return;
  wire::Resume::Builder resume = to.initResume();
  resume.setLineage(propose.resume->lineage);
  resume.setFromNewest(!propose.resume->from_step.has_value());
  resume.setFromStep(propose.resume->from_step.value_or(0));
  resume.setAnyBuild(propose.resume->any_build);
  resume.setUnasked(propose.resume->unasked);
  if (propose.resume->start) write(resume.initStart(), *propose.resume->start);
}

void write(wire::Frame::Builder frame, const StepFrame& step) {
  wire::StepFrame::Builder to = frame.initStepFrame();
  to.setRateBits(step.rate_bits);
  to.setFlags(step.flags);
  to.setNonFiniteSegment(step.non_finite_segment);
  to.setLossSum(step.loss_sum);
  write_list(to.initDigests(count_of(step.digests.size(), kMaxDigests)), step.digests);
  write_list(to.initScalers(count_of(step.scalers.size(), kMaxSegments)), step.scalers);
  write_list(to.initStatistics(count_of(step.statistics.size(), kMaxStatistics)), step.statistics);
}

void write(wire::Frame::Builder frame, const Scalers& scalers) {
  wire::Scalers::Builder to = frame.initScalers();
  to.setBucket(scalers.bucket);
  to.setFlags(scalers.flags);
  to.setNonFiniteSegment(scalers.non_finite_segment);
  write_list(to.initScalers(count_of(scalers.scalers.size(), kMaxSegments)), scalers.scalers);
}

void write(wire::Frame::Builder frame, const Credit& credit) { frame.initCredit().setTakenBytes(credit.taken_bytes); }

void write(wire::Frame::Builder frame, const Probe& probe) {
  wire::Probe::Builder to = frame.initProbe();
  to.setBurst(probe.burst);
  to.setLast(probe.last);
  const auto* filler = reinterpret_cast<const kj::byte*>(probe.filler.data());
  to.setFiller(kj::arrayPtr(filler, count_of(probe.filler.size(), kMaxChunkPayloadBytes)));
}

void write(wire::Frame::Builder frame, const SnapshotChunk& slice) {
  wire::SnapshotChunk::Builder to = frame.initSnapshotChunk();
  to.setAt(slice.at);
  const auto* payload = reinterpret_cast<const kj::byte*>(slice.payload.data());
  to.setPayload(kj::arrayPtr(payload, count_of(slice.payload.size(), kMaxChunkPayloadBytes)));
}

void write(wire::Frame::Builder, const Chunk&) { TG_CHECK(false, "chunks have their own builder"); }

// A name in a list takes a pointer and at most one word more than its bytes.
std::size_t bytes_of(const std::vector<std::string>& names) {
  std::size_t bytes = 0;
  for (const std::string& name : names) bytes += name.size() + 2 * kWordBytes;
  return bytes;
}
template <class Value>
std::size_t bytes_of(const Value& value) {
  return std::span(value).size_bytes();
}

// The bytes of a body's texts and lists before they are clipped; fixed fields are not counted.
template <Described Body>
std::size_t variable_bytes(const Body& body) {
  std::size_t bytes = 0;
  fields(body, [&](const char*, const auto& value, const Rule& = {}) {
    if constexpr (requires { value.data(); }) bytes += bytes_of(value);
  });
  return bytes;
}
std::size_t variable_bytes(const Accept& b) { return variable_bytes(b.view); }
std::size_t variable_bytes(const Decide& b) { return variable_bytes(b.view); }
std::size_t variable_bytes(const Promise& b) {
  return b.unfit.size() + bytes_of(b.reachable) + variable_bytes(b.accepted) + 2 * 8;
}
std::size_t variable_bytes(const Join& b) { return b.run_id.size() + variable_bytes(b.vote) + bytes_of(b.reachable); }
std::size_t variable_bytes(const Invite& b) {
  return b.run_id.size() + b.spec.size() + b.weights.size() * 2 + variable_bytes(b.view) + variable_bytes(b.choice);
}
std::size_t variable_bytes(const Propose& b) {
  return b.run_id.size() + b.spec.size() + b.weights.size() * 2 + b.members.size() * 4 + bytes_of(b.names);
}
std::size_t variable_bytes(const StepFrame& b) {
  return b.digests.size() * 8 + (b.scalers.size() + b.statistics.size()) * 4;
}
std::size_t variable_bytes(const Scalers& b) { return b.scalers.size() * 4; }
std::size_t variable_bytes(const Chunk& b) { return b.payload.size(); }
std::size_t variable_bytes(const Credit&) { return 0; }
std::size_t variable_bytes(const Probe& b) { return b.filler.size(); }
std::size_t variable_bytes(const SnapshotChunk& b) { return b.payload.size(); }

// Fixed fields, pointers, and the last partial word of each text and list take at most 60 words in any body.
constexpr std::size_t kFixedBytes = 512;
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
  std::visit(
      [&]<class Body>(const Body& b) {
        if constexpr (Described<Body>)
          write_member(capnp::DynamicStruct::Builder(frame), body.index(), b);
        else
          write(frame, b);
      },
      body);
  const std::size_t words = message.getSegmentsForOutput()[0].size();
  write_table(buffer->data(), words);
  buffer->resize((kTableWords + words) * kWordBytes);
  return buffer;
}

// The payload is the last object of the segment, and everything before it has a fixed size, so its offset is known
// before its length: the payload is written first, the words in front of it last.
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
  TG_CHECK(payload_bound <= kMaxChunkPayloadBytes, payload_bound);
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
  if (buffer.capacity() <= std::max(kMaxBlockPerFrame * bytes, kSmallBlockBytes)) return std::move(state_->buffer);
  // Credit counts payload bytes, and a queued frame in a block as large as the bound would take many more.
  auto smaller = std::make_shared<PooledBytes>(buffer.pool(), bytes);
  std::memcpy(smaller->data(), buffer.data(), bytes);
  smaller->resize(bytes);
  state_->buffer.reset();
  return smaller;
}

}  // namespace tg::schema
