// All bounds on messages and queues, in one place. A frame that breaks one is counted, named and dropped.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tg::schema {

inline constexpr std::uint16_t kProtocolVersion = 11;

// Members and names.
inline constexpr std::size_t kMaxMembers = 127;  // sums of that many codes fit int8
inline constexpr std::size_t kMaxNameBytes = 63;
inline constexpr std::size_t kMaxNamesBytes = kMaxMembers * (kMaxNameBytes + 2);  // all names together
inline constexpr std::uint16_t kMaxWeight = 1000;     // weight of a member's share of a batch; at least 1
inline constexpr std::uint64_t kMaxBatch = 1u << 24;  // samples of a step, of all members together
inline constexpr std::uint64_t kMaxThreads = 1024;    // of an engine
inline constexpr std::size_t kMaxRunIdBytes = 63;
inline constexpr std::size_t kMaxReasonBytes = 2000;
inline constexpr std::size_t kMaxProblemBytes = 300;  // why a member could not save
inline constexpr std::size_t kMaxSpecBytes = 16 * 1024;
inline constexpr std::size_t kMaxSettingsBytes = 2000;      // a job's keys that are not the defaults, in a status
inline constexpr std::size_t kMaxPictures = 24;             // of a job's data that a node shows
inline constexpr std::size_t kMaxPictureBytes = 32 * 1024;  // its pixels
inline constexpr std::size_t kMaxMatrixClasses = 100;       // of a matrix of what was taken for what
inline constexpr std::size_t kMaxConfusions = 12;           // pairs of classes, of the most confused
inline constexpr std::size_t kMaxWarningsBytes = 4000;      // about the data of a run
inline constexpr std::size_t kMaxBuildBytes = 400;
inline constexpr std::size_t kMaxDeviceBytes = 200;   // a device's name
inline constexpr std::size_t kMaxHostBytes = 253;     // a DNS name
inline constexpr std::size_t kMaxAddressBytes = 260;  // host:port
inline constexpr std::size_t kMaxPathBytes = 1024;
static_assert(kMaxMembers <= INT8_MAX, "a sum of the members' codes is an int8");
static_assert(kMaxHostBytes + sizeof(":65535") - 1 <= kMaxAddressBytes, "any host has an address");
static_assert(kMaxRunIdBytes <= 255, "a run's id is the name of a folder, and Linux takes no longer ones");
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
inline constexpr std::size_t kMaxStatistics = 192 * 1024;  // numbers that batch normalizations measure in a step
inline constexpr std::size_t kMaxDigests = kMaxSegments;   // segments and running statistics together
inline constexpr std::size_t kMaxExchangeThreads = 256;
inline constexpr std::size_t kMaxStates = 16;         // of a run that a member offers to resume from
inline constexpr std::size_t kMaxSnapshotParts = 16;  // of what a newcomer is fed
static_assert(kMaxBuckets >= kMaxSegments, "a bucket holds at least one segment");

// Frames.
inline constexpr std::size_t kChunkHeadBytes = 64;        // bytes of a chunk frame before its payload
inline constexpr std::size_t kMessageHeadBytes = 9;       // ZMTP 3.1, before a message of more than 255 bytes
inline constexpr std::size_t kFrameOverheadBytes = 1024;  // the most that a frame has besides its lists or payload
inline constexpr std::size_t kMaxFrameBytes = kMaxChunkPayloadBytes + kFrameOverheadBytes;
inline constexpr std::size_t kMaxControlBytes = 1024 * 1024;  // an answer
inline constexpr std::size_t kMaxRequestBytes = 64 * 1024;    // a request: strangers may send this much
inline constexpr std::size_t kFileSliceBytes = 512 * 1024;    // one reply of fetch
inline constexpr std::size_t kLogSliceBytes = 64 * 1024;      // one reply of logs
inline constexpr int kMaxBadFrames = 5;                       // after this many the sender is cut off
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
static_assert(kLogSliceBytes <= kFileSliceBytes, "who takes a reply knows one bound for all slices");

// Predictions.
inline constexpr std::size_t kMaxForecastRows = 32;
inline constexpr std::size_t kMaxAssumptions = 16;
inline constexpr std::size_t kMaxAssumptionBytes = 300;
inline constexpr double kMaxReal = 1e15;     // a rate, a time or a size
inline constexpr double kMaxLineMbps = 1e7;  // bound of the job's link-mbps

// Examinations (tgctl doctor).
inline constexpr std::size_t kMaxSeenBytes = 400;  // a sentence that says what was seen or what to do
inline constexpr std::size_t kMaxFindings = 500;   // findings about a whole mesh; the rest are only counted
inline constexpr std::size_t kMaxDataSets = 8;
inline constexpr std::uint64_t kMaxExamineSeconds = 20;  // how long a link may be measured

