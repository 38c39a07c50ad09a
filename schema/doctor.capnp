@0xd2e5b6f3a1c84907;
# The request of tgctl doctor, the facts that a node finds about itself and its links, and the conclusions from those of all
# nodes: the parts of control.capnp's requests and replies for them, with its rules.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("tg::schema::wire");

struct ExamineRequest {
  local @0 :Bool;
  # True: answer an Examination of the node itself; asked by peers. False: ask all nodes, answer a Diagnosis.

  seconds @1 :UInt8;
  # For how long each link is measured, half of it in each direction, at most kMaxExamineSeconds; 0 = links are not measured.

  lineMbps @2 :Float64;
  # What each link should carry, at most kMaxLineMbps; 0 = not given.

  askedMs @3 :Int64;
  # The sender's clock, Unix time in milliseconds.
}

struct LinkFacts {
  # One peer line, and the way to that peer; of this node's line only the first two.
  peer @0 :Text;
  line @1 :Text;
  # host:port as configured.

  address @2 :Text;
  # The address that was connected to; empty where the host did not resolve, and nameProblem says why.

  nameProblem @3 :Text;
  mesh @4 :UInt16;
  control @5 :UInt16;
  # tg::schema::Reach, of its two ports.

  obsolete6 @6 :Text;
  obsolete7 @7 :UInt32;
  mtu @8 :UInt32;
  # Bytes of the largest packet of that path as this end knows, 0 = not known.

  device @9 :Text;
  # The network interface of that connection, or empty.

  obsolete10 @10 :UInt32;
  up @11 :Bool;
  # The mesh's link: both directions work.

  problem @12 :Text;
  # What the mesh says is wrong with it.

  waitingHelps @13 :Bool;
  # False: not a matter of reaching each other (another build, key, name).

  refusal @14 :Text;
  # Why the control ports do not get on although they reach each other: keys. Empty otherwise.

  mbps @15 :Float64;
  # Payload that the peer acknowledged; 0 = not measured.

  obsolete16 @16 :Text;
}

struct DataFacts {
  # A data set in the node's data-dir, or what is wrong with it.
  set @0 :Text;
  hash @1 :UInt64;
  problem @2 :Text;
  obsolete3 @3 :Text;
}

struct Examination {
  # What a node says of itself. Problems are sentences with the next action, empty where nothing is wrong.
  node @0 :Text;
  build @1 :Text;
  obsolete2 @2 :UInt16;
  askedMs @3 :Int64;
  receivedMs @4 :Int64;
  answeredMs @5 :Int64;
  # The request's clock as it was, and this node's when the request came and when this was sent: the receiver can
  # tell how far apart the clocks are.

  busy @6 :Text;
  # The reason why nothing that disturbs was done, such as "run first is on"; empty = nothing.

  obsolete7 @7 :Text;
  obsolete8 @8 :Bool;
  keyProblem @9 :Text;
  obsolete10 @10 :UInt64;
  obsolete11 @11 :UInt64;
  diskProblem @12 :Text;
  obsolete13 @13 :UInt64;
  obsolete14 @14 :UInt64;
  memoryProblem @15 :Text;
  obsolete16 @16 :UInt64;
  obsolete17 @17 :UInt64;
  obsolete18 @18 :UInt64;
  obsolete19 @19 :Text;
  obsolete20 @20 :Text;
  dataDir @21 :Text;
  data @22 :List(DataFacts);
  # At most kMaxDataSets.

  unfinished @23 :Text;
  # The check that did not end in time, and kept those after it from being made.

  links @24 :List(LinkFacts);
  # In the order of seats, at most kMaxMembers.

  runProblem @25 :Text;
  # Why its run is PAUSED.
}

struct Finding {
  check @0 :UInt16;
  verdict @1 :UInt16;
  # tg::schema::Check, tg::schema::Verdict.

  node @2 :Text;
  # Empty: the whole mesh.

  peer @3 :Text;
  # The other end, where it is a link's.

  seen @4 :Text;
  fix @5 :Text;
  # At most kMaxSentenceBytes each; what passes needs no fix.
}

struct Diagnosis {
  node @0 :Text;
  # The asked one.

  nodes @1 :List(Text);
  # In the order of seats, at most kMaxMembers.

  findings @2 :List(Finding);
  # In the order of checks, at most kMaxFindings.

  leftOut @3 :UInt32;
  # Findings beyond that.

  reach @4 :Data;
  # For each node, and within it for each node: tg::schema::Cell, a byte each.

  mbps @5 :List(Float32);
  # The same, 0 = not measured.

  obsolete6 @6 :List(UInt32);
}
