@0x858646799c79a334;
# Frames of the mesh, version 11 of the protocol. Every field is described from the sender's side: what it means, its
# unit and range, and what a receiver does when the value is odd. "Drop" means: the frame is counted, named, dropped,
# and its sender cut off after kMaxBadFrames of them. Bounds have their names from schema/limits.h.
# Members are never renumbered or removed; new ones are appended and have a default that says "not sent".

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("tg::schema::wire");

struct Frame {
  run @0 :UInt64;
  # Key of the run this frame belongs to, drawn at its start and at each resume; 0 outside any run. A receiver counts and
  # drops frames of a run that it does not take part in: they are stragglers, not faults.

  view @1 :UInt32;
  # Number of the view the sender is in, from 1; 0 outside a run. Another view's frame is counted and dropped; one of an
  # older view is answered with the Decide of the newest.

  step @2 :UInt32;
  # The step the sender is in, from 0. The exchange accepts its own step and the next one.

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
    # The change from the header's view to the next one.
    join @29 :Join;
    invite @30 :Invite;
    quiesce @31 :Quiesce;
    snapshotOffer @32 :SnapshotOffer;
    snapshotRequest @33 :SnapshotRequest;
    snapshotChunk @34 :SnapshotChunk;
    snapshotDone @35 :SnapshotDone;
    leave @36 :Void;
    # To the most senior member, again and again: the sender is to leave the view, at a hold.
  }
  # An unknown member is dropped.
}

struct Hello {
  # First on every connection, and again once a second.
  protocol @0 :UInt16;
  # kProtocolVersion of the sender. Another value is not odd: the receiver reports both versions and both nodes.

  build @1 :Text;
  # Version and engines, for people; printable, at most kMaxBuildBytes. Longer or unprintable: drop.

  node @2 :Text;
  # Name of the sender, [a-z0-9][a-z0-9.-]*, at most kMaxNameBytes. Else drop.

  incarnation @3 :UInt64;
  # Drawn at start of the process; a new value means that the sender was restarted.

  namesHash @4 :UInt64;
  # Hash of the sorted member names. A difference is reported with both values and both nodes.

  heard @5 :UInt64;
  # The receiver's incarnation as the sender knows it, 0 = the sender has not heard the receiver yet.

  sequence @6 :UInt64;
  # Counts the sender's hellos to this receiver, from 1.

  echo @7 :UInt64;
  # Sequence of the receiver's last hello that the sender has heard, 0 = none: a link whose echo stands still carries
  # nothing that way.

  names @8 :Text;
  # The sender's peer names, comma between them, for people; printable, at most kMaxNamesBytes. Else drop.

  weight @9 :UInt16 = 1;
  # The sender's share of a batch, in proportion to those of the others; 1 to kMaxWeight. Else drop.
}

struct Refusal {
  # The only frame that goes from a ROUTER to a DEALER: why a connection's hello is not taken.
  node @0 :Text;
  # Who refuses. As in Hello.

  message @1 :Text;
  # Printable, at most kMaxReasonBytes. Else drop.
}

struct Claim {
  # Sent by the node that was asked to start a run to the first one of those that are asked to take part.
  runId @0 :Text;
  # [A-Za-z0-9][A-Za-z0-9._-]*, at most kMaxRunIdBytes. Else drop.
}

struct Grant {
  granted @0 :Bool;
  # True: the receiver may propose; false: message says which run holds the right.

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
  # Of all nodes, in the order of seats, as their hellos told the sender: all members split a batch by this list. Each 1
  # to kMaxWeight, at most kMaxMembers. Else drop. A receiver refuses, with a vote, a list that has another number of
  # nodes, or, of a new run, another weight for it than its own.

  resume @3 :Resume;
  # Not sent: a new run.

  members @4 :List(UInt32);
  # Seats, ascending, each below kMaxMembers, at most that many; empty: all nodes. Else drop. Of the first view's members;
  # of those that are asked, as long as no state is chosen. Who is asked and does not have it comes into the run later.
}

struct StateId {
  # A state of a run.
  lineage @0 :UInt32;
  # Counts the run's keys, from 1.

  view @1 :UInt32;
  step @2 :UInt64;
  digest @3 :UInt64;
}

