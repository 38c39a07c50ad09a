// The bounds on messages and queues. A frame that breaks one is counted, logged and dropped.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tg::schema {

inline constexpr std::uint16_t kProtocolVersion = 11;

// Members and names.
inline constexpr std::size_t kMaxMembers = 127;  // sums of that many codes fit int8
inline constexpr std::size_t kMaxNameBytes = 63;
inline constexpr std::size_t kMaxNamesBytes = kMaxMembers * (kMaxNameBytes + 2);  // for all names together
inline constexpr std::uint16_t kMaxWeight = 1000;     // a member's share of a batch; at least 1
inline constexpr std::uint64_t kMaxBatch = 1u << 24;  // samples in a step, over all members
inline constexpr std::uint64_t kMaxThreads = 1024;    // in an engine
inline constexpr std::size_t kMaxRunIdBytes = 63;
inline constexpr std::size_t kMaxReasonBytes = 2000;
inline constexpr std::size_t kMaxProblemBytes = 300;  // the reason why a member could not save
inline constexpr std::size_t kMaxSpecBytes = 16 * 1024;
inline constexpr std::size_t kMaxSettingsBytes = 2000;  // a status's copy of a job's keys that differ from the defaults
inline constexpr std::size_t kMaxPictures = 24;         // sample pictures in a reply
inline constexpr std::size_t kMaxPictureBytes = 32 * 1024;  // pixels of one
inline constexpr std::size_t kMaxMatrixClasses = 100;       // classes in a confusion matrix
inline constexpr std::size_t kMaxConfusions = 12;           // pairs in the list of the most confused classes
inline constexpr std::size_t kMaxWarningsBytes = 4000;      // warnings about a run's data
inline constexpr std::size_t kMaxBuildBytes = 400;
inline constexpr std::size_t kMaxDeviceBytes = 200;   // a device's name
inline constexpr std::size_t kMaxHostBytes = 253;     // a DNS name
inline constexpr std::size_t kMaxAddressBytes = 260;  // host:port
inline constexpr std::size_t kMaxPathBytes = 1024;
static_assert(kMaxMembers <= INT8_MAX, "a sum of the members' codes is an int8");
static_assert(kMaxHostBytes + sizeof(":65535") - 1 <= kMaxAddressBytes, "any host has an address");
static_assert(kMaxRunIdBytes <= 255, "a run's id names a folder, and Linux allows no longer names");
static_assert(4 * kMaxPathBytes <= kMaxSpecBytes, "a job's two paths leave room for its other keys");

// Keys.
inline constexpr std::size_t kMaxClusterKeys = 2;  // valid at the same time, during a rotation
inline constexpr std::size_t kMaxOperators = 256;
inline constexpr std::size_t kMaxKeyFileBytes = 64 * 1024;
static_assert(kMaxOperators * (kMaxNameBytes + 64 + 32) < kMaxKeyFileBytes, "a full list of operators can be read");

// Models and their slices.
inline constexpr std::size_t kMaxSegments = 4096;
inline constexpr std::size_t kMaxBuckets = 4096;
inline constexpr std::size_t kMaxChunks = 1u << 20;
inline constexpr std::size_t kMaxChunkPayloadBytes = 1024 * 1024;
inline constexpr std::size_t kMaxStatistics = 192 * 1024;  // values that batch normalizations measure in a step
inline constexpr std::size_t kMaxDigests = kMaxSegments;   // segments and running statistics together
inline constexpr std::size_t kMaxExchangeThreads = 256;
inline constexpr std::size_t kMaxStates = 16;         // states that a member offers for a resume
inline constexpr std::size_t kMaxOrigins = 32;        // earlier lineages in a heartbeat
inline constexpr std::size_t kMaxSnapshotParts = 16;  // parts of the state that a joiner receives
static_assert(kMaxBuckets >= kMaxSegments, "a bucket holds at least one segment");

// Frames.
inline constexpr std::size_t kChunkHeadBytes = 64;        // bytes of a chunk frame before its payload
inline constexpr std::size_t kMessageHeadBytes = 9;       // ZMTP 3.1, before a message of more than 255 bytes
inline constexpr std::size_t kFrameOverheadBytes = 1024;  // bound of a frame's bytes besides its lists or payload
inline constexpr std::size_t kMaxFrameBytes = kMaxChunkPayloadBytes + kFrameOverheadBytes;
inline constexpr std::size_t kMaxControlBytes = 1024 * 1024;  // one reply
inline constexpr std::size_t kMaxRequestBytes =
    64 * 1024;  // one request; anyone may send this much before authentication
