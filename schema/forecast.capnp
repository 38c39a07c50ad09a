@0xcbdbb40bc48e9c6c;
# What a node predicts of other meshes (tgctl plan): the parts of control.capnp's requests and replies for it, with its rules.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("tg::schema::wire");

struct ForecastRequest {
  spec @0 :Text;
  # Canonical job, at most kMaxSpecBytes.

  nodes @1 :UInt64;
  # 1 to kMaxMembers.

  lineMbps @2 :Float64;
  # What a link carries, at most kMaxLineMbps; 0 = the job's link-mbps, else as measured.

  obsolete3 @3 :Float64;
  computeSeconds @4 :Float64;
  # Forward and backward of a node's part of a step; 0 = as timed on the asked node.
}

struct Forecast {
  # Real numbers in this and the following structs are finite, not negative, at most kMaxReal; names at most
  # kMaxNameBytes. What they mean: schema/control/forecast.h.
  node @0 :Text;
  model @1 :Text;
  compute @2 :Text;
  parameters @3 :UInt64;
  lineMbps @4 :Float64;
  payloadMbps @5 :Float64;
  cores @6 :Float64;
  obsolete7 @7 :Float64;
  obsolete8 @8 :Float64;
  obsolete9 @9 :Int64;
  obsolete10 @10 :Bool;
  exchange @11 :Text;
  coding @12 :Text;
  obsolete13 @13 :UInt64;
  obsolete14 @14 :UInt64;
  asked @15 :ForecastRow;
  table @16 :List(ForecastRow);
  # At most kMaxForecastRows.

  assumptions @17 :List(Text);
  # At most kMaxAssumptions of kMaxAssumptionBytes.
}

struct ForecastRow {
  nodes @0 :UInt64;
  # 1 to kMaxMembers.

  localBatch @1 :UInt64;
  globalBatch @2 :UInt64;
  obsolete3 @3 :Bool;
  obsolete4 @4 :Bool;
  direct @5 :Outcome;
  sharded @6 :Outcome;
  obsolete7 @7 :Outcome;
}

struct Outcome {
  sentBytes @0 :Float64;
  compute @1 :Float64;
  processor @2 :Float64;
  wire @3 :Float64;
  obsolete4 @4 :Float64;
  obsolete5 @5 :Float64;
  obsolete6 @6 :Float64;
  obsolete7 @7 :Float64;
  step @8 :Float64;
  samplesPerSecond @9 :Float64;
  speedUp @10 :Float64;
}
