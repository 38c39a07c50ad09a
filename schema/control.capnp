@0xb0ba1dc8f5e13492;
# Control messages: requests of tgctl, replies of nodes, and heartbeats between nodes. Each request has one reply with the
# same id, but a heartbeat has none. Fields are described from the sender's side. A receiver refuses a message with an
# invalid value and names the field (a node replies with an error, tgctl prints it). The names of bounds are those of
# schema/limits.h. Texts are printable. Members are appended, never renumbered.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("tg::schema::wire");

using import "doctor.capnp".Diagnosis;
using import "doctor.capnp".Examination;
using import "doctor.capnp".ExamineRequest;
using import "forecast.capnp".Forecast;
using import "forecast.capnp".ForecastRequest;
using import "forecast.capnp".Outcome;

struct Request {
  id @0 :UInt64;
  # Drawn by the client; the reply carries it back. A client ignores a reply with another id, which comes late.

  union {
    status @1 :StatusRequest;
    start @2 :StartRequest;
    stop @3 :StopRequest;
    logs @4 :LogsRequest;
    fetch @5 :FetchRequest;
    version @6 :Void;
    beat @7 :Heartbeat;
    obsolete8 @8 :Void;
    forecast @9 :ForecastRequest;
    delete @10 :DeleteRequest;
    fetched @11 :FetchedRequest;
    examine @12 :ExamineRequest;
    resume @13 :ResumeRequest;
    leave @14 :LeaveRequest;
    misclassifications @15 :MisclassificationsRequest;
  }
}

struct StatusRequest {
  run @0 :Text;
  # A run id, a prefix of one, or empty for all; at most kMaxRunIdBytes.

  local @1 :Bool;
  # True: the node answers from its own knowledge. Peers ask so, and questions do not go round in circles.

  pick @2 :UInt8;
  # tg::schema::Pick: how a run is chosen where several have this prefix, or where it is empty.
}

struct StartRequest {
  spec @0 :Text;
  # Canonical job, at most kMaxSpecBytes.

  runId @1 :Text;
  # The run's id, or empty: the node draws one.

  dryRun @2 :Bool;
  # True: the node validates and predicts, and starts nothing.

  without @3 :List(Text);
  # Nodes that take no part in the start, at most kMaxMembers. Unknown names are refused.

  pictures @4 :Bool;
  # With dryRun: the reply has sample pictures and no prediction.
}

struct SamplePicture {
  label @0 :Text;
  channels @1 :UInt32;
  height @2 :UInt32;
  width @3 :UInt32;
  pixels @4 :Data;
  # Row by row, with the channels of a pixel together; at most kMaxPictureBytes.
}

struct ResumeRequest {
  run @0 :Text;
  # The whole id of a run that has ended.

  settings @1 :Text;
  # Job lines that replace the run's, at most kMaxSpecBytes.

  fromNewest @2 :Bool;
  fromStep @3 :UInt64;
  # The state to resume from: the newest that all have, or that of this step.

  anyBuild @4 :Bool;
  # True: builds, processors or threads may differ.

  without @5 :List(Text);
  # As in StartRequest.

  node @6 :Text;
  # The node that proposes it: a name, or empty for the asked node.
}

struct StopRequest {
  run @0 :Text;
  # As in StatusRequest, not empty.

  node @1 :Text;
  # The node that stops it: a name, or empty for the asked node. Each part of a PAUSED run is stopped separately.
}

struct LeaveRequest {
  node @0 :Text;
  # The node that leaves its run, or rejoins the active one: a name, or empty for the asked node. The reply, a DoneReply,
  # names the run and comes before it has happened; status shows when it has.

  rejoin @1 :Bool;
  # True: it rejoins.
}

struct LogsRequest {
  run @0 :Text;
  node @1 :Text;
  # The node with the log: a name, or empty for the asked node.

  offset @2 :UInt64;
  # Bytes of the log that the client has.
}

struct FetchRequest {
  run @0 :Text;
  node @1 :Text;
  # As in LogsRequest.

  file @2 :Text;
  # model.safetensors, model-raw.safetensors, metrics.jsonl or run.json.

  offset @3 :UInt64;
  # Bytes of the file that the client has.
}