inline constexpr std::size_t kFileSliceBytes = 512 * 1024;  // one reply of fetch
inline constexpr std::size_t kLogSliceBytes = 64 * 1024;    // one reply of logs
inline constexpr int kMaxBadFrames = 5;                     // after this many the sender is cut off
inline constexpr std::size_t kMaxStepFrameBytes =
    (kMaxSegments + kMaxStatistics) * sizeof(float) + kMaxDigests * sizeof(std::uint64_t) + kFrameOverheadBytes;
static_assert(kMaxStepFrameBytes <= kMaxFrameBytes,
              "a step frame with scalers and digests of all segments and all statistics is a frame");
static_assert(kMaxRunIdBytes + kMaxSpecBytes + kMaxMembers * sizeof(std::uint16_t) + kFrameOverheadBytes <=
                  kMaxFrameBytes,
              "any job can be proposed");
static_assert(kMaxRunIdBytes + kMaxSpecBytes + kFrameOverheadBytes <= kMaxRequestBytes, "any job can be started");
static_assert(kFileSliceBytes + kFrameOverheadBytes <= kMaxControlBytes, "a file's slice fits a reply");
static_assert(kMaxPictures * kMaxPictureBytes + kMaxMatrixClasses * kMaxMatrixClasses * sizeof(std::uint32_t) +
                      (2 * kMaxPictures + kMaxMatrixClasses + 2 * kMaxConfusions) * (kMaxNameBytes + 64) +
                      kFrameOverheadBytes <=
                  kMaxControlBytes,
              "pictures and a matrix fit a reply");
static_assert(kLogSliceBytes <= kFileSliceBytes, "one bound holds for all slices");

// Predictions.
inline constexpr std::size_t kMaxForecastRows = 32;
inline constexpr std::size_t kMaxAssumptions = 16;
inline constexpr std::size_t kMaxAssumptionBytes = 300;
inline constexpr double kMaxReal = 1e15;     // a rate, a time or a size
inline constexpr double kMaxLineMbps = 1e7;  // bound of the job's link-mbps

// Examinations (tgctl doctor).
inline constexpr std::size_t kMaxSentenceBytes = 400;  // one finding, or one piece of advice
inline constexpr std::size_t kMaxFindings = 500;       // findings about a whole mesh; the rest are only counted
inline constexpr std::size_t kMaxDataSets = 8;
inline constexpr std::uint64_t kMaxExamineSeconds = 20;  // duration of a link's measurement

// Credit: chunk payload in flight to one peer.
inline constexpr std::size_t kMaxWindowBytes = 4u << 20;
inline constexpr std::size_t kMinWindowBytes = 4u << 10;
static_assert(kMinWindowBytes <= kMaxWindowBytes);
// The number of windows of totals that may be in flight to one peer, as long as all peers together have no more than
// one each. With two, a peer may lag the others by a window before it stops them. More would only help a peer that is
// slower on average, and it would still stop the others, only later, while the queue at its switch port grows.
inline constexpr std::size_t kMaxWindowsOfTotals = 2;
static_assert(kMaxWindowsOfTotals > 1, "with one, the first full window stops the totals of all");

// Chunks. The planes and sums of a large one stay in a core's own cache; below the small size a frame costs more than
// overlap gains.
inline constexpr std::size_t kLargeChunkParameters = 512 * 1024;
inline constexpr std::size_t kSmallChunkParameters = 16 * 1024;
static_assert(kSmallChunkParameters <= kLargeChunkParameters);
static_assert(2 * kLargeChunkParameters / 8 <= kMaxChunkPayloadBytes, "raw codes, two bits each, fit a frame");

