@0x858646799c79a334;
# Frames of the mesh, version 11 of the protocol. Each field is described from the sender's side: its meaning, unit and
# range, and what a receiver does with an invalid value. "Drop" means that the frame is counted, logged and dropped, and
# its sender disconnected after kMaxBadFrames of them. The names of bounds are those of schema/limits.h.
# Members are never renumbered or removed; new ones are appended, with a default that means "not sent".

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("tg::schema::wire");

struct Frame {
  run @0 :UInt64;
  # Key of the run that the frame belongs to, drawn at its start and at each resume; 0 outside any run. A receiver counts
  # and drops frames of a run that it does not take part in: they are late, not faulty.

  view @1 :UInt32;
  # Number of the view that the sender is in, from 1; 0 outside a run. A receiver counts and drops a frame of another view,
  # and answers one of an older view with the Decide of the newest.

  step @2 :UInt32;
  # The step that the sender is in, from 0. The exchange accepts its own step and the next one.

  union {
    hello @3 :Hello;
    claim @4 :Claim;
    grant @5 :Grant;
    propose @6 :Propose;
    vote @7 :Vote;
    commit @8 :Commit;
    fail @9 :Fail;
    stepFrame @10 :StepFrame;
    scalers @11 :Scalers;
    chunk @12 :Chunk;
    report @13 :Report;
    goodbye @14 :Goodbye;
    credit @15 :Credit;
    probe @16 :Probe;
    probeReply @17 :ProbeReply;
    refusal @18 :Refusal;
    ended @19 :Ended;
    offer @20 :Offer;
    reached @21 :Void;
    # The sender has committed the state of `step`, before an evaluation or at the end of a run.
    suspect @22 :Suspect;
    prepare @23 :Prepare;
    promise @24 :Promise;
    nack @25 :Nack;
    accept @26 :Accept;
    accepted @27 :Accepted;
    decide @28 :Decide;
    # From suspect to here: the change from the header's view to the next one.
    join @29 :Join;
    invite @30 :Invite;
    quiesce @31 :Quiesce;
    snapshotOffer @32 :SnapshotOffer;
    snapshotRequest @33 :SnapshotRequest;
    snapshotChunk @34 :SnapshotChunk;
    snapshotDone @35 :SnapshotDone;
    leave @36 :Void;
    # Goes to the senior, repeatedly: the sender asks to leave the view, which it does while the members are quiesced.
  }
  # An unknown member is dropped.
}

struct Hello {
  # First on every connection, and again once a second.
  protocol @0 :UInt16;
  # kProtocolVersion of the sender. Another value is valid: the receiver reports both versions and both nodes.

  build @1 :Text;
  # Version and engines, for people; printable, at most kMaxBuildBytes. Longer or unprintable: drop.

  node @2 :Text;
  # Name of the sender, [a-z0-9][a-z0-9.-]*, at most kMaxNameBytes. Else drop.

  incarnation @3 :UInt64;
  # Drawn when the process starts; a new value means that the sender was restarted.

  namesHash @4 :UInt64;
  # Hash of the sorted member names. A difference is reported with both values and both nodes.

  heard @5 :UInt64;
  # The receiver's incarnation as the sender knows it, 0 = the sender has received nothing from it yet.

  sequence @6 :UInt64;
  # Counts the sender's hellos to this receiver, from 1.

  echo @7 :UInt64;
  # Sequence of the receiver's last hello that the sender has received, 0 = none. If the echo stops rising, the link does
  # not work in that direction.

  names @8 :Text;
  # The sender's peer names, separated by commas, for people; printable, at most kMaxNamesBytes. Else drop.

  weight @9 :UInt16 = 1;
  # The sender's share of a batch, in proportion to those of the others; 1 to kMaxWeight. Else drop.
}

struct Refusal {
  # Says why a connection's hello is not accepted. The only frame that goes from a ROUTER to a DEALER.
  node @0 :Text;
  # The node that refuses. As in Hello.

  message @1 :Text;
  # Printable, at most kMaxReasonBytes. Else drop.
}