// Credit: chunk payload under way to one peer.
inline constexpr std::size_t kMaxWindowBytes = 4u << 20;
inline constexpr std::size_t kMinWindowBytes = 4u << 10;
static_assert(kMinWindowBytes <= kMaxWindowBytes);
// This many windows of totals may be under way to one peer, as long as all peers together have no more than one each.
// With two, a peer may be a window behind the others before it stops them. More would only help a peer that is slower
// on average, and it would still stop the others, only later, while the queue at its switch port grows.
inline constexpr std::size_t kMaxWindowsOfTotals = 2;
static_assert(kMaxWindowsOfTotals > 1, "with one, whose window is full first stops the totals of all");

// Chunks: the planes and sums of a large one stay in a core's own cache; in chunks below the small size a frame costs
// more than overlapping gains.
inline constexpr std::size_t kLargeChunkParameters = 512 * 1024;
inline constexpr std::size_t kSmallChunkParameters = 16 * 1024;
static_assert(kSmallChunkParameters <= kLargeChunkParameters);
static_assert(2 * kLargeChunkParameters / 8 <= kMaxChunkPayloadBytes, "raw codes, two bits each, fit a frame");

// Open files and connections of a node. A peer needs, on both ports, a connection each way and the sockets' own pipes;
// a peer given by name needs an I/O thread on each as well.
inline constexpr std::size_t kDescriptorsPerPeer = 14;
inline constexpr std::size_t kOwnDescriptors = 48;      // sockets, I/O threads, standard streams, a run's files
inline constexpr std::size_t kReserveDescriptors = 64;  // for tgctl, strangers and restarts, on both ports
inline constexpr std::size_t kMetricsDescriptors = 48;  // connections to the metrics port
constexpr std::size_t descriptors_of(std::size_t nodes) {
  return kOwnDescriptors + kMetricsDescriptors + kReserveDescriptors + nodes * kDescriptorsPerPeer;
}
// The connections that a port may have where so many descriptors are allowed: one of each peer, and half of what the
// node itself does not need. So whoever connects takes none that a run has to be saved with.
constexpr std::size_t connections_of(std::size_t descriptors, std::size_t nodes) {
  const std::size_t own = descriptors_of(nodes) - kReserveDescriptors;
  return nodes + (descriptors > own ? (descriptors - own) / 2 : 0);
}
static_assert(2 * (connections_of(descriptors_of(2), 2) - 2) == kReserveDescriptors);
static_assert(descriptors_of(kMaxMembers) <= 4096, "the hard limit of open files is 4096 or more wherever we looked");

// What others can make a node hold, and where that ends. Who takes nothing is cut, or its words are dropped; who sends
// too much waits in its own TCP. tests/README.md names the test that asks for twice of each.
//
//   before a key is known              a message of the largest size per connection, for the handshake's 2 s
//   connections, open files            512 at the control port, 4 x kMaxMembers at the mesh port, kMetricsDescriptors
//   parts of a message without end     kMaxRequestBytes or kMaxFrameBytes (access/accepted_connections.h)
//   requests that nobody has read      8 of kMaxRequestBytes per connection (control/control_sockets.cpp)
//   requests that wait for an answer   kMaxPendingRequests of kMaxRequestBytes; kMaxGatheredBytes (pending_requests.h)
//   answers that nobody takes          kMaxUntakenBytes for a client, kMaxUntakenBytesInAll for a port: slices of
//                                      logs, records, traces, models; statuses, examinations. Encrypted ones as well
//   a peer's frames                    kMaxReceivedFrames, then kMaxQueuedBytesPerPeer and kMaxQueuedBytes
//   doctor's streams                   64 frames of 64 KiB on their way (doctor/link_stream.h, mesh/probe/link_probe.h)
//   lines of logs and of metrics.jsonl 256 KiB (base/line_writer.h), 1 MiB (store/line_file.h) that are not written yet
//   spans of a trace                   200,000 (step/threads/timeline.h)
//   records of past runs               kMaxRunsKept and kMaxUnbegunKept, each of kMaxRecordBytes at most
//   an HTTP request and its answer     4 KiB, half a second each (metrics/metrics_server.h)