struct Resume {
  # Goes on with a run. First without a start: each receiver answers with an Offer; then with the one that was chosen.
  lineage @0 :UInt32;
  # Of the key in the header. A receiver refuses, with a vote, one that is not above its own.

  fromNewest @1 :Bool;
  fromStep @2 :UInt64;
  # Which state the user asked for: the newest that all have, or that of this step.

  anyBuild @3 :Bool;
  # True: builds, processors or threads may differ from those of the run's beginning.

  start @4 :StateId;

  unasked @5 :Bool;
  # True: the nodes go on by themselves. A node that was told to leave the run offers nothing then.
}

struct Offer {
  states @0 :List(StateId);
  # That are whole on the sender's disk, newest first; at most kMaxStates. Else drop.

  problem @1 :Text;
  # Why others are not offered; printable, at most kMaxReasonBytes. Else drop.

  lineage @2 :UInt32;
  view @3 :UInt32;
  # The newest view of the run that the sender knows, in which lineage; 0: none.

  voters @4 :List(UInt32);
  # Its members' seats, each below kMaxMembers, at most that many. Else drop.
}

struct Vote {
  accepted @0 :Bool;

  kind @1 :UInt16;
  # tg::ErrorKind of a refusal, 0 where accepted. Beyond the last known kind: drop.

  message @2 :Text;
  # Why not, naming the node; where accepted, what the sender's data files are (engine/data/file_sums.h), or nothing.
  # Printable, at most kMaxReasonBytes. Else drop.

  specHash @3 :UInt64;
  modelHash @4 :UInt64;
  dataHash @5 :UInt64;
  stateHash @6 :UInt64;
  # Of what the sender prepared; the proposer compares them over all members. 0 where refused.

  stepSeconds @7 :Float64;
  # Measured seconds of forward + backward of the local batch; finite, not negative. Else drop.

  localBatch @8 :UInt32;
  # Samples of a step that are the sender's.

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
  # tg::schema::ExchangeKind, chosen for all. Unknown: drop.

  coding @1 :UInt16;
  # tg::schema::Coding of ternary payloads, chosen for all. Unknown: drop.

  windowBytes @2 :UInt64;
  # Payload bytes that may be on their way to one peer, the same for all; kMinWindowBytes to kMaxWindowBytes. Else drop.

  chunkParameters @3 :UInt64;
  # The most parameters of a chunk, unless the job says how many; kSmallChunkParameters to kLargeChunkParameters. Else drop.

  members @4 :List(ViewMember);
  # Of the first view, by seat, at most kMaxMembers. Else drop.
}

struct Fail {
  # The end of a proposal or of a run, from whoever saw the cause first.
  kind @0 :UInt16;
  # As in Vote.

  node @1 :Text;
  # Whom it is about: a node name, or empty. Else drop.

  phase @2 :Text;
  # Where that node was; printable, at most kMaxNameBytes. Else drop.

  message @3 :Text;
  # One sentence; printable, at most kMaxReasonBytes. Else drop.
}

struct StepFrame {
  # One per member and step, in every mode, as soon as the scalers of bucket 0 are known.
  rateBits @0 :UInt32;
  # The learning rate as float32 bits. A difference between members ends the run: they are out of step.

  flags @1 :UInt32;
  # tg::schema::StepFlags. An unknown bit: drop.

  nonFiniteSegment @2 :UInt32;
  # With the non-finite flag: the first segment whose gradient is not finite, or the number of segments and the first of
  # the statistics that is not; below kMaxDigests. Else drop.

  lossSum @3 :Float64;
  # Sum of the losses of the sender's samples; finite unless the non-finite flag is set. Else drop; with the flag,
  # a receiver reads a value that is not finite as 0.

  digests @4 :List(UInt64);
  # Digests of the state before this step, one per segment and one per running statistic, when due; else empty. At most
  # kMaxDigests. Else drop.

  scalers @5 :List(Float32);
  # Local scalers of bucket 0's ternary segments, in order; at most kMaxSegments, each finite and not negative, unless
  # the non-finite flag is set: then a receiver reads what is not so as 0. Else drop.

