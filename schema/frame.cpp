#include "schema/frame.h"

#include <cmath>
#include <cstring>

#include "schema/frame.capnp.h"
#include "schema/frame_buffer.h"
#include "schema/text.h"
#include "schema/wire.h"

namespace tg::schema {
namespace {

constexpr ErrorKind kLastErrorKind = ErrorKind::kTimeout;

// --- Encoding. -------------------------------------------------------------------------------------------------------

void put(wire::Frame::Builder frame, const Hello& hello) {
  wire::Hello::Builder to = frame.initHello();
  to.setProtocol(hello.protocol);
  to.setBuild(text_of(clip_text(hello.build, kMostBuildBytes)));
  to.setNode(text_of(hello.node));
  to.setIncarnation(hello.incarnation);
  to.setNamesHash(hello.names_hash);
  to.setHeard(hello.heard);
}

void put(wire::Frame::Builder frame, const Claim& claim) { frame.initClaim().setRunId(text_of(claim.run_id)); }

void put(wire::Frame::Builder frame, const Grant& grant) {
  wire::Grant::Builder to = frame.initGrant();
  to.setGranted(grant.granted);
  to.setMessage(text_of(clip_text(grant.message, kMostReasonBytes)));
}

void put(wire::Frame::Builder frame, const Propose& propose) {
  wire::Propose::Builder to = frame.initPropose();
  to.setRunId(text_of(propose.run_id));
  to.setSpec(text_of(propose.spec));
}

template <class Builder, class Values>
void put_list(Builder list, const Values& values) {
  for (std::size_t i = 0; i < values.size(); ++i) list.set(static_cast<capnp::uint>(i), values[i]);
}

capnp::uint count_of(std::size_t count, std::size_t most) {
  TG_CHECK(count <= most, count, most);
  return static_cast<capnp::uint>(count);
}

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
  put_list(to.initCodecSeconds(count_of(vote.codec_seconds.size(), kMostChoices)), vote.codec_seconds);
  put_list(to.initSentBits(count_of(vote.sent_bits.size(), kMostChoices)), vote.sent_bits);
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

void put(wire::Frame::Builder, const Chunk&) { TG_CHECK(false, "chunks have their own builder"); }

// Bytes of the texts and lists of a body, before any clipping: what its fixed fields do not cover.
std::size_t variable_bytes(const Hello& b) { return b.build.size() + b.node.size(); }
std::size_t variable_bytes(const Claim& b) { return b.run_id.size(); }
std::size_t variable_bytes(const Grant& b) { return b.message.size(); }
std::size_t variable_bytes(const Propose& b) { return b.run_id.size() + b.spec.size(); }
std::size_t variable_bytes(const Vote& b) {
  return b.message.size() + (b.codec_seconds.size() + b.sent_bits.size()) * 8;
}
std::size_t variable_bytes(const Commit&) { return 0; }
std::size_t variable_bytes(const Fail& b) { return b.node.size() + b.phase.size() + b.message.size(); }
std::size_t variable_bytes(const StepFrame& b) { return b.digests.size() * 8 + b.scalers.size() * 4; }
std::size_t variable_bytes(const Scalers& b) { return b.scalers.size() * 4; }
std::size_t variable_bytes(const Chunk& b) { return b.payload.size(); }
std::size_t variable_bytes(const Report& b) { return b.digests.size() * 8; }
std::size_t variable_bytes(const Goodbye& b) { return b.reason.size(); }
std::size_t variable_bytes(const Credit&) { return 0; }
std::size_t variable_bytes(const Probe& b) { return b.filler.size(); }
std::size_t variable_bytes(const ProbeReply&) { return 0; }

// Fixed fields, pointers, and the last partial word of each text and list: no body has more than 30 words of them.
constexpr std::size_t kFixedBytes = 256;

void set_header(wire::Frame::Builder frame, const FrameHeader& header) {
  frame.setRun(header.run);
  frame.setView(header.view);
  frame.setStep(header.step);
}

void write_table(std::byte* frame, std::size_t segment_words) {
  const std::uint32_t table[2] = {0, static_cast<std::uint32_t>(segment_words)};
  std::memcpy(frame, table, sizeof table);
}

// --- Decoding. -------------------------------------------------------------------------------------------------------

Hello take(wire::Hello::Reader from) {
  Hello hello;
  hello.protocol = from.getProtocol();
  hello.build = checked_text(from.getBuild(), kMostBuildBytes, "build");
  hello.node = checked_node(from.getNode(), "node");
  hello.incarnation = from.getIncarnation();
  hello.names_hash = from.getNamesHash();
  hello.heard = from.getHeard();
  return hello;
}

Claim take(wire::Claim::Reader from) { return {checked_run(from.getRunId(), "run id")}; }

Grant take(wire::Grant::Reader from) {
  return {from.getGranted(), checked_text(from.getMessage(), kMostReasonBytes, "message")};
}

Propose take(wire::Propose::Reader from) {
  return {checked_run(from.getRunId(), "run id"), checked_lines(from.getSpec(), kMostSpecBytes, "spec")};
}

template <class Value>
std::vector<Value> take_list(typename capnp::List<Value>::Reader list, std::size_t most, const char* field) {
  checked_below(list.size(), most + 1, field);
  std::vector<Value> values;
  values.reserve(list.size());
  for (const Value value : list) values.push_back(value);
  return values;
}

double checked_measurement(double value, const char* field) {
  if (!std::isfinite(value) || value < 0) throw Odd{std::string(field) + " is no measurement"};
  return value;
}

Vote take(wire::Vote::Reader from) {
  Vote vote;
  vote.accepted = from.getAccepted();
  vote.kind = checked_enum(from.getKind(), kLastErrorKind, "kind");
  vote.message = checked_text(from.getMessage(), kMostReasonBytes, "message");
  vote.spec_hash = from.getSpecHash();
  vote.model_hash = from.getModelHash();
  vote.data_hash = from.getDataHash();
  vote.state_hash = from.getStateHash();
  vote.step_seconds = checked_measurement(from.getStepSeconds(), "step seconds");
  vote.local_batch = from.getLocalBatch();
  vote.link_mbps = checked_measurement(from.getLinkMbps(), "link rate");
  vote.codec_seconds = take_list<double>(from.getCodecSeconds(), kMostChoices, "codec seconds");
  for (const double seconds : vote.codec_seconds) checked_measurement(seconds, "codec seconds");
  vote.sent_bits = take_list<double>(from.getSentBits(), kMostChoices, "sent bits");
  for (const double bits : vote.sent_bits) checked_measurement(bits, "sent bits");
  return vote;
}

Commit take(wire::Commit::Reader from) {
  const std::uint64_t window = from.getWindowBytes(), chunk = from.getChunkParameters();
  if (window < kLeastWindowBytes) throw Odd{"a window of " + std::to_string(window) + " bytes"};
  if (chunk < kSmallChunkParameters) throw Odd{"chunks of " + std::to_string(chunk) + " parameters"};
  return {checked_enum(from.getExchange(), ExchangeKind::kSharded, "exchange"),
          checked_enum(from.getCoding(), Coding::kEntropy, "coding"),
          checked_below(window, kMostWindowBytes + 1, "window bytes"),
          checked_below(chunk, kLargeChunkParameters + 1, "chunk parameters")};
}

Fail take(wire::Fail::Reader from) {
  Fail fail;
  fail.kind = checked_enum(from.getKind(), kLastErrorKind, "kind");
  fail.node = checked_node_or_empty(from.getNode(), "node");
  fail.phase = checked_text(from.getPhase(), kMostNameBytes, "phase");
  fail.message = checked_text(from.getMessage(), kMostReasonBytes, "message");
  return fail;
}

std::uint32_t checked_flags(std::uint32_t flags) {
  if ((flags & ~kKnownStepFlags) != 0) throw Odd{"unknown step flags"};
  return flags;
}

std::vector<std::uint64_t> take_digests(capnp::List<std::uint64_t>::Reader list) {
  return take_list<std::uint64_t>(list, kMostDigests, "digests");
}

// A scaler is a magnitude. One that is none may only come with the flag that ends the run, and is read as 0.
std::vector<float> take_scalers(capnp::List<float>::Reader list, std::uint32_t flags) {
  std::vector<float> scalers = take_list<float>(list, kMostSegments, "scalers");
  for (float& scaler : scalers) {
    if (std::isfinite(scaler) && !std::signbit(scaler)) continue;
    if ((flags & kNonFinite) == 0) throw Odd{"a scaler is not finite or is negative"};
    scaler = 0;
  }
  return scalers;
}

StepFrame take(wire::StepFrame::Reader from) {
  StepFrame step;
  step.rate_bits = from.getRateBits();
  step.flags = checked_flags(from.getFlags());
  step.non_finite_segment =
      static_cast<std::uint32_t>(checked_below(from.getNonFiniteSegment(), kMostSegments, "non-finite segment"));
  step.loss_sum = from.getLossSum();
  if (!std::isfinite(step.loss_sum)) {
    if ((step.flags & kNonFinite) == 0) throw Odd{"the loss is not finite"};
    step.loss_sum = 0;
  }
  step.digests = take_digests(from.getDigests());
  step.scalers = take_scalers(from.getScalers(), step.flags);
  return step;
}

Scalers take(wire::Scalers::Reader from) {
  Scalers scalers;
  scalers.bucket = static_cast<std::uint32_t>(checked_below(from.getBucket(), kMostBuckets, "bucket"));
  scalers.flags = checked_flags(from.getFlags());
  scalers.non_finite_segment =
      static_cast<std::uint32_t>(checked_below(from.getNonFiniteSegment(), kMostSegments, "non-finite segment"));
  scalers.scalers = take_scalers(from.getScalers(), scalers.flags);
  return scalers;
}

Chunk take(wire::Chunk::Reader from, const AlignedMessage& message) {
  Chunk chunk;
  chunk.chunk = static_cast<std::uint32_t>(checked_below(from.getChunk(), kMostChunks, "chunk"));
  chunk.phase = checked_enum(from.getPhase(), ChunkPhase::kTotal, "chunk phase");
  chunk.format = checked_enum(from.getFormat(), PayloadFormat::kFloat16, "payload format");
  chunk.payload = message.original(from.getPayload());
  checked_below(chunk.payload.size(), kMostChunkPayloadBytes + 1, "payload bytes");
  return chunk;
}

Report take(wire::Report::Reader from) {
  Report report;
  report.last = from.getLast();
  report.correct = from.getCorrect();
  report.total = from.getTotal();
  if (report.correct > report.total) throw Odd{"more samples are right than there are"};
  report.loss_sum = from.getLossSum();
  report.digests = take_digests(from.getDigests());
  return report;
}

Goodbye take(wire::Goodbye::Reader from) { return {checked_text(from.getReason(), kMostReasonBytes, "reason")}; }

Probe take(wire::Probe::Reader from, const AlignedMessage& message) {
  Probe probe{from.getBurst(), from.getLast(), message.original(from.getFiller())};
  checked_below(probe.filler.size(), kMostChunkPayloadBytes + 1, "filler bytes");
  return probe;
}

FrameBody take_body(wire::Frame::Reader frame, const AlignedMessage& message) {
  switch (frame.which()) {
    case wire::Frame::HELLO:
      return take(frame.getHello());
    case wire::Frame::CLAIM:
      return take(frame.getClaim());
    case wire::Frame::GRANT:
      return take(frame.getGrant());
    case wire::Frame::PROPOSE:
      return take(frame.getPropose());
    case wire::Frame::VOTE:
      return take(frame.getVote());
    case wire::Frame::COMMIT:
      return take(frame.getCommit());
    case wire::Frame::FAIL:
      return take(frame.getFail());
    case wire::Frame::STEP_FRAME:
      return take(frame.getStepFrame());
    case wire::Frame::SCALERS:
      return take(frame.getScalers());
    case wire::Frame::CHUNK:
      return take(frame.getChunk(), message);
    case wire::Frame::REPORT:
      return take(frame.getReport());
    case wire::Frame::GOODBYE:
      return take(frame.getGoodbye());
    case wire::Frame::CREDIT:
      return Credit{frame.getCredit().getTakenBytes()};
    case wire::Frame::PROBE:
      return take(frame.getProbe(), message);
    case wire::Frame::PROBE_REPLY:
      return ProbeReply{frame.getProbeReply().getBurst(), frame.getProbeReply().getMicros()};
  }
  throw Odd{"unknown union member " + std::to_string(static_cast<unsigned>(frame.which()))};
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
static_assert(kPayloadBytesOffset == 64, "the payload of a block begins on a cache line");
static_assert(kPayloadBytesOffset <= kFrameOverheadBytes);

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
  buffer.resize(words * kWordBytes);
  return std::move(state_->buffer);
}

Result<Frame> decode_frame(std::span<const std::byte> bytes) {
  return guarded<Frame>("frame", [bytes]() -> Result<Frame> {
    const AlignedMessage message(bytes, kMostFrameBytes);
    capnp::FlatArrayMessageReader reader(message.words(), reader_options(message.words().size()));
    const wire::Frame::Reader from = reader.getRoot<wire::Frame>();
    return Frame{{from.getRun(), from.getView(), from.getStep()}, take_body(from, message)};
  });
}

std::string_view frame_name(const FrameBody& body) {
  static constexpr std::string_view kNames[] = {"hello",  "claim",   "grant",  "propose", "vote",
                                                "commit", "fail",    "step",   "scalers", "chunk",
                                                "report", "goodbye", "credit", "probe",   "probe reply"};
  static_assert(std::size(kNames) == std::variant_size_v<FrameBody>);
  return kNames[body.index()];
}

}  // namespace tg::schema
