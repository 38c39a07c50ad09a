@0xb0ba1dc8f5e13492;
# Control messages: between tgctl and a node, and the beats between nodes. One request, one reply of the same id; a beat
# has no reply. Fields are described from the sender's side; an odd value makes the receiver refuse the whole message
# with the field's name (a node answers an error, tgctl prints it). Bounds have their names from schema/limits.h, texts
# are printable. Members are appended, never renumbered.

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
  # Drawn by the asker; the reply carries it back. A reply of another id is a late one and ignored.

  union {
    status @1 :StatusRequest;
    start @2 :StartRequest;
    stop @3 :StopRequest;
    logs @4 :LogsRequest;
    fetch @5 :FetchRequest;
    version @6 :Void;
    beat @7 :Beat;
    obsolete8 @8 :Void;
    forecast @9 :ForecastRequest;
    delete @10 :DeleteRequest;
    fetched @11 :FetchedRequest;
    examine @12 :ExamineRequest;
    resume @13 :ResumeRequest;
    leave @14 :LeaveRequest;
    mistakes @15 :MistakesRequest;
  }
}

struct StatusRequest {
  run @0 :Text;
  # A run id, a prefix of one, or empty for all; at most kMaxRunIdBytes.

  local @1 :Bool;
  # True: answer from what this node knows itself; asked by peers, so that questions do not go round in circles.

  pick @2 :UInt8;
  # tg::schema::Pick: which run is meant where several have this prefix, or where it is empty.
}

struct StartRequest {
  spec @0 :Text;
  # Canonical job, at most kMaxSpecBytes.

  runId @1 :Text;
  # Wanted id, or empty: the node draws one.

  dryRun @2 :Bool;
  # True: validate and predict, start nothing.

  without @3 :List(Text);
  # Nodes that take no part in the beginning, at most kMaxMembers. Unknown names are refused.

  pictures @4 :Bool;
  # With dryRun: predict nothing, and show some of the data.
}

struct SamplePicture {
  label @0 :Text;
  channels @1 :UInt32;
  height @2 :UInt32;
  width @3 :UInt32;
  pixels @4 :Data;
  # Row by row, the channels of a pixel together; at most kMaxPictureBytes.
}

struct ResumeRequest {
  run @0 :Text;
  # The whole id of a run that has ended.

  settings @1 :Text;
  # Job lines that replace those of the run, at most kMaxSpecBytes.

  fromNewest @2 :Bool;
  fromStep @3 :UInt64;
  # The newest state that all have, or that of this step.

  anyBuild @4 :Bool;
  # True: also where builds, processors or threads differ.

  without @5 :List(Text);
  # As in StartRequest.
}

struct StopRequest {
  run @0 :Text;
  # As in StatusRequest, not empty.

  node @1 :Text;
  # Who stops it: a node name, or empty for the asked node. Each part of a PAUSED run is stopped for itself.
}

struct LeaveRequest {
  node @0 :Text;
  # Who leaves the run that it is in, or comes back into the one that is on: a node name, or empty for the asked node.
  # Answered with a DoneReply that names the run: it will, and status shows when it has.

  back @1 :Bool;
  # True: it comes back.
}

struct LogsRequest {
  run @0 :Text;
  node @1 :Text;
  # Whose log: a node name, or empty for the asked node.

  offset @2 :UInt64;
  # Bytes of the log that the asker has.
}

struct FetchRequest {
  run @0 :Text;
  node @1 :Text;
  # As in LogsRequest.

  file @2 :Text;
  # model.safetensors, model-raw.safetensors, metrics.jsonl or run.json.

  offset @3 :UInt64;
  # Bytes of the file that the asker has.
}

struct DeleteRequest {
  # Everything of an ended run on one node.
  run @0 :Text;
  # The whole id.

  node @1 :Text;
  # As in LogsRequest.
}

struct FetchedRequest {
  # The run's model was fetched and checked: this node's copy is no longer the only one.
  run @0 :Text;
  # The whole id.

  node @1 :Text;
  # As in LogsRequest.
}

struct MistakesRequest {
  run @0 :Text;
  # The whole id of a run that has ended, and whose model is on the asked node.
}

struct Beat {
  # One way, node to node, on the control port: a sign of life that does not wait behind chunks.
  node @0 :Text;
  incarnation @1 :UInt64;
  # As in the frame Hello.

  runId @2 :Text;
  # The run the sender takes part in, or empty.

  phase @3 :UInt16;
  # tg::schema::Phase.

  step @4 :UInt64;
  progress @5 :UInt64;
  # Grows whenever the sender's run gets anything done; the same number for long means stuck.

  view @6 :UInt32;
  # The view of that run that the sender is in, 0 without one.

  lineage @7 :UInt32 = 1;
  # How often the run had begun when the sender came into it.
}