struct Claim {
  # Goes from the node that starts a run to the first of the participating nodes.
  runId @0 :Text;
  # [A-Za-z0-9][A-Za-z0-9._-]*, at most kMaxRunIdBytes. Else drop.
}

struct Grant {
  granted @0 :Bool;
  # True: the receiver may propose. False: message names the run that has the right.

  message @1 :Text;
  # Printable, at most kMaxReasonBytes; empty where granted. Else drop.
}

struct Propose {
  runId @0 :Text;
  # As in Claim.

  spec @1 :Text;
  # The canonical job, printable lines, at most kMaxSpecBytes. Else drop. A receiver parses it again and refuses, with a
  # vote, what it does not understand.

  weights @2 :List(UInt16);
  # The weights of all nodes by seat, from their hellos: the members split a batch by this list. Each 1 to kMaxWeight, at
  # most kMaxMembers. Else drop. A receiver refuses, with a vote, a list for another number of nodes, and in a new run one
  # with another weight for it than its own.

  resume @3 :Resume;
  # Absent for a new run.

  members @4 :List(UInt32);
  # Seats, ascending, each below kMaxMembers, at most that many; empty: all nodes. Else drop. They are the first
  # view's members, or the participants while no state is chosen. A participant without that state joins the run later.
}

struct StateId {
  # The identity of a run's state.
  lineage @0 :UInt32;
  # Number of the run's key, from 1.

  view @1 :UInt32;
  step @2 :UInt64;
  digest @3 :UInt64;
}

struct Resume {
  # Resumes a run. The first proposal has no start, and each receiver answers it with an Offer; the second has the chosen
  # state.
  lineage @0 :UInt32;
  # The lineage of the key in the header. A receiver refuses, with a vote, one that is not above its own.

  fromNewest @1 :Bool;
  fromStep @2 :UInt64;
  # The state that the user wants: the newest that all have, or that of this step.

  anyBuild @3 :Bool;
  # True: builds, processors or threads may differ from those that the run began with.

  start @4 :StateId;

  unasked @5 :Bool;
  # True: the nodes resume the run without a request. A node that a user removed from the run offers nothing then.
}

struct Offer {
  states @0 :List(StateId);
  # The complete states on the sender's disk, newest first; at most kMaxStates. Else drop.

  problem @1 :Text;
  # Why others are not offered; printable, at most kMaxReasonBytes. Else drop.

  lineage @2 :UInt32;
  view @3 :UInt32;
  # The newest view of the run that the sender knows, and its lineage; 0: none.

  voters @4 :List(UInt32);
  # Its members' seats, each below kMaxMembers, at most that many. Else drop.
}

struct Vote {
  accepted @0 :Bool;

  kind @1 :UInt16;
  # tg::ErrorKind of a refusal, 0 where accepted. Beyond the last known kind: drop.

  message @2 :Text;
  # If refused, the reason, which names the node; else the sums of the sender's data files (engine/data/file_sums.h), or
  # nothing. Printable, at most kMaxReasonBytes. Else drop.

  specHash @3 :UInt64;
  modelHash @4 :UInt64;
  dataHash @5 :UInt64;
  stateHash @6 :UInt64;
  # Hashes of what the sender prepared; the proposer compares them over all members. 0 where refused.

  stepSeconds @7 :Float64;
  # Measured seconds of forward + backward of the local batch; finite, not negative. Else drop.

  localBatch @8 :UInt32;
  # The sender's samples in a step.

  linkMbps @9 :Float64;
  # Payload Mbit/s that the sender measured towards all peers at once; 0 = not measured. Not finite or negative: drop.

  workers @10 :UInt16;
  # Threads of the sender's exchange, 1 to kMaxExchangeThreads. Else drop.

  directory @11 :UInt64;
  incarnation @12 :UInt64;
  # The sender's, as in ViewMember.

  globalBatch @13 :UInt64;
  # Samples of a step over all members; 0 where refused.
}

struct Commit {
  exchange @0 :UInt16;
  # tg::schema::ExchangeKind, the same for all. Unknown: drop.

  coding @1 :UInt16;
  # tg::schema::Coding of ternary payloads, the same for all. Unknown: drop.

