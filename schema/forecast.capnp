@0xcbdbb40bc48e9c6c;
# What a node measured of itself (tgctl bench) and what it predicts of other meshes (tgctl plan): the parts of control.capnp's
# requests and replies for them, with its rules.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("tg::schema::wire");

struct BenchRequest {
  obsolete0 @0 :Float64;
}

struct ForecastRequest {
  spec @0 :Text;
  # Canonical job, at most kMaxSpecBytes.

  nodes @1 :UInt64;
  # 1 to kMaxForecastNodes.

  lineMbps @2 :Float64;
  # What a link carries, at most kMaxLineMbps; 0 = the job's link-mbps, else as measured.

  cores @3 :Float64;
  # Of a node, kMinCores to kMaxCores; 0 = the asked node's.
}

struct Bench {
  # Real numbers in this and the following structs are finite, not negative, at most kMaxReal; names at most
  # kMaxNameBytes. What they mean: schema/control/forecast.h.
  node @0 :Text;
  build @1 :Text;
  kernels @2 :Text;
  measuredMs @3 :Int64;
  members @4 :UInt64;
  # 1 to kMaxMembers.

  cores @5 :UInt64;
  threads @6 :UInt64;
  linkMbps @7 :Float64;
  obsolete8 @8 :Float64;
  roundTripSeconds @9 :Float64;
  obsolete10 @10 :Float64;
  obsolete11 @11 :Float64;
  obsolete12 @12 :Float64;
  codec @13 :List(KernelRate);
  # At most kMaxKernelRates.

  compute @14 :List(ComputeRate);
  # At most kMaxComputeRates.

  saved @15 :Text;
  # At most kMaxPathBytes.

  obsolete16 @16 :UInt64;
  device @17 :Text;
  math @18 :Text;
  # What computed, as Node says it; the device of at most kMaxDeviceBytes.
}

struct KernelRate {
  kernel @0 :Text;
  rate @1 :Float64;
}

struct ComputeRate {
  model @0 :Text;
  batch @1 :UInt64;
  secondsPerSample @2 :Float64;
  gflops @3 :Float64;
}

struct Forecast {
  node @0 :Text;
  model @1 :Text;
  compute @2 :Text;
  parameters @3 :UInt64;
  lineMbps @4 :Float64;
  payloadMbps @5 :Float64;
  cores @6 :Float64;
  obsolete7 @7 :Float64;
  obsolete8 @8 :Float64;
  measuredMs @9 :Int64;
  measuredNow @10 :Bool;
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
  # 1 to kMaxForecastNodes.

  localBatch @1 :UInt64;
  globalBatch @2 :UInt64;
  obsolete3 @3 :Bool;
  obsolete4 @4 :Bool;
  direct @5 :Outcome;
  sharded @6 :Outcome;
  ring @7 :Outcome;
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