struct Reply {
  id @0 :UInt64;
  # Of the request.

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
    mistakes @12 :Mistakes;
  }
}

struct Error {
  kind @0 :UInt16;
  # tg::ErrorKind; decides tgctl's exit code.

  message @1 :Text;
  # What, where, what to do; at most kMaxReasonBytes.
}

struct MeshStatus {
  node @0 :Text;
  # Who answers.

  build @1 :Text;
  insecure @2 :Bool;
  # True: the node listens beyond loopback without keys.

  nodes @3 :List(Node);
  # In the order of seats, at most kMaxMembers.

  runs @4 :List(Run);
  # Newest first, at most kMaxRunsKept; the oldest are left out where the reply would pass kMaxControlBytes.
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
    # What trains there, "cpu" or "cuda", at most kMaxNameBytes; empty = not known: it does not answer.

    device @5 :Text;
    # Which one, at most kMaxDeviceBytes; empty = the processor.

    math @6 :Text;
    # How it multiplies, a word of the option, at most kMaxNameBytes.

    freeBytes @7 :UInt64;
    totalBytes @8 :UInt64;
    # Of its memory, now.

    problem @11 :Text;
    # Why it does not answer, at most kMaxReasonBytes; empty = nothing is wrong with it.

    whyCpu @9 :Text;
    # Why the processor trains although a device might, at most kMaxReasonBytes; empty = nobody asked for another.

    moduleMissing @10 :Bool;
    # True: because no module is installed.
  }
}

struct Run {
  id @0 :Text;
  state @1 :UInt16;
  # tg::schema::RunState.

  reason @2 :Text;
  sinceMs @3 :Int64;
  startedMs @4 :Int64;
  # Unix time in milliseconds: since when it is in this state; when it was committed.

  model @5 :Text;
  data @6 :Text;
  exchange @7 :Text;
  gradients @8 :Text;
  lastLayer @43 :Text;
  # Words of the job, each at most kMaxNameBytes; lastLayer: how its gradient travels.

  step @9 :UInt64;
  steps @10 :UInt64;
  # Committed and wanted.

  loss @11 :Float64;
  # Mean over the last step's global batch; not finite where the run diverged.

  learningRate @12 :Float64;
  evaluated @13 :Bool;
  # False: the three evaluation fields say nothing yet.

  evaluationStep @14 :UInt64;
  evaluationAccuracy @15 :Float64;
  # 0..1

  evaluationLoss @16 :Float64;
  samplesPerSecond @17 :Float64;
  # Of the whole mesh.

  codeBitsPerParameter @18 :Float64;
  # Payload bits of one member's codes per parameter.

  sentBitsPerParameter @19 :Float64;
  # Everything one member sends in a step, per parameter.

  sentBytesPerStep @20 :Float64;
  zeros @21 :Float64;
  # Share of zero codes, 0..1.

  parameters @22 :UInt64;
  digest @23 :UInt64;
  digestStep @24 :UInt64;
  initialDigest @25 :UInt64;
  coding @27 :Text;
  # Of ternary payloads, "raw" or "entropy", at most kMaxNameBytes; empty before the run began.

  members @26 :List(Member);
  # In the order of names, at most kMaxMembers.

  evaluationAccuracy5 @28 :Float64;
  # 0..1: the label has one of the five highest logits; 0 where there are five classes or fewer.

  lineage @29 :UInt32 = 1;
  # How often the run has begun: at its start, and with every resume.

  fromStep @30 :UInt64;
  # The step at which it began last.

  view @31 :UInt32 = 1;
  # Number of the present list of members; viewStep and viewSinceMs: with which committed steps it began, and when.

  viewStep @32 :UInt64;
  viewSinceMs @33 :Int64;
  left @34 :List(Departure);
  next @35 :Text;
  # Who was a member once and is none now, in the order of names, at most kMaxMembers.

  trainingSamples @39 :UInt64;
  globalBatch @40 :UInt64;
  # Of an epoch, and of a step; 0 = not known.

  bestAccuracy @41 :Float64;
  bestStep @42 :UInt64;
  # Of all evaluations; 0 = none yet.

  dataRead @36 :Text;
  # What the run trains on, in a sentence of at most kMaxSeenBytes.

  dataWarnings @37 :Text;
  # What in that may not be what its user meant: lines, at most kMaxWarningsBytes.

  settings @38 :Text;
  # The job's keys that are not the defaults, KEY = VALUE: lines, at most kMaxSettingsBytes.
}

struct Departure {
  node @0 :Text;
  sinceMs @1 :Int64;
  step @2 :UInt64;
  # With so many committed steps the others went on.

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
  # tg::schema::Phase: what it does now.