// Open files and connections.
// A peer needs, on both ports, a connection each way and the sockets' own pipes.
inline constexpr std::size_t kDescriptorsPerPeer = 14;
inline constexpr std::size_t kOwnDescriptors = 48;      // sockets, I/O threads, standard streams, a run's files
inline constexpr std::size_t kReserveDescriptors = 64;  // for tgctl, unknown clients and restarts, on both ports
inline constexpr std::size_t kMetricsDescriptors = 48;  // connections to the metrics port
constexpr std::size_t descriptors_of(std::size_t nodes) {
  return kOwnDescriptors + kMetricsDescriptors + kReserveDescriptors + nodes * kDescriptorsPerPeer;
}
// The connections that a port may have where this many descriptors are allowed: one for each peer, and half of those
// that the node itself does not need. So clients cannot use up the descriptors with which a run has to be saved.
constexpr std::size_t connections_of(std::size_t descriptors, std::size_t nodes) {
  const std::size_t own = descriptors_of(nodes) - kReserveDescriptors;
  return nodes + (descriptors > own ? (descriptors - own) / 2 : 0);
}
static_assert(2 * (connections_of(descriptors_of(2), 2) - 2) == kReserveDescriptors);
static_assert(descriptors_of(kMaxMembers) <= 4096,
              "the hard limit of open files is 4096 or more on all systems that we checked");

// The memory that others can make a node hold, and its bounds. A client that reads nothing is disconnected, or its
// messages are dropped; one that sends too much is held back by TCP. tests/README.md names the test that exceeds each.
//
//   before a key is known              a message of the largest size per connection, for the handshake's 2 s
//   connections, open files            512 at the control port, 4 x kMaxMembers at the mesh port, kMetricsDescriptors
//   parts of a message without end     kMaxRequestBytes or kMaxFrameBytes (access/accepted_connections.h)
//   requests not yet read              8 of kMaxRequestBytes per connection (control/control_sockets.cpp)
//   requests that wait for an answer   kMaxPendingRequests of kMaxRequestBytes; kMaxGatheredBytes (pending_requests.h)
//   answers that a client has not read kMaxUnreadBytes for a client, kMaxUnreadBytesPerPort for a port: slices of
//                                      logs, records, traces, models; statuses, examinations. Encrypted ones as well
//   a peer's frames                    kMaxReceivedFrames, then kMaxQueuedBytesPerPeer and kMaxQueuedBytes
//   doctor's streams                   64 frames of 64 KiB in flight (doctor/link_stream.h, mesh/probe/link_probe.h)
//   lines of logs and of metrics.jsonl 256 KiB (base/line_writer.h), 1 MiB (store/line_file.h) that are not written yet
//   spans of a trace                   200,000 (step/threads/timeline.h)
//   records of past runs               kMaxRunsKept and kMaxUnstartedKept, each of kMaxRecordBytes at most
//   an HTTP request and its answer     4 KiB, half a second each (metrics/metrics_server.h)

// Queues.
inline constexpr std::size_t kMaxIdlePoolBytes = 32u << 20;  // frame buffers kept for reuse, per pool
inline constexpr std::size_t kMaxBlockPerFrame = 4;          // a waiting chunk frame's block, in multiples of its bytes
inline constexpr std::size_t kSmallBlockBytes = 16u << 10;   // below this a copy does not pay
inline constexpr int kMaxReceivedFrames = 32;    // a peer's frames waiting for the receiving thread, up to a MiB each
inline constexpr int kMeshHighWaterMark = 4096;  // messages per peer; the protocol's gates bound the bytes
// Frames queued for the node's thread, each counted with its message and kQueuedEventBytes. A member has at most two
// windows of totals there, and the step frames of this step and the next; one that exceeds its share is flooding. Above
// the total of all members, frames wait at their ports.
inline constexpr std::size_t kQueuedEventBytes = 512;
inline constexpr std::size_t kMaxQueuedBytesPerPeer = 32u << 20;
inline constexpr std::size_t kMaxQueuedBytes = 2 * kMaxQueuedBytesPerPeer;
static_assert(kMaxWindowsOfTotals * kMaxWindowBytes + kMaxFrameBytes + 2 * kMaxStepFrameBytes <
                  kMaxQueuedBytesPerPeer / 2,
              "a member that keeps to its windows is far below a flood, with small chunks too");
static_assert(kMaxQueuedBytesPerPeer < kMaxQueuedBytes, "a flooding member is named before it stops the others");
// A joiner receives its state in chunks; a window of them is in flight.
inline constexpr std::size_t kSnapshotChunkBytes = 512 * 1024;
inline constexpr std::size_t kSnapshotWindowBytes = 8 * kSnapshotChunkBytes;
static_assert(kSnapshotChunkBytes <= kMaxChunkPayloadBytes && kSnapshotWindowBytes < kMaxQueuedBytesPerPeer / 2);

