// Turns a peer's bytes into trusted frames: every field is checked against schema/limits.h.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "schema/described/wire_form.h"
#include "schema/frame.capnp.h"
#include "schema/frame/frame.h"
#include "schema/frame/frame_buffer.h"
#include "schema/wire.h"

namespace tg::schema {
namespace {

template <class Value>
std::vector<Value> read_list(typename capnp::List<Value>::Reader list, std::size_t max, const char* field) {
  checked_below(list.size(), max + 1, field);
  std::vector<Value> values;
  values.reserve(list.size());
  for (const Value value : list) values.push_back(value);
  return values;
}

std::uint32_t checked_flags(std::uint32_t flags) {
  if ((flags & ~kKnownStepFlags) != 0) throw DecodeError{"unknown step flags"};
  return flags;
}

std::vector<std::uint64_t> read_digests(capnp::List<std::uint64_t>::Reader list) {
  return read_list<std::uint64_t>(list, kMaxDigests, "digests");
}

// A scaler is finite and not negative. Another value is valid only with the flag that ends the run, and is read as 0.
std::vector<float> read_scalers(capnp::List<float>::Reader list, std::uint32_t flags) {
  std::vector<float> scalers = read_list<float>(list, kMaxSegments, "scalers");
  for (float& scaler : scalers) {
    if (std::isfinite(scaler) && !std::signbit(scaler)) continue;
    if ((flags & kNonFinite) == 0) throw DecodeError{"a scaler is not finite or is negative"};
    scaler = 0;
  }
  return scalers;
}

std::vector<float> read_statistics(capnp::List<float>::Reader list, std::uint32_t flags) {
  std::vector<float> statistics = read_list<float>(list, kMaxStatistics, "statistics");
  for (float& statistic : statistics) {
    if (std::isfinite(statistic)) continue;
    if ((flags & kNonFinite) == 0) throw DecodeError{"a statistic is not finite"};
    statistic = 0;
  }
  return statistics;
}

StepFrame read(wire::StepFrame::Reader from) {
  StepFrame step;
  step.rate_bits = from.getRateBits();
  step.flags = checked_flags(from.getFlags());
  step.non_finite_segment =
      static_cast<std::uint32_t>(checked_below(from.getNonFiniteSegment(), kMaxDigests, "non-finite segment"));
  step.loss_sum = from.getLossSum();
  if (!std::isfinite(step.loss_sum)) {
    if ((step.flags & kNonFinite) == 0) throw DecodeError{"the loss is not finite"};
    step.loss_sum = 0;
  }
  step.digests = read_digests(from.getDigests());
  step.scalers = read_scalers(from.getScalers(), step.flags);
  step.statistics = read_statistics(from.getStatistics(), step.flags);
  return step;
}

Scalers read(wire::Scalers::Reader from) {
  Scalers scalers;
  scalers.bucket = static_cast<std::uint32_t>(checked_below(from.getBucket(), kMaxBuckets, "bucket"));
  scalers.flags = checked_flags(from.getFlags());
  scalers.non_finite_segment =
      static_cast<std::uint32_t>(checked_below(from.getNonFiniteSegment(), kMaxSegments, "non-finite segment"));
  scalers.scalers = read_scalers(from.getScalers(), scalers.flags);
  return scalers;
}

Chunk read(wire::Chunk::Reader from, const AlignedMessage& message) {
  Chunk chunk;
  chunk.chunk = static_cast<std::uint32_t>(checked_below(from.getChunk(), kMaxChunks, "chunk"));
  chunk.phase = checked_enum<ChunkPhase>(from.getPhase(), "chunk phase");
  chunk.format = checked_enum<PayloadFormat>(from.getFormat(), "payload format");
  chunk.payload = message.original(from.getPayload());
  checked_below(chunk.payload.size(), kMaxChunkPayloadBytes + 1, "payload bytes");
  return chunk;
}

Propose read(wire::Propose::Reader from) {
  Propose proposal{read_text(from.getRunId(), "run id", run_id()),
                   read_text(from.getSpec(), "spec", lines(kMaxSpecBytes))};
  for (const std::uint16_t weight : read_list<std::uint16_t>(from.getWeights(), kMaxMembers, "weights")) {
    if (const std::string why = weight_error(weight); !why.empty()) throw DecodeError{why};
    proposal.weights.push_back(weight);
  }
  WireReader(capnp::DynamicStruct::Reader(from))("names", proposal.names, list(kMaxMembers, node_name()));
  if (const std::string why = names_error(proposal.names); !why.empty()) throw DecodeError{why};
  if (proposal.weights.size() != proposal.names.size()) throw DecodeError{"weights of other nodes"};
  proposal.members = read_list<std::uint32_t>(from.getMembers(), kMaxMembers, "members");
  for (std::size_t i = 0; i < proposal.members.size(); ++i) {
    checked_below(proposal.members[i], proposal.names.size(), "member");
    if (i > 0 && proposal.members[i - 1] >= proposal.members[i]) throw DecodeError{"members that are out of order"};
  }
  if (!from.hasResume()) return proposal;
  const wire::Resume::Reader resume = from.getResume();
  proposal.resume = Resume{.lineage = resume.getLineage(), .from_step = {}, .any_build = resume.getAnyBuild()};
  proposal.resume->unasked = resume.getUnasked();
  if (!resume.getFromNewest()) proposal.resume->from_step = resume.getFromStep();
  if (resume.hasStart()) proposal.resume->start = read_fields<StateId>(capnp::DynamicStruct::Reader(resume.getStart()));
  return proposal;
}

Probe read(wire::Probe::Reader from, const AlignedMessage& message) {
  Probe probe{from.getBurst(), from.getLast(), message.original(from.getFiller())};
  checked_below(probe.filler.size(), kMaxChunkPayloadBytes + 1, "filler bytes");
  return probe;
}

SnapshotChunk read(wire::SnapshotChunk::Reader from, const AlignedMessage& message) {
  SnapshotChunk slice{from.getAt(), message.original(from.getPayload())};
  checked_below(slice.payload.size(), kMaxChunkPayloadBytes + 1, "slice bytes");
  return slice;
}

FrameBody read_body(wire::Frame::Reader frame, const AlignedMessage& message) {
  switch (frame.which()) {
    case wire::Frame::PROPOSE:
      return read(frame.getPropose());
    case wire::Frame::STEP_FRAME:
      return read(frame.getStepFrame());
    case wire::Frame::SCALERS:
      return read(frame.getScalers());
    case wire::Frame::CHUNK:
      return read(frame.getChunk(), message);
    case wire::Frame::CREDIT:
      return Credit{frame.getCredit().getTakenBytes()};
    case wire::Frame::PROBE:
      return read(frame.getProbe(), message);
    case wire::Frame::SNAPSHOT_CHUNK:
      return read(frame.getSnapshotChunk(), message);
    default: {
      FrameBody body;
      read_union(capnp::DynamicStruct::Reader(frame), static_cast<std::size_t>(frame.which()), body);
      return body;
    }
  }
}

}  // namespace

Result<Frame> decode_frame(std::span<const std::byte> bytes) {
  return guarded<Frame>("frame", [bytes]() -> Result<Frame> {
    const AlignedMessage message(bytes, kMaxFrameBytes);
    capnp::FlatArrayMessageReader reader(message.words(), reader_options(message.words().size()));
    const wire::Frame::Reader from = reader.getRoot<wire::Frame>();
    return Frame{{from.getRun(), from.getView(), from.getStep()}, read_body(from, message), bytes.size()};
  });
}

}  // namespace tg::schema