  statistics @6 :List(Float32);
  # Means and variances that batch normalizations have measured on the sender's samples of this step, in the order of
  # the model's statistics, without padding; empty where it has none. At most kMaxStatistics, each finite, unless the
  # non-finite flag is set: then a receiver reads what is not so as 0. Else drop.
}

struct Scalers {
  # Of bucket 1, 2, ...; empty for a bucket without ternary segments, but always sent: it is the bucket's gate.
  bucket @0 :UInt32;
  # Below kMaxBuckets. Else drop.

  flags @1 :UInt32;
  nonFiniteSegment @2 :UInt32;
  scalers @3 :List(Float32);
  # As in StepFrame.
}

struct Chunk {
  # The Data must stay the last object of the segment: the payload is written in place before its length is known.
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
  # After an evaluation and at the end of a run.
  last @0 :Bool;
  # True: at the end of the run.

  correct @1 :UInt64;
  total @2 :UInt64;
  # Test samples of the sender's share that were right, and all of them. correct > total: drop.

  lossSum @3 :Float64;
  # Sum of their losses; a value that is not finite is read as sent, it is shown to people only.

  digests @4 :List(UInt64);
  # One per segment and one per running statistic, at most kMaxDigests. Else drop.

  correct5 @5 :UInt64;
  # Of these samples those whose label is among the five highest logits. Above total: drop.
}

struct Goodbye {
  # Last frame of an orderly end; the sender is gone when it arrives.
  reason @0 :Text;
  # "node-b was shut down"; printable, at most kMaxReasonBytes. Else drop.
}

struct Credit {
  # From the receiver of chunks to their sender, each time a quarter of the window (Commit) has come: these bytes are no
  # longer on their way.
  takenBytes @0 :UInt64;
  # Payload bytes of the receiver's chunks of this step that the sender of this frame has taken so far. Never falls; more
  # than was sent ends the run.
}

struct Probe {
  # A burst of these measures the link before a run; they carry nothing.
  burst @0 :UInt32;
  # Number of the burst.

  last @1 :Bool;
  # True: the burst is complete, answer it.

  filler @2 :Data;
  # At most kMaxChunkPayloadBytes. Longer: drop.
}

struct ProbeReply {
  burst @0 :UInt32;
  # The burst that has come completely.

  micros @1 :UInt64;
  # Between the arrivals of its first and of its last frame. More than the time since the burst was sent: taken for that.
}

struct Ended {
  # How the run of the header's key ended for the sender, and what it has of it: sent to all when it has saved, and again
  # to whom it does not know the end of. STOPPED and COMPLETED are facts: whoever knows one records it, whatever it
  # thought before.
  state @0 :UInt16;
  # tg::schema::RunState: STOPPED, COMPLETED, FAILED or INTERRUPTED. Else drop.

  reason @1 :Text;
  # Printable, at most kMaxReasonBytes. Else drop.

  sinceMs @2 :Int64;
  # Unix time in milliseconds of that end. Of several causes of a FAILED run the first one is the cause.

  step @3 :UInt64;
  digest @4 :UInt64;
  # The state that a STOPPED or COMPLETED run ended with; 0 where it FAILED.

  save @5 :UInt16;
  # tg::schema::SaveState of the state that the sender has. Unknown: drop.

  problem @6 :Text;
  # Why it is not saved; printable, at most kMaxProblemBytes. Else drop.

  asks @7 :Bool;
  # True: the sender does not know how the receiver's part of the run ended.

  heldStep @8 :UInt64;
  heldDigest @9 :UInt64;
  # The state that the sender has, or had; 0 = none.
}

struct ViewMember {
  # A member of a view. Its seat and directory together are a voter: it outlives the process.
  seat @0 :UInt32;
  # Place among all nodes; below kMaxMembers. Else drop.

  since @1 :UInt32;
  # Number of the view that it has been a member from; 1: from the beginning. The member with the least is the senior;
  # of equals the lowest seat.

  weight @2 :UInt16 = 1;
  # Of its share of a batch; 1 to kMaxWeight. Else drop.

  incarnation @3 :UInt64;
  # Of its process, as in Hello.

  directory @4 :UInt64;
  # Drawn when its state directory was made.
}