struct DeleteRequest {
  # Deletes all files of an ended run on one node.
  run @0 :Text;
  # The whole id.

  node @1 :Text;
  # As in LogsRequest.
}

struct FetchedRequest {
  # Says that the run's model was fetched and checked: this node's copy is no longer the only one.
  run @0 :Text;
  # The whole id.

  node @1 :Text;
  # As in LogsRequest.
}

struct MisclassificationsRequest {
  run @0 :Text;
  # The whole id of an ended run with its model on the asked node.
}

struct Heartbeat {
  # Goes from node to node on the control port, so that it does not wait behind chunks. It has no reply.
  node @0 :Text;
  incarnation @1 :UInt64;
  # As in the frame Hello.

  runId @2 :Text;
  # The run that the sender takes part in, or empty.

  phase @3 :UInt16;
  # tg::schema::Phase.

  step @4 :UInt64;
  progress @5 :UInt64;
  # Grows with all work that the sender's run gets done. The same number for long: the sender is stuck.

  view @6 :UInt32;
  # Number of the sender's view of that run, 0 without one.

  lineage @7 :UInt32 = 1;
  # How often the run had begun when the sender joined it.

  key @8 :UInt64;
  # The run key of that lineage, 0 without one. Of two lineages the higher by (lineage, key) continues.

  line @9 :List(Origin);
  # The states that it descends from, newest first, at most kMaxOrigins; older ones are left out.

  endedRun @10 :Text;
  # Without a run: the run whose lineage this is. It has ended here, and others run a lower one. Else empty.

  byOrder @11 :UInt32 = 1;
  # The newest lineage that a person's start or resume began; those after it began automatically.
}

struct Origin {
  lineage @0 :UInt32 = 1;
  key @1 :UInt64;
  step @2 :UInt64;
  # The last state of this earlier lineage that the later one kept.
}

struct Reply {
  id @0 :UInt64;
  # The request's id.

  union {
    error @1 :Error;
    mesh @2 :MeshStatus;
    plan @3 :Plan;
    stop @4 :Stop;
    slice @5 :Slice;
    version @6 :Version;
    obsolete7 @7 :Void;
    forecast @8 :Forecast;
    done @9 :Done;
    examination @10 :Examination;
    diagnosis @11 :Diagnosis;
    misclassifications @12 :Misclassifications;
  }
}

struct Error {
  kind @0 :UInt16;
  # tg::ErrorKind; decides tgctl's exit code.

  message @1 :Text;
  # What is wrong, where, and the next action; at most kMaxReasonBytes.
}

struct MeshStatus {
  node @0 :Text;
  # The node that answers.

  build @1 :Text;
  insecure @2 :Bool;
  # True: the node listens beyond loopback without keys.

  nodes @3 :List(Node);
  # In the order of seats, at most kMaxMembers.

  runs @4 :List(Run);
  # Newest first, at most kMaxRunsKept; the oldest are left out where the reply would exceed kMaxControlBytes.
}

struct Node {
  name @0 :Text;
  address @1 :Text;
  # Control address, host:port.

  state @2 :UInt16;
  # tg::schema::NodeState.

  problem @3 :Text;
  # Why it is not up; empty where nothing is wrong. At most kMaxReasonBytes.

  compute :group {
    engine @4 :Text;
    # The engine that trains there, "cpu" or "cuda", at most kMaxNameBytes; empty = unknown, because it does not answer.

    device @5 :Text;
    # The device's name, at most kMaxDeviceBytes; empty = the processor.

    math @6 :Text;
    # The option's word for how it multiplies, at most kMaxNameBytes.

    freeBytes @7 :UInt64;
    totalBytes @8 :UInt64;
    # The device's memory at present.

    problem @11 :Text;
    # Why the device does not answer, at most kMaxReasonBytes; empty = it does.

    whyCpu @9 :Text;
    # Why the processor trains although a device might, at most kMaxReasonBytes; empty = no
    # device was configured.

    moduleMissing @10 :Bool;
    # True: no module for a device is installed.
  }
}

struct Run {
  id @0 :Text;
  state @1 :UInt16;
  # tg::schema::RunState.

  reason @2 :Text;
  sinceMs @3 :Int64;
  startedMs @4 :Int64;
  # Unix times in milliseconds at which it entered this state, and at which its start was committed.