inline constexpr std::size_t kMaxRunsKept = 200;      // runs in a node's status
inline constexpr std::size_t kMaxUnstartedKept = 20;  // starts that never began, in addition
static_assert(kMaxUnstartedKept < kMaxRunsKept);
static_assert(kMaxFrameBytes <= kMaxIdlePoolBytes, "a pool can keep a buffer of any size");

// Deadlines, milliseconds.
inline constexpr int kControlReplyMs = 3000;             // tgctl waits this long for an answer
inline constexpr int kPeerStatusMs = 500;                // a node waits this long for its peers' part of a reply
inline constexpr int kShutdownMs = 5000;                 // hard limit for an orderly end
inline constexpr int kPrepareMs = 300'000;               // preparation of a run without progress
inline constexpr int kMisclassificationsMs = 1'800'000;  // another evaluation of a run's model

// The control port and the runs on disk.
inline constexpr std::size_t kMaxRecordBytes = 256 * 1024;  // run.json; a larger one is not read
inline constexpr std::size_t kMaxPendingRequests = 256;     // requests of a control server without an answer yet
inline constexpr std::size_t kMaxUnreadBytes = 4u << 20;    // answers waiting for one client
inline constexpr std::size_t kMaxUnreadBytesPerPort = 32u << 20;
// The last part of it is reserved for short answers to clients that have read all earlier ones.
inline constexpr std::size_t kUnreadBytesForReaders = 8u << 20;
inline constexpr std::size_t kShortAnswerBytes = 256 * 1024;
static_assert(2 * kMaxControlBytes <= kMaxUnreadBytes &&
              kMaxUnreadBytes <= kMaxUnreadBytesPerPort - kUnreadBytesForReaders);
static_assert(kShortAnswerBytes < kFileSliceBytes,
              "a client that asks for slices and reads nothing gets none of the reserve");
inline constexpr int kControlHighWaterMark = 64;  // messages per connection; beats beyond it are dropped
inline constexpr int kMaxMessagesPerTurn = 64;    // from one socket, before beats and liveness get their turn
inline constexpr int kRelayReplyMs = kControlReplyMs - 500;  // a node waits this long for another's log or file
inline constexpr int kMaxCallMs = 90'000'000;  // a call without an answer ends then; a start may wait a day for nodes
inline constexpr int kMaxHeartbeatMs = 500;    // beats go out every min(peer-timeout / 10, this)
inline constexpr int kLivenessTickMs = 50;
inline constexpr int kControlLingerMs = 500;  // for the last replies of a node that shuts down
static_assert(kPeerStatusMs < kControlReplyMs && kRelayReplyMs < kControlReplyMs,
              "a node that waits for others still answers before tgctl gives up");
static_assert(kControlReplyMs < kMaxCallMs, "no call ends while tgctl waits for its first answer");
static_assert(kMisclassificationsMs < kMaxCallMs, "no call ends while a model is evaluated for it");
// An examination begins with all checks but the links' rates; the time is for a mesh of 16 and for each further 16
// nodes. Then come rounds in which each node has one partner (daemon/doctor/schedule.h), half of the seconds for each
// direction, with a pause until everything sent has arrived. Then checks that have not finished are abandoned.
inline constexpr int kExamineChecksMs = 3000, kExaminePauseMs = 200, kExamineGraceMs = 5000;
constexpr int examine_checks_ms(std::size_t nodes) { return kExamineChecksMs * static_cast<int>(1 + nodes / 16); }
constexpr std::size_t examine_rounds(std::size_t nodes) { return nodes < 2 ? 0 : nodes - 1 + nodes % 2; }
constexpr int examine_slot_ms(std::uint64_t seconds) { return static_cast<int>(500 * seconds) + kExaminePauseMs; }
constexpr int examine_rounds_ms(std::size_t nodes, std::uint64_t seconds) {
  return seconds == 0 ? 0 : 2 * static_cast<int>(examine_rounds(nodes)) * examine_slot_ms(seconds);
}
constexpr int examine_ms(std::size_t nodes, std::uint64_t seconds) {
  return examine_checks_ms(nodes) + examine_rounds_ms(nodes, seconds);
}
static_assert(examine_ms(kMaxMembers, kMaxExamineSeconds) + kExamineGraceMs < kMaxCallMs,
              "the longest examination ends before its call");
static_assert(kControlLingerMs < kShutdownMs, "the last replies leave before the hard end");
static_assert(kLivenessTickMs <= 100, "liveness takes a gap of 500 ms between ticks for a stall of this process");

}  // namespace tg::schema