struct NextView {
  # What the voters of a view decide about the next one.
  number @0 :UInt32;
  # Of the next view, from 2; that of the header is one less. Else drop.

  members @1 :List(ViewMember);
  # By seat, ascending, at most kMaxMembers. Else drop.

  start @2 :UInt64;
  # Committed steps of the state that it begins with.

  waits @3 :Bool;
  # True: members let some time pass before the first step, for others may be about to leave as well.

  why @4 :Text;
  # Why the view changed, for people; printable, at most kMaxReasonBytes. Else drop.
}

struct Ballot {
  # An attempt to decide. Its owner has never used the number before, not before a restart either.
  count @0 :UInt32;
  # From 1; 0 = none.

  seat @1 :UInt32;
  # Whose it is; below kMaxMembers. Else drop.
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
  # Answer to Prepare. The sender commits nothing in this view any more, and takes part in no lower ballot.
  ballot @0 :Ballot;
  # Which it answers.

  directory @1 :UInt64;
  incarnation @2 :UInt64;
  # The sender's, as in ViewMember.

  hasState @3 :Bool;
  step @4 :UInt64;
  # It has the state of so many committed steps in memory.

  unfit @5 :Text;
  # Why it is ineligible for the next view, or empty; printable, at most kMaxReasonBytes. Else drop.

  leaving @6 :Bool;
  # It is being shut down.

  reachable @7 :List(UInt32);
  # The seats with which frames pass both ways; ascending, at most kMaxMembers. Else drop.

  acceptedIn @8 :Ballot;
  accepted @9 :NextView;
  # What it has accepted, and in which ballot; count 0: nothing.
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
  # The sender's, as in ViewMember.
}

struct Decide {
  # The next view, decided.
  view @0 :NextView;
}

struct Join {
  # To all nodes, repeatedly: the sender asks to become a member of an active run. The header has neither
  # run nor view, which the sender may not know.
  runId @0 :Text;
  # As in Claim.

  prepared @1 :Bool;
  # True: the sender has data, model and engine, and vote says which. False: of the vote only directory and incarnation
  # count.

  vote @2 :Vote;
  reachable @3 :List(UInt32);
  # Seats of the nodes that the sender hears and that hear it, each below kMaxMembers, at most that many. Else drop.
}

struct Invite {
  # The answer of a run's senior to a node that is not prepared. The header has the run's key and its view.
  runId @0 :Text;
  # As in Claim.

  spec @1 :Text;
  # As in Propose.

  weights @2 :List(UInt16);
  # As in Propose.

  globalBatch @3 :UInt64;
  lineage @4 :UInt32;
  view @5 :NextView;
  # The present view; number 0: drop.

  choice @6 :Commit;
  # As the run began with.
}

struct Quiesce {
  # The senior to the others and to the joiner, each second while the members are quiesced, and at the release.
  seat @0 :UInt32;
  # The joiner's, below kMaxMembers. Else drop.

  done @1 :UInt64;
  # Bytes that it has.

  of @2 :UInt64;
  # Bytes of the whole state.

  over @3 :Bool;
  # True: release, the members begin the next step. To a joiner: it asks again later.

  why @4 :Text;
  # For people. Printable, at most kMaxReasonBytes. Else drop.
}

struct SnapshotOffer {
  # The senior to the joiner: all members hold this state.
  state @0 :StateId;
  parts @1 :List(UInt64);
  # Bytes of the parts that make up the snapshot, at most kMaxSnapshotParts. Else drop. A receiver whose model
  # they do not fit gives the join up.
}

struct SnapshotRequest {
  # The joiner to the senior.
  from @0 :UInt64;
  # It has all bytes before this one, and takes kSnapshotWindowBytes more.

  again @1 :Bool;
  # True: it waits for this one, whatever was sent.
}

struct SnapshotChunk {
  # The answer: bytes of the snapshot.
  at @0 :UInt64;
  # Place of the first one. Not the one that is awaited: counted and dropped.

  payload @1 :Data;
  # At most kMaxChunkPayloadBytes. Else drop.
}

struct SnapshotDone {
  # The joiner has the whole state and has computed its digest.
  state @0 :StateId;
  reachable @1 :List(UInt32);
  # As in Join.
}