  windowBytes @2 :UInt64;
  # Payload bytes that may be in flight to one peer, the same for all; kMinWindowBytes to kMaxWindowBytes. Else drop.

  chunkParameters @3 :UInt64;
  # Bound of a chunk's parameters, unless the job sets one; kSmallChunkParameters to kLargeChunkParameters. Else drop.

  members @4 :List(ViewMember);
  # The first view's members by seat, ascending, at most kMaxMembers. Else drop.
}

struct Fail {
  # Ends a proposal or a run. The node that noticed the cause first sends it.
  kind @0 :UInt16;
  # As in Vote.

  node @1 :Text;
  # The node that failed: a node name, or empty. Else drop.

  phase @2 :Text;
  # The phase that this node was in; printable, at most kMaxNameBytes. Else drop.

  message @3 :Text;
  # One sentence; printable, at most kMaxReasonBytes. Else drop.
}

struct StepFrame {
  # Each member sends one per step, in every mode, as soon as the scalers of bucket 0 are known.
  rateBits @0 :UInt32;
  # The learning rate as float32 bits. A difference between members ends the run: they are out of step.

  flags @1 :UInt32;
  # tg::schema::StepFlags. An unknown bit: drop.

  nonFiniteSegment @2 :UInt32;
  # With the non-finite flag: the first segment with a gradient that is not finite, or the number of segments plus the
  # index of the first such statistic; below kMaxDigests. Else drop.

  lossSum @3 :Float64;
  # Sum of the losses of the sender's samples; finite unless the non-finite flag is set. Else drop. With the
  # flag, a receiver reads a value that is not finite as 0.

  digests @4 :List(UInt64);
  # Digests of the state before this step, one per segment and one per running statistic, when due; else empty. At most
  # kMaxDigests. Else drop.

  scalers @5 :List(Float32);
  # Local scalers of bucket 0's ternary segments, in order; at most kMaxSegments, each finite and not negative, unless
  # the non-finite flag is set: then a receiver reads others as 0. Else drop.

  statistics @6 :List(Float32);
  # Means and variances that batch normalizations have measured on the sender's samples of this step, in the order of
  # the model's statistics, without padding; empty where it has none. At most kMaxStatistics, each finite, unless the
  # non-finite flag is set: then a receiver reads others as 0. Else drop.
}

struct Scalers {
  # The scalers of bucket 1, 2, ... Empty for a bucket without ternary segments, but always sent: it is the bucket's gate.
  bucket @0 :UInt32;
  # Below kMaxBuckets. Else drop.

  flags @1 :UInt32;
  nonFiniteSegment @2 :UInt32;
  scalers @3 :List(Float32);
  # As in StepFrame.
}

struct Chunk {
  # A chunk's payload. The Data must stay the last object of the segment: it is written in place before its length is known.
  chunk @0 :UInt32;
  # Number of the chunk in the run's layout, below kMaxChunks. Else drop.

  phase @1 :UInt16;
  # tg::schema::ChunkPhase. Unknown: drop.

  format @2 :UInt16;
  # tg::schema::PayloadFormat. Unknown: drop.

  payload @3 :Data;
  # At most kMaxChunkPayloadBytes. Longer: drop. Whether its length fits the format and the chunk is checked before any
  # kernel sees it.
}

struct Report {
  # The sender's part of an evaluation. Also sent at the end of a run.
  last @0 :Bool;
  # True: at the end of the run.

  correct @1 :UInt64;
  total @2 :UInt64;
  # Correctly classified test samples of the sender's share, and all of that share. correct > total: drop.

  lossSum @3 :Float64;
  # Sum of their losses. A value that is not finite is read as sent, because it is only shown.

  digests @4 :List(UInt64);
  # One per segment and one per running statistic, at most kMaxDigests. Else drop.

  correct5 @5 :UInt64;
  # Samples with their label among the five highest logits. Above total: drop.
}

struct Goodbye {
  # The last frame of an orderly end. The sender is no longer there when it arrives.
  reason @0 :Text;
  # "node-b was shut down"; printable, at most kMaxReasonBytes. Else drop.
}