  model @5 :Text;
  data @6 :Text;
  exchange @7 :Text;
  gradients @8 :Text;
  lastLayer @43 :Text;
  # Words of the job, each at most kMaxNameBytes; lastLayer: the format of its gradient.

  step @9 :UInt64;
  steps @10 :UInt64;
  # Committed steps, and those of the whole run.

  loss @11 :Float64;
  # Mean over the last step's global batch; not finite where the run diverged.

  learningRate @12 :Float64;
  evaluated @13 :Bool;
  # False: there was no evaluation yet, and the evaluation fields are 0.

  evaluationStep @14 :UInt64;
  evaluationAccuracy @15 :Float64;
  # 0..1

  evaluationLoss @16 :Float64;
  samplesPerSecond @17 :Float64;
  # The rate of the whole mesh.

  codeBitsPerParameter @18 :Float64;
  # Payload bits of one member's codes per parameter.

  sentBitsPerParameter @19 :Float64;
  # All bits that one member sends in a step, per parameter.

  sentBytesPerStep @20 :Float64;
  zeros @21 :Float64;
  # Share of zero codes, 0..1.

  parameters @22 :UInt64;
  digest @23 :UInt64;
  digestStep @24 :UInt64;
  initialDigest @25 :UInt64;
  coding @27 :Text;
  # "raw" or "entropy", for ternary payloads, at most kMaxNameBytes; empty before the run began.

  members @26 :List(Member);
  # In the order of names, at most kMaxMembers.

  evaluationAccuracy5 @28 :Float64;
  # 0..1: the label has one of the five highest logits; 0 where there are five classes or fewer.

  lineage @29 :UInt32 = 1;
  # How often the run has begun: at its start, and at each resume.

  fromStep @30 :UInt64;
  # The step at which it began last.

  view @31 :UInt32 = 1;
  # The present view's number; viewStep and viewSinceMs: the committed steps at which it began, and when.

  viewStep @32 :UInt64;
  viewSinceMs @33 :Int64;
  departed @34 :List(Departure);
  # Former members, in the order of names, at most kMaxMembers.

  next @35 :Text;
  # For an INTERRUPTED run: when the nodes resume it, or why they do not; at most kMaxReasonBytes.

  trainingSamples @39 :UInt64;
  globalBatch @40 :UInt64;
  # Samples per epoch, and per step; 0 = not known.

  bestAccuracy @41 :Float64;
  bestStep @42 :UInt64;
  # The highest accuracy over all evaluations, and its step; 0 = none yet.

  dataRead @36 :Text;
  # The data that the run trains on, in a sentence of at most kMaxSentenceBytes.

  dataWarnings @37 :Text;
  # Likely mistakes of the user in the data: lines, at most kMaxWarningsBytes.

  settings @38 :Text;
  # The job's keys that differ from the defaults, KEY = VALUE: lines, at most kMaxSettingsBytes.
}

struct Departure {
  node @0 :Text;
  sinceMs @1 :Int64;
  step @2 :UInt64;
  # Committed steps at which the others continued.

  why @3 :Text;
  # At most kMaxProblemBytes.
}

struct Member {
  node @0 :Text;
  state @1 :UInt16;
  # tg::schema::RunState, as this member sees it.

  step @2 :UInt64;
  digest @3 :UInt64;
  digestStep @4 :UInt64;
  waitShare @5 :Float64;
  # Share of their time that the other members, on average, wait for this one, 0..1.

  phase @6 :UInt16;
  # tg::schema::Phase at present.

  phaseMs @7 :UInt64;
  phaseLimitMs @8 :UInt64;
  # Time without progress, and the time without progress after which it is evicted; limit 0 = not known.

  save @9 :UInt16;
  # tg::schema::SaveState of the state at digestStep.

  problem @10 :Text;
  # Why it is not saved, at most kMaxProblemBytes.

  samples @11 :UInt32;
  # Its share of each step; 0 = not known.

  dataWaitShare @12 :Float64;
  # Share of its time that its engine waits for samples, 0..1.

  states @13 :List(UInt64);
  # Steps of the states on its disk that a resume may begin at, newest first; at most kMaxStates.

  seniority @14 :UInt32;
  # Its position in the present view, 1 = the most senior; 0 = not known.

