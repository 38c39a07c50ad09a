// Frames, the messages between the nodes of a mesh: as values, and in their Cap'n Proto form (frame.capnp).
//
// A frame is one single-segment message in one ZeroMQ part:
//   frame := u32 0 (segments - 1) | u32 words | words * 8 bytes
// decode_frame turns a peer's bytes into trusted values: it checks size, segment count, every bound of limits.h, enum
// values and the union, and never throws past frame_decode.cpp. The exchange checks against its layout what the decoder
// cannot know (whether chunk 7 exists and has that length).
// The frames of a step, which have to be fast, are read and written by hand; the fields of all others are described
// once (schema/described/rule.h).
// Threads: functions are pure; FramePool and FrameBuffer handles may be used and released on any thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/base/status.h"
#include "schema/choices.h"
#include "schema/control/control.h"
#include "schema/described/rule.h"
#include "schema/frame/join_frames.h"
#include "schema/frame/start_frames.h"
#include "schema/frame/view_frames.h"
#include "schema/limits.h"
#include "schema/place.h"

namespace tg::schema {

struct FrameHeader {
  std::uint64_t run = 0;   // key of the run, 0 outside one
  std::uint32_t view = 0;  // number of the view
  std::uint32_t step = 0;  // the step the sender is in
  bool operator==(const FrameHeader&) const = default;
};

// The first frame on every connection, repeated once a second.
struct Hello {
  std::uint16_t protocol = kProtocolVersion;
  std::string build;
  std::string node;
  std::uint64_t incarnation = 0;  // drawn when the process starts
  std::uint64_t heard = 0;        // the receiver's incarnation as the sender knows it, 0 = not heard yet
  std::uint64_t sequence = 0;     // counts the sender's hellos to this receiver
  std::uint64_t echo = 0;         // sequence of the receiver's last hello that the sender heard
  std::uint16_t weight = 1;       // weight of the sender's share of a batch
};
void fields(Is<Hello> auto& it, auto&& field) {
  field("protocol", it.protocol);
  field("build", it.build, line(kMaxBuildBytes));
  field("node", it.node, node_name());
  field("incarnation", it.incarnation);
  field("heard", it.heard);
  field("sequence", it.sequence);
  field("echo", it.echo);
  field("weight", it.weight);
}
inline std::string validation_error(const Hello& it) { return weight_error(it.weight); }

// Answers a connection's hello that is not accepted; goes from a ROUTER to a DEALER.
struct Refusal {
  std::string node;  // the node that refuses
  std::string message;
};
void fields(Is<Refusal> auto& it, auto&& field) {
  field("node", it.node, node_name());
  field("message", it.message, line(kMaxReasonBytes));
}

// Ends a proposal or a run. The node that noticed the cause first sends it.
struct Fail {
  ErrorKind kind = ErrorKind::kFailed;
  std::string node;   // the node that failed
  std::string phase;  // the phase it was in
  std::string message;
};
void fields(Is<Fail> auto& it, auto&& field) {
  field("kind", it.kind);
  field("node", it.node, optional_node_name());
  field("phase", it.phase, line(kMaxNameBytes));
  field("message", it.message, line(kMaxReasonBytes));
}

enum StepFlags : std::uint32_t {
  kStopAfterStep = 1u << 0,
  kEvaluateAfterStep = 1u << 1,
  kNonFinite = 1u << 2,
  kCheckpoint = 1u << 3,  // every member keeps the state before this step
  kQuiesce = 1u << 4,     // no member begins the next step before the most senior one says so
};
inline constexpr std::uint32_t kKnownStepFlags = 31;

// Each member sends one per step, in every mode, as soon as the first bucket's scalers are known.
struct StepFrame {
  std::uint32_t rate_bits = 0;  // the learning rate, as a check
  std::uint32_t flags = 0;
  std::uint32_t non_finite_segment = 0;
  double loss_sum = 0;                 // summed over the member's samples
  std::vector<std::uint64_t> digests;  // one per segment and running statistic when due, else empty
  std::vector<float> scalers;          // local scalers of bucket 0's ternary segments
  std::vector<float> statistics = {};  // measured on the member's samples, in the model's order, without padding
};

// The scalers of bucket 1, 2, ... It is also the gate: no member sends a chunk of a bucket before all have announced
// it.
struct Scalers {
  std::uint32_t bucket = 0;
  std::uint32_t flags = 0;
  std::uint32_t non_finite_segment = 0;
  std::vector<float> scalers;
};

enum class ChunkPhase : std::uint16_t { kContribution = 0, kTotal = 1 };
constexpr auto words_of(ChunkPhase) { return words("contribution", "total"); }

enum class PayloadFormat : std::uint16_t {
  kCodesRaw = 0,
  kSumsRaw = 1,
  kFloat32 = 2,
  kCodesRans = 3,
  kSumsRans = 4,
  kFloat16 = 5,
};
constexpr auto words_of(PayloadFormat) {
  return words("raw codes", "raw sums", "float32", "entropy-coded codes", "entropy-coded sums", "float16");
}

struct Chunk {
  std::uint32_t chunk = 0;
  ChunkPhase phase = ChunkPhase::kContribution;
  PayloadFormat format = PayloadFormat::kCodesRaw;
  std::span<const std::byte> payload;  // aliases the decoded bytes
};

// Says, before an evaluation and at the end of a run, that the sender has committed the state of the header's step.
// Once all members have sent it, the state is confirmed.
struct Reached {};
void fields(Is<Reached> auto&, auto&&) {}

// The sender's part of an evaluation. Also sent at the end of a run.
struct Report {
  bool last = false;
  std::uint64_t correct = 0, correct_5 = 0, total = 0;
  double loss_sum = 0;
  std::vector<std::uint64_t> digests;  // one per segment and running statistic
};
void fields(Is<Report> auto& it, auto&& field) {
  field("last", it.last);
  field("correct", it.correct);
  field("correct_5", it.correct_5);
  field("total", it.total);
  field("loss_sum", it.loss_sum);
  field("digests", it.digests, list(kMaxDigests));
}
inline std::string validation_error(const Report& it) {
  return std::max(it.correct, it.correct_5) > it.total ? "more samples are correct than there are" : "";
}

struct Goodbye {
  std::string reason;
};
void fields(Is<Goodbye> auto& it, auto&& field) { field("reason", it.reason, line(kMaxReasonBytes)); }

// Flow control: the payload bytes of the receiver's chunks that the sender has consumed in this step.
struct Credit {
  std::uint64_t taken_bytes = 0;
};

// Measures links before a run: the last frame of a burst is answered by a ProbeReply.
struct Probe {
  std::uint32_t burst = 0;
  bool last = false;
  std::span<const std::byte> filler;  // aliases the decoded bytes
};
struct ProbeReply {
  std::uint32_t burst = 0;
  std::uint64_t micros = 0;  // between the arrivals of the burst's first and last frame
};
void fields(Is<ProbeReply> auto& it, auto&& field) {
  field("burst", it.burst);
  field("micros", it.micros);
}

// How a run ended or was interrupted on the sender, and which state the sender has.
struct Ended {
  RunState state = RunState::kFailed;
  std::string reason;
  std::int64_t since_ms = 0;
  std::uint64_t step = 0, digest = 0;            // for a STOPPED or COMPLETED run; else 0
  std::uint64_t held_step = 0, held_digest = 0;  // the state that the sender has, or had; 0 = none
  SaveState save = SaveState::kNone;
  std::string problem;  // why it is not saved
  bool asks = false;    // the sender does not know the receiver's end
  bool operator==(const Ended&) const = default;
};
void fields(Is<Ended> auto& it, auto&& field) {
  field("state", it.state);
  field("reason", it.reason, line(kMaxReasonBytes));
  field("since_ms", it.since_ms);
  field("step", it.step);
  field("digest", it.digest);
  field("held_step", it.held_step);
  field("held_digest", it.held_digest);
  field("save", it.save);
  field("problem", it.problem, line(kMaxProblemBytes));
  field("asks", it.asks);
}
inline std::string validation_error(const Ended& it) { return has_ended(it.state) ? "" : "a state that is not an end"; }

using FrameBody =
    std::variant<Hello, Claim, Grant, Propose, Vote, Commit, Fail, StepFrame, Scalers, Chunk, Report, Goodbye, Credit,
                 Probe, ProbeReply, Refusal, Ended, Offer, Reached, Suspect, Prepare, Promise, Nack, Accept, Accepted,
                 Decide, Join, Invite, Quiesce, SnapshotOffer, SnapshotRequest, SnapshotChunk, SnapshotDone, Leave>;

struct Frame {
  FrameHeader header;
  FrameBody body;
  std::size_t bytes = 0;  // size of the message that it was decoded from
};

// The 8-byte aligned, pooled bytes of one frame. The pool may be destroyed before its buffers.
class FrameBuffer {
 public:
  virtual ~FrameBuffer() = default;
  virtual std::span<const std::byte> bytes() const = 0;
};
using SharedFrame = std::shared_ptr<const FrameBuffer>;

class FramePool {
 public:
  FramePool();
  ~FramePool();
  struct State;
  std::shared_ptr<State> state() const { return state_; }
  std::size_t allocated_bytes() const;  // in use and idle together

 private:
  std::shared_ptr<State> state_;
};

// Encodes any body. For a chunk, ChunkFrameBuilder saves a copy.
SharedFrame encode_frame(const FrameHeader& header, const FrameBody& body, FramePool& pool);

// Builds a chunk frame in place: write up to payload().size() bytes to payload(), then call finish().
class ChunkFrameBuilder {
 public:
  ChunkFrameBuilder(const FrameHeader& header, std::uint32_t chunk, ChunkPhase phase, std::size_t payload_bound,
                    FramePool& pool);
  ~ChunkFrameBuilder();
  ChunkFrameBuilder(ChunkFrameBuilder&&) noexcept;
  std::span<std::byte> payload();
  SharedFrame finish(std::size_t payload_bytes, PayloadFormat format);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Decodes one frame. Unaligned bytes are copied to aligned scratch memory; a Chunk's payload aliases `bytes` either
// way.
Result<Frame> decode_frame(std::span<const std::byte> bytes);

}  // namespace tg::schema