struct Credit {
  # Goes from the receiver of chunks to their sender, for each quarter of the window (Commit) that arrives: these bytes are
  # no longer in flight.
  takenBytes @0 :UInt64;
  # Payload bytes of the receiver's chunks that the sender of this frame has consumed in this step. Never falls. More than
  # were sent: the run ends.
}

struct Probe {
  # A burst of these measures the link before a run. They carry no data.
  burst @0 :UInt32;
  # Number of the burst.

  last @1 :Bool;
  # True: the burst is complete, and the receiver answers it.

  filler @2 :Data;
  # At most kMaxChunkPayloadBytes. Longer: drop.
}

struct ProbeReply {
  burst @0 :UInt32;
  # The burst that has arrived completely.

  micros @1 :UInt64;
  # Time between the arrivals of its first and last frame. More than the time since the burst was sent: read as that time.
}

struct Ended {
  # How the run of the header's key ended on the sender, and which state the sender has. Goes to all when the state is
  # saved, and again to each node from which it has no Ended. STOPPED and COMPLETED are authoritative: a receiver records
  # them over any other end.
  state @0 :UInt16;
  # tg::schema::RunState: STOPPED, COMPLETED, FAILED or INTERRUPTED. Else drop.

  reason @1 :Text;
  # Printable, at most kMaxReasonBytes. Else drop.

  sinceMs @2 :Int64;
  # Unix time in milliseconds of that end. A FAILED run has the cause with the lowest one.

  step @3 :UInt64;
  digest @4 :UInt64;
  # The final state of a STOPPED or COMPLETED run; 0 where it FAILED.

  save @5 :UInt16;
  # tg::schema::SaveState of the sender's state. Unknown: drop.

  problem @6 :Text;
  # Why it is not saved; printable, at most kMaxProblemBytes. Else drop.

  asks @7 :Bool;
  # True: the sender does not know how the run ended on the receiver, which answers with its own Ended.

  heldStep @8 :UInt64;
  heldDigest @9 :UInt64;
  # The state that the sender has, or had; 0 = none.
}

struct ViewMember {
  # A member of a view. Seat and directory together identify a voter, which outlives the process.
  seat @0 :UInt32;
  # Index among all nodes; below kMaxMembers. Else drop.

  since @1 :UInt32;
  # Number of its first view as a member, from 1. The member with the lowest is the senior;
  # of equals the lowest seat.

  weight @2 :UInt16 = 1;
  # Weight of its share of a batch; 1 to kMaxWeight. Else drop.

  incarnation @3 :UInt64;
  # The incarnation of its process, as in Hello.

  directory @4 :UInt64;
  # Drawn when its state directory was made.

  vote @5 :UInt64;
  # That of its newest Promise. Another process at this seat whose votesBefore is lower has an old vote.
}

struct NextView {
  # The next view, as the voters of a view decide it.
  number @0 :UInt32;
  # Number of the next view, at most kMaxViews; the header's is one less. Else drop.

  members @1 :List(ViewMember);
  # By seat, ascending, at most kMaxMembers. Else drop.

  start @2 :UInt64;
  # Committed steps of its first state.

  waits @3 :Bool;
  # True: members pause before the first step, because others may be about to leave as well.

  why @4 :Text;
  # Why the view changed, for people; printable, at most kMaxReasonBytes. Else drop.
}

struct Ballot {
  # The number of an attempt to decide. Its owner has never used it before, not before a restart either.
  count @0 :UInt32;
  # From 1; 0 = none.

  seat @1 :UInt32;
  # Its owner; below kMaxMembers. Else drop.
}

struct Suspect {
  # The sender has lost this member of the view, or is ineligible itself.
  seat @0 :UInt32;
  # Below kMaxMembers. Else drop.

  why @1 :Text;
  # Printable, at most kMaxReasonBytes. Else drop.
}

struct Prepare {
  ballot @0 :Ballot;
}

struct Promise {
  # Answer to Prepare. The sender commits nothing more in this view, and takes part in no lower ballot.
  ballot @0 :Ballot;
  # That of the Prepare.

  directory @1 :UInt64;
  incarnation @2 :UInt64;
  # The sender's, as in ViewMember. Another directory, or 0: it has lost its vote, for the reason in unfit, and promises nothing.