  waitingShare @15 :Float64;
  # Share of its time that it waits for other members, 0..1.
}

struct Plan {
  # The plan of a start, or of one that is not made (dryRun).
  runId @0 :Text;
  # Empty for a dry run without an id.

  parameters @1 :UInt64;
  members @2 :UInt64;
  globalBatch @3 :UInt64;
  localBatch @4 :UInt64;
  # Samples; the local one is the sender's.

  exchange @5 :Text;
  coding @6 :Text;
  # "raw" or "entropy", for ternary payloads. Words, each at most kMaxNameBytes.

  memoryBytes @7 :UInt64;
  # Per node.

  computeSeconds @8 :Float64;
  # Forward and backward of the sender's share of a step, timed while the run was prepared.

  linkMbps @9 :Float64;
  # Payload rate that the prediction uses; without a prediction as measured, 0 = not measured.

  predicted @10 :Outcome;
  # All 0 where unpredicted says why.

  obsolete11 @11 :Int64;
  unpredicted @12 :Text;
  # Why there is no prediction, at most kMaxReasonBytes; empty = there is one.

  shares @13 :List(Share);
  # Parts of the global batch, by rank; at most kMaxMembers.

  deviceBytes @14 :UInt64;
  # Device memory, beside memoryBytes; 0 = the sender's processor computes.

  fromStep @15 :UInt64;
  # The step at which the run begins: 0, or that of the resumed state.

  diskBytes @16 :UInt64;
  # Bound of what the run needs on the disk of a node's state directory, without metrics and log; 0 = not given.

  dataRead @17 :Text;
  dataWarnings @18 :Text;
  # As in Run.

  pictures @19 :List(SamplePicture);
  # Training samples as the network sees them, at most kMaxPictures; empty unless the request asked for them.

  steps @20 :UInt64;
  # Steps of the whole run, also where they follow from epochs; 0 = not given.

  trainingSamples @21 :UInt64;
  # Samples per epoch; 0 = none, or not given.
}

struct Share {
  node @0 :Text;
  samples @1 :UInt64;
}

struct Stop {
  runId @0 :Text;
  state @1 :UInt16;
  # tg::schema::RunState after the request was accepted.
}

struct Slice {
  # A part of a log or file.
  runId @0 :Text;
  node @1 :Text;
  # The node that has it.

  totalBytes @2 :UInt64;
  # Bytes of the whole, as far as it exists.

  data @3 :Data;
  # From the requested offset, at most kFileSliceBytes.

  final @4 :Bool;
  # True: no part follows.
}

struct Done {
  # A run was deleted or marked as fetched, or a node leaves it.
  runId @0 :Text;
  node @1 :Text;
  # The node that did it.

  freedBytes @2 :UInt64;
  # Bytes of the deleted files.
}

struct Misclassifications {
  # How the model of an ended run classifies its test data.
  runId @0 :Text;
  node @1 :Text;
  # The node that evaluated it.

  step @2 :UInt64;
  # The model's step.

  samples @3 :UInt64;
  correct @4 :UInt64;
  classCount @5 :UInt64;
  classes @6 :List(Text);
  # Names, each at most kMaxNameBytes; empty where there are more than kMaxMatrixClasses.

  counts @7 :List(UInt32);
  # The confusion matrix: samples by actual class (row) and predicted class.

  confusions @8 :List(Confusion);
  # The most frequent first, at most kMaxConfusions.

  worst @9 :List(Misclassification);
  # The lowest probability of the actual class first, at most kMaxPictures; empty where samples are not pictures.
}

struct Confusion {
  # Samples of one class that were classified as another.
  actual @0 :Text;
  predicted @1 :Text;
  # Names, each at most kMaxNameBytes.

  count @2 :UInt64;
  total @3 :UInt64;
  # All samples of the actual class.
}

struct Misclassification {
  picture @0 :SamplePicture;
  # Its label is the actual class.

  predicted @1 :Text;
  probability @2 :Float64;
  # The probability that the model gives the predicted class, 0..1.
}

struct Version {
  node @0 :Text;
  build @1 :Text;
  protocol @2 :UInt16;
  # kProtocolVersion of that node; 0 = an old node, which does not send it.
}