// Queues.
inline constexpr std::size_t kMaxIdlePoolBytes = 32u << 20;  // frame buffers kept for the next frames, per pool
inline constexpr std::size_t kMaxBlockPerFrame = 4;          // a waiting chunk frame's block, in multiples of its bytes
inline constexpr std::size_t kSmallBlockBytes = 16u << 10;   // smaller blocks are not worth a copy
inline constexpr int kMaxReceivedFrames = 32;    // a peer's frames waiting for the receiving thread, up to a MiB each
inline constexpr int kMeshHighWaterMark = 4096;  // messages per peer; the protocol's gates bound the bytes
// Frames queued for the node's thread, each counted with its message and kQueuedEventBytes. A member has at most two
// windows of totals there, and the step frames of this step and the next: one with more than its share is flooding.
// Beyond the total of all members, frames wait at their ports.
inline constexpr std::size_t kQueuedEventBytes = 512;
inline constexpr std::size_t kMaxQueuedBytesPerPeer = 32u << 20;
inline constexpr std::size_t kMaxQueuedBytes = 2 * kMaxQueuedBytesPerPeer;
static_assert(kMaxWindowsOfTotals * kMaxWindowBytes + kMaxFrameBytes + 2 * kMaxStepFrameBytes <
                  kMaxQueuedBytesPerPeer / 2,
              "who keeps to its windows is far from a flood, with small chunks too");
static_assert(kMaxQueuedBytesPerPeer < kMaxQueuedBytes, "who floods is named before it stops the others");
// A newcomer takes its state in slices, so many bytes of them under way.
inline constexpr std::size_t kSnapshotChunkBytes = 512 * 1024;
inline constexpr std::size_t kSnapshotWindowBytes = 8 * kSnapshotChunkBytes;
static_assert(kSnapshotChunkBytes <= kMaxChunkPayloadBytes && kSnapshotWindowBytes < kMaxQueuedBytesPerPeer / 2);

inline constexpr std::size_t kMaxRunsKept = 200;    // a node's runs in a status
inline constexpr std::size_t kMaxUnbegunKept = 20;  // in addition, starts that never began
static_assert(kMaxUnbegunKept < kMaxRunsKept);
static_assert(kMaxFrameBytes <= kMaxIdlePoolBytes, "a pool can keep a buffer of any size");

// Deadlines, milliseconds.
inline constexpr int kControlReplyMs = 3000;   // tgctl waits this long for an answer
inline constexpr int kPeerStatusMs = 500;      // a node waits this long for its peers' part of an answer
inline constexpr int kShutdownMs = 5000;       // hard limit for an orderly end
inline constexpr int kPrepareMs = 300'000;     // of preparing a run, without progress
inline constexpr int kMistakesMs = 1'800'000;  // of evaluating a run's model anew

// The control port and the runs on disk.
inline constexpr std::size_t kMaxRecordBytes = 256 * 1024;  // run.json; a larger one is not read
inline constexpr std::size_t kMaxPendingRequests = 256;     // a control server's questions that are not yet answered
inline constexpr std::size_t kMaxUntakenBytes = 4u << 20;   // answers waiting for one client
inline constexpr std::size_t kMaxUntakenBytesInAll = 32u << 20;
// The last of it is for answers of this size, to who has taken all before.
inline constexpr std::size_t kUntakenBytesOfReaders = 8u << 20;
inline constexpr std::size_t kShortAnswerBytes = 256 * 1024;
static_assert(2 * kMaxControlBytes <= kMaxUntakenBytes &&
              kMaxUntakenBytes <= kMaxUntakenBytesInAll - kUntakenBytesOfReaders);
static_assert(kShortAnswerBytes < kFileSliceBytes, "who asks for slices and reads nothing does not count as a reader");
inline constexpr int kControlHighWaterMark = 64;  // messages per connection; beats beyond it are dropped
inline constexpr int kMaxMessagesPerTurn = 64;    // from one socket, before beats and liveness get their turn
inline constexpr int kRelayReplyMs = kControlReplyMs - 500;  // a node waits this long for another's log or file
inline constexpr int kMaxCallMs =
    90'000'000;                         // then a call without an answer is void; a start may wait a day for nodes
inline constexpr int kMaxBeatMs = 500;  // beats go out every min(peer-timeout / 10, this)
inline constexpr int kLivenessTickMs = 50;
inline constexpr int kControlLingerMs = 500;  // time for the last replies of a node that shuts down
static_assert(kPeerStatusMs < kControlReplyMs && kRelayReplyMs < kControlReplyMs,
              "a node that waits for others still answers before tgctl gives up");
static_assert(kControlReplyMs < kMaxCallMs, "no call is void while tgctl waits for its first answer");
static_assert(kMistakesMs < kMaxCallMs, "no call is void while a model is evaluated for it");
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
              "the longest examination ends before its call is void");
static_assert(kControlLingerMs < kShutdownMs, "the last replies leave before the hard end");
static_assert(kLivenessTickMs <= 100, "liveness takes a gap of 500 ms between ticks for a standstill of this process");

}  // namespace tg::schema