  hasState @3 :Bool;
  step @4 :UInt64;
  # True: the sender has the state with this number of committed steps in memory.

  unfit @5 :Text;
  # Why it is ineligible for the next view, or empty; printable, at most kMaxReasonBytes. Else drop.

  leaving @6 :Bool;
  # It is being shut down.

  reachable @7 :List(UInt32);
  # The seats with which frames pass both ways; ascending, at most kMaxMembers. Else drop.

  acceptedIn @8 :Ballot;
  accepted @9 :NextView;
  # The view that it has accepted, and the ballot in which it did; count 0: none.

  vote @10 :UInt64;
  # How often the sender has written its vote in this run, with this one.

  votesBefore @11 :UInt64;
  # The same when its process began.
}

struct Nack {
  # Answer to Prepare and Accept: the sender has promised this higher ballot.
  ballot @0 :Ballot;
}

struct Accept {
  ballot @0 :Ballot;
  view @1 :NextView;
}

struct Accepted {
  # Answer to Accept.
  ballot @0 :Ballot;
  directory @1 :UInt64;
  incarnation @2 :UInt64;
  # The sender's, as in ViewMember.

  vote @3 :UInt64;
  votesBefore @4 :UInt64;
  # As in Promise.
}

struct Decide {
  # The next view. From a node of no view that the receiver knows, a hint, as an Ended is (daemon/membership/view_change.h).
  view @0 :NextView;
}

struct Join {
  # Goes to all nodes, repeatedly: the sender asks to become a member of an active run. The header has neither run nor
  # view, which the sender may not know.
  runId @0 :Text;
  # As in Claim.

  prepared @1 :Bool;
  # True: the sender has data, model and engine, which vote describes. False: only vote's directory and incarnation are
  # set.

  vote @2 :Vote;
  reachable @3 :List(UInt32);
  # Seats with a working link to the sender in both directions, each below kMaxMembers, at most that many. Else drop.
}

struct Invite {
  # The senior's answer to a node that is not prepared. The header has the run's key and its view.
  runId @0 :Text;
  # As in Claim.

  spec @1 :Text;
  # As in Propose.

  weights @2 :List(UInt16);
  # As in Propose.

  globalBatch @3 :UInt64;
  lineage @4 :UInt32;
  view @5 :NextView;
  # The present view; number 0: drop. The sender is its senior. To a voter it may be a hint, as a Decide is.

  choice @6 :Commit;
  # As the run began.
}

struct Quiesce {
  # Goes from the senior to the others and to the joiner, each second while the members are quiesced, and at the release.
  seat @0 :UInt32;
  # The joiner's seat, below kMaxMembers. Else drop.

  done @1 :UInt64;
  # Bytes that the joiner has.

  of @2 :UInt64;
  # Bytes of the whole state.

  over @3 :Bool;
  # True: release, and the members begin the next step. A joiner asks again later.

  why @4 :Text;
  # For people. Printable, at most kMaxReasonBytes. Else drop.
}

struct SnapshotOffer {
  # Goes from the senior to the joiner: the state that all members hold.
  state @0 :StateId;
  parts @1 :List(UInt64);
  # Bytes of the parts that make up the snapshot, at most kMaxSnapshotParts. Else drop. A receiver gives up
  # joining if they do not fit its model, if the job cannot have so many rows of metrics, or if its disk has no room.
}

struct SnapshotRequest {
  # Goes from the joiner to the senior.
  from @0 :UInt64;
  # The joiner has all bytes before this one, and requests kSnapshotWindowBytes more.

  again @1 :Bool;
  # True: the receiver sends again from this byte on, whatever it has sent before.
}

struct SnapshotChunk {
  # Bytes of the snapshot, in answer to a SnapshotRequest.
  at @0 :UInt64;
  # Offset of the first one. Not the expected one: counted and dropped.

  payload @1 :Data;
  # At most kMaxChunkPayloadBytes. Else drop.
}

struct SnapshotDone {
  # Goes from the joiner to the senior: it has the whole state, and computed its digest.
  state @0 :StateId;
  reachable @1 :List(UInt32);
  # As in Join.
}
