// Where a peer's bytes become trusted: every field of a frame is checked against schema/limits.h.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "schema/frame.capnp.h"
#include "schema/frame/frame.h"
#include "schema/frame/frame_buffer.h"
#include "schema/text.h"
#include "schema/wire.h"

namespace tg::schema {
namespace {

std::uint16_t checked_weight(std::uint16_t weight) {
  if (weight == 0 || weight > kMostWeight) throw Odd{"a weight of " + std::to_string(weight)};
  return weight;
}

Hello take(wire::Hello::Reader from) {
  Hello hello;
  hello.protocol = from.getProtocol();
  hello.build = checked_text(from.getBuild(), kMostBuildBytes, "build");
  hello.node = checked_node(from.getNode(), "node");
  hello.incarnation = from.getIncarnation();
  hello.names_hash = from.getNamesHash();
  hello.heard = from.getHeard();
  hello.sequence = from.getSequence();
  hello.echo = from.getEcho();
  hello.names = checked_text(from.getNames(), kMostNamesBytes, "names");
  hello.weight = checked_weight(from.getWeight());
  return hello;
}

Refusal take(wire::Refusal::Reader from) {
  return {checked_node(from.getNode(), "node"), checked_text(from.getMessage(), kMostReasonBytes, "message")};
}

Claim take(wire::Claim::Reader from) { return {checked_run(from.getRunId(), "run id")}; }

Grant take(wire::Grant::Reader from) {
  return {from.getGranted(), checked_text(from.getMessage(), kMostReasonBytes, "message")};
}

StateId take(wire::StateId::Reader from) {
  return {from.getLineage(), from.getView(), from.getStep(), from.getDigest()};
}

Resume take(wire::Resume::Reader from) {
  Resume resume{.lineage = from.getLineage(), .from_step = {}, .any_build = from.getAnyBuild()};
  if (!from.getFromNewest()) resume.from_step = from.getFromStep();
  if (from.hasStart()) resume.start = take(from.getStart());
  return resume;
}

Offer take(wire::Offer::Reader from) {
  Offer offer;
  checked_below(from.getStates().size(), kMostStates + 1, "states");
  for (const wire::StateId::Reader state : from.getStates()) offer.states.push_back(take(state));
  offer.problem = checked_text(from.getProblem(), kMostReasonBytes, "problem");
  return offer;
}

Propose take(wire::Propose::Reader from) {
  Propose proposal{checked_run(from.getRunId(), "run id"), checked_lines(from.getSpec(), kMostSpecBytes, "spec")};
  const capnp::List<std::uint16_t>::Reader weights = from.getWeights();
  checked_below(weights.size(), kMostMembers + 1, "weights");
  for (const std::uint16_t weight : weights) proposal.weights.push_back(checked_weight(weight));
  if (from.hasResume()) proposal.resume = take(from.getResume());
  return proposal;
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
  vote.kind = checked_enum<ErrorKind>(from.getKind(), "kind");
  vote.message = checked_text(from.getMessage(), kMostReasonBytes, "message");
  vote.spec_hash = from.getSpecHash();
  vote.model_hash = from.getModelHash();
  vote.data_hash = from.getDataHash();
  vote.state_hash = from.getStateHash();
  vote.step_seconds = checked_measurement(from.getStepSeconds(), "step seconds");
  vote.local_batch = from.getLocalBatch();
  vote.link_mbps = checked_measurement(from.getLinkMbps(), "link rate");
  vote.workers = static_cast<std::uint16_t>(checked_below(from.getWorkers(), kMostExchangeThreads + 1, "workers"));
  if (vote.workers == 0) throw Odd{"an exchange without threads"};
  return vote;
}

Commit take(wire::Commit::Reader from) {
  const std::uint64_t window = from.getWindowBytes(), chunk = from.getChunkParameters();
  if (window < kLeastWindowBytes) throw Odd{"a window of " + std::to_string(window) + " bytes"};
  if (chunk < kSmallChunkParameters) throw Odd{"chunks of " + std::to_string(chunk) + " parameters"};
  return {checked_enum<ExchangeKind>(from.getExchange(), "exchange"), checked_enum<Coding>(from.getCoding(), "coding"),
          checked_below(window, kMostWindowBytes + 1, "window bytes"),
          checked_below(chunk, kLargeChunkParameters + 1, "chunk parameters")};
}

Fail take(wire::Fail::Reader from) {
  Fail fail;
  fail.kind = checked_enum<ErrorKind>(from.getKind(), "kind");
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

// A scaler is finite and not negative. Any other may only come with the flag that ends the run, and is read as 0.
std::vector<float> take_scalers(capnp::List<float>::Reader list, std::uint32_t flags) {
  std::vector<float> scalers = take_list<float>(list, kMostSegments, "scalers");
  for (float& scaler : scalers) {
    if (std::isfinite(scaler) && !std::signbit(scaler)) continue;
    if ((flags & kNonFinite) == 0) throw Odd{"a scaler is not finite or is negative"};
    scaler = 0;
  }
  return scalers;
}

std::vector<float> take_statistics(capnp::List<float>::Reader list, std::uint32_t flags) {
  std::vector<float> statistics = take_list<float>(list, kMostStatistics, "statistics");
  for (float& statistic : statistics) {
    if (std::isfinite(statistic)) continue;
    if ((flags & kNonFinite) == 0) throw Odd{"a statistic is not finite"};
    statistic = 0;
  }
  return statistics;
}

StepFrame take(wire::StepFrame::Reader from) {
  StepFrame step;
  step.rate_bits = from.getRateBits();
  step.flags = checked_flags(from.getFlags());
  step.non_finite_segment =
      static_cast<std::uint32_t>(checked_below(from.getNonFiniteSegment(), kMostDigests, "non-finite segment"));
  step.loss_sum = from.getLossSum();
  if (!std::isfinite(step.loss_sum)) {
    if ((step.flags & kNonFinite) == 0) throw Odd{"the loss is not finite"};
    step.loss_sum = 0;
  }
  step.digests = take_digests(from.getDigests());
  step.scalers = take_scalers(from.getScalers(), step.flags);
  step.statistics = take_statistics(from.getStatistics(), step.flags);
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
  chunk.phase = checked_enum<ChunkPhase>(from.getPhase(), "chunk phase");
  chunk.format = checked_enum<PayloadFormat>(from.getFormat(), "payload format");
  chunk.payload = message.original(from.getPayload());
  checked_below(chunk.payload.size(), kMostChunkPayloadBytes + 1, "payload bytes");
  return chunk;
}

Report take(wire::Report::Reader from) {
  Report report;
  report.last = from.getLast();
  report.correct = from.getCorrect();
  report.correct_5 = from.getCorrect5();
  report.total = from.getTotal();
  if (std::max(report.correct, report.correct_5) > report.total) throw Odd{"more samples are right than there are"};
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

Ended take(wire::Ended::Reader from) {
  Ended ended;
  ended.state = checked_enum<RunState>(from.getState(), "state");
  if (!has_ended(ended.state)) throw Odd{"an end that is none"};
  ended.reason = checked_text(from.getReason(), kMostReasonBytes, "reason");
  ended.since_ms = from.getSinceMs();
  ended.step = from.getStep();
  ended.digest = from.getDigest();
  ended.held_step = from.getHeldStep();
  ended.held_digest = from.getHeldDigest();
  ended.save = checked_enum<SaveState>(from.getSave(), "save");
  ended.problem = checked_text(from.getProblem(), kMostProblemBytes, "problem");
  ended.asks = from.getAsks();
  return ended;
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
    case wire::Frame::REFUSAL:
      return take(frame.getRefusal());
    case wire::Frame::ENDED:
      return take(frame.getEnded());
    case wire::Frame::OFFER:
      return take(frame.getOffer());
    case wire::Frame::REACHED:
      return Reached{};
  }
  throw Odd{"unknown union member " + std::to_string(static_cast<unsigned>(frame.which()))};
}

}  // namespace

Result<Frame> decode_frame(std::span<const std::byte> bytes) {
  return guarded<Frame>("frame", [bytes]() -> Result<Frame> {
    const AlignedMessage message(bytes, kMostFrameBytes);
    capnp::FlatArrayMessageReader reader(message.words(), reader_options(message.words().size()));
    const wire::Frame::Reader from = reader.getRoot<wire::Frame>();
    return Frame{{from.getRun(), from.getView(), from.getStep()}, take_body(from, message), bytes.size()};
  });
}

std::string_view frame_name(const FrameBody& body) {
  static constexpr std::string_view kNames[] = {"hello",  "claim", "grant",       "propose", "vote",   "commit",
                                                "fail",   "step",  "scalers",     "chunk",   "report", "goodbye",
                                                "credit", "probe", "probe reply", "refusal", "ended", "offer", "reached"};
  static_assert(std::size(kNames) == std::variant_size_v<FrameBody>);
  return kNames[body.index()];
}

}  // namespace tg::schema