  phaseMs @7 :UInt64;
  phaseLimitMs @8 :UInt64;
  # For how long it has got nothing done there, and after what time of that it is left out; limit 0 = not known.

  save @9 :UInt16;
  # tg::schema::SaveState of the state at digestStep.

  problem @10 :Text;
  # Why it is not saved, at most kMaxProblemBytes.

  samples @11 :UInt32;
  # Of each step that are its share; 0 = not known.

  dataWaitShare @12 :Float64;
  # Share of its time that its engine waits for samples, 0..1.

  states @13 :List(UInt64);
  # Steps of the states on its disk that a resume may begin at, newest first; at most kMaxStates.

  seniority @14 :UInt32;
  # Its place in the present view, 1 = who has been a member longest; 0 = not known.

  waitingShare @15 :Float64;
  # Share of its time that it waits for other members, 0..1.
}

struct Plan {
  # What a start did, or would do.
  runId @0 :Text;
  # Empty for a dry run without a wanted id.

  parameters @1 :UInt64;
  members @2 :UInt64;
  globalBatch @3 :UInt64;
  localBatch @4 :UInt64;
  # Samples; the local one is the sender's.

  exchange @5 :Text;
  coding @6 :Text;
  # Of ternary payloads, "raw" or "entropy". Words, each at most kMaxNameBytes.

  memoryBytes @7 :UInt64;
  # Per node.

  computeSeconds @8 :Float64;
  # Forward and backward of the sender's share of a step, timed while the run was prepared.

  linkMbps @9 :Float64;
  # Payload rate that is predicted with; without a prediction as measured, 0 = not.

  predicted @10 :Outcome;
  # All of it 0 where unpredicted says why.

  obsolete11 @11 :Int64;
  unpredicted @12 :Text;
  # Why there is no prediction, at most kMaxReasonBytes; empty = there is one.

  shares @13 :List(Share);
  # Of the global batch, by rank; at most kMaxMembers.

  deviceBytes @14 :UInt64;
  # Of a device's memory, beside memoryBytes; 0 = the sender's processor computes.

  fromStep @15 :UInt64;
  # The step at which the run begins: 0, or of the state that it is resumed from.

  diskBytes @16 :UInt64;
  # What the run takes at most on the disk of a node's state directory, metrics and log aside; 0 = not said.

  dataRead @17 :Text;
  dataWarnings @18 :Text;
  # As in Run.

  pictures @19 :List(SamplePicture);
  # Training samples as the network sees them, at most kMaxPictures; none unless they were asked for.

  steps @20 :UInt64;
  # At which the run is complete, where they follow from epochs as well; 0 = not said.

  trainingSamples @21 :UInt64;
  # An epoch's; 0 = none, or not said.
}

struct Share {
  node @0 :Text;
  samples @1 :UInt64;
}

struct Stop {
  runId @0 :Text;
  state @1 :UInt16;
  # tg::schema::RunState after the request was taken.
}

struct Slice {
  # A part of a log or file.
  runId @0 :Text;
  node @1 :Text;
  # Whose it is.

  totalBytes @2 :UInt64;
  # Of the whole, as far as it exists.

  data @3 :Data;
  # From the asked offset, at most kFileSliceBytes.

  final @4 :Bool;
  # True: nothing comes after this part.
}

struct Done {
  # A run was deleted, or marked as fetched.
  runId @0 :Text;
  node @1 :Text;
  # Where.

  freedBytes @2 :UInt64;
  # Of the files that are gone.
}

struct Mistakes {
  # What the model of an ended run says of its test data.
  runId @0 :Text;
  node @1 :Text;
  # Who answers.

  step @2 :UInt64;
  # Of the model.

  samples @3 :UInt64;
  correct @4 :UInt64;
  classCount @5 :UInt64;
  classes @6 :List(Text);
  # Names, each at most kMaxNameBytes; empty where there are more than kMaxMatrixClasses.

  counts @7 :List(UInt32);
  # Samples by what they are and what was said of them: a row of all classes for each class.

  confused @8 :List(Confusion);
  # The most first, at most kMaxConfusions.

  wrongest @9 :List(Mistake);
  # The least probability of what it is first, at most kMaxPictures; empty where samples are no pictures.
}

struct Confusion {
  # Samples of one class that were taken for another.
  is @0 :Text;
  said @1 :Text;
  # Names, each at most kMaxNameBytes.

  count @2 :UInt64;
  of @3 :UInt64;
  # Of all samples of that class.
}

struct Mistake {
  picture @0 :SamplePicture;
  # Its label is what it is.

  said @1 :Text;
  probability @2 :Float64;
  # Of what was said, 0..1.
}

struct Version {
  node @0 :Text;
  build @1 :Text;
  protocol @2 :UInt16;
  # kProtocolVersion of that node; 0 = of a time when it was not said.
}
