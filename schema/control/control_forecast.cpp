#include "schema/control/control_forecast.h"

#include "schema/limits.h"
#include "schema/text.h"
#include "schema/wire.h"

namespace tg::schema {
namespace {

std::string word(capnp::Text::Reader text, const char* field) { return checked_text(text, kMostNameBytes, field); }

// What a node answers fits a reply. A text is padded to a word, after its closing zero.
constexpr std::size_t text_bytes(std::size_t most) { return most + kWordBytes; }
constexpr std::size_t kKernelRateBytes =
    capnp::sizeInWords<wire::KernelRate>() * kWordBytes + text_bytes(kMostNameBytes);
constexpr std::size_t kComputeRateBytes =
    capnp::sizeInWords<wire::ComputeRate>() * kWordBytes + text_bytes(kMostNameBytes);
static_assert(kMostKernelRates * kKernelRateBytes + kMostComputeRates * kComputeRateBytes + kMostBuildBytes +
                  kMostDeviceBytes + kMostPathBytes + kFrameOverheadBytes <=
              kMostControlBytes);
constexpr std::size_t kForecastRowBytes =
    (capnp::sizeInWords<wire::ForecastRow>() + 3 * capnp::sizeInWords<wire::Outcome>()) * kWordBytes;
constexpr std::size_t kAssumptionBytes = kWordBytes + text_bytes(kMostAssumptionBytes);  // with its pointer in the list
static_assert((kMostForecastRows + 1) * kForecastRowBytes + kMostAssumptions * kAssumptionBytes + kFrameOverheadBytes <=
              kMostControlBytes);

Compute compute(capnp::Text::Reader text) {
  const std::string read = word(text, "compute");
  const std::optional<Compute> known = from_word<Compute>(read);
  if (!known) throw Odd{"compute is " + read};
  return *known;
}

double real(double value, const char* field) { return checked_real(value, kMostReal, field); }

std::uint64_t between(std::uint64_t value, std::uint64_t least, std::uint64_t most, const char* field) {
  if (value < least) throw Odd{std::string(field) + " is " + std::to_string(value)};
  return checked_below(value, most + 1, field);
}

// 0 stands for "not told" where that is allowed.
double cores(double value, bool may_be_zero, const char* field) {
  checked_real(value, kMostCores, field);
  if (value < kLeastCores && !(may_be_zero && value == 0)) throw Odd{std::string(field) + " is too small"};
  return value;
}

void put(wire::ForecastRow::Builder to, const ForecastRow& row) {
  to.setNodes(row.nodes);
  to.setLocalBatch(row.local_batch);
  to.setGlobalBatch(row.global_batch);
  put_outcome(to.initDirect(), row.direct);
  put_outcome(to.initSharded(), row.sharded);
  put_outcome(to.initRing(), row.ring);
}

ForecastRow take(wire::ForecastRow::Reader from) {
  ForecastRow row;
  row.nodes = between(from.getNodes(), 1, kMostForecastNodes, "nodes");
  row.local_batch = from.getLocalBatch();
  row.global_batch = from.getGlobalBatch();
  row.direct = take_outcome(from.getDirect());
  row.sharded = take_outcome(from.getSharded());
  row.ring = take_outcome(from.getRing());
  return row;
}

}  // namespace

double checked_real(double value, double most, const char* field) {
  // Written so that what is not a number is refused, too.
  if (!(value >= 0 && value <= most)) throw Odd{std::string(field) + " is no number from 0 to " + std::to_string(most)};
  return value;
}

void put_outcome(wire::Outcome::Builder to, const Outcome& outcome) {
  to.setSentBytes(outcome.sent_bytes);
  to.setCompute(outcome.compute);
  to.setProcessor(outcome.processor);
  to.setWire(outcome.wire);
  to.setStep(outcome.step);
  to.setSamplesPerSecond(outcome.samples_per_second);
  to.setSpeedUp(outcome.speed_up);
}

Outcome take_outcome(wire::Outcome::Reader from) {
  Outcome outcome;
  outcome.sent_bytes = real(from.getSentBytes(), "sent bytes");
  outcome.compute = real(from.getCompute(), "compute");
  outcome.processor = real(from.getProcessor(), "processor");
  outcome.wire = real(from.getWire(), "wire");
  outcome.step = real(from.getStep(), "step");
  outcome.samples_per_second = real(from.getSamplesPerSecond(), "samples per second");
  outcome.speed_up = real(from.getSpeedUp(), "speed-up");
  return outcome;
}

// --- Bench. ----------------------------------------------------------------------------------------------------------

void put_bench(wire::Bench::Builder to, const BenchReply& bench) {
  to.setNode(text_of(bench.node));
  to.setBuild(text_of(clip_text(bench.build, kMostBuildBytes)));
  to.setKernels(text_of(clip_text(bench.kernels, kMostNameBytes)));
  to.setMeasuredMs(bench.measured_ms);
  to.setMembers(bench.members);
  to.setCores(bench.cores);
  to.setThreads(bench.threads);
  to.setLinkMbps(bench.link_mbps);
  to.setRoundTripSeconds(bench.round_trip_seconds);
  auto codec = to.initCodec(static_cast<capnp::uint>(bench.codec.size()));
  for (std::size_t i = 0; i < bench.codec.size(); ++i) {
    wire::KernelRate::Builder one = codec[static_cast<capnp::uint>(i)];
    one.setKernel(text_of(clip_text(bench.codec[i].kernel, kMostNameBytes)));
    one.setRate(bench.codec[i].rate);
  }
  auto compute = to.initCompute(static_cast<capnp::uint>(bench.compute.size()));
  for (std::size_t i = 0; i < bench.compute.size(); ++i) {
    wire::ComputeRate::Builder one = compute[static_cast<capnp::uint>(i)];
    one.setModel(text_of(clip_text(bench.compute[i].model, kMostNameBytes)));
    one.setBatch(bench.compute[i].batch);
    one.setSecondsPerSample(bench.compute[i].seconds_per_sample);
    one.setGflops(bench.compute[i].gflops);
  }
  to.setSaved(text_of(clip_text(bench.saved, kMostPathBytes)));
  to.setDevice(text_of(clip_text(bench.device, kMostDeviceBytes)));
  to.setMath(text_of(clip_text(bench.math, kMostNameBytes)));
}

BenchReply take_bench(wire::Bench::Reader from) {
  BenchReply bench;
  bench.node = checked_node(from.getNode(), "node");
  bench.build = checked_text(from.getBuild(), kMostBuildBytes, "build");
  bench.kernels = word(from.getKernels(), "kernels");
  bench.measured_ms = from.getMeasuredMs();
  bench.members = between(from.getMembers(), 1, kMostMembers, "members");
  bench.cores = from.getCores();
  bench.threads = from.getThreads();
  bench.link_mbps = real(from.getLinkMbps(), "link rate");
  bench.round_trip_seconds = real(from.getRoundTripSeconds(), "round trip");
  const auto codec = from.getCodec();
  checked_below(codec.size(), kMostKernelRates + 1, "kernel rates");
  for (const wire::KernelRate::Reader one : codec)
    bench.codec.push_back({word(one.getKernel(), "kernel"), real(one.getRate(), "rate")});
  const auto compute = from.getCompute();
  checked_below(compute.size(), kMostComputeRates + 1, "compute rates");
  for (const wire::ComputeRate::Reader one : compute) {
    bench.compute.push_back({word(one.getModel(), "model"), one.getBatch(),
                             real(one.getSecondsPerSample(), "seconds per sample"), real(one.getGflops(), "rate")});
  }
  bench.saved = checked_text(from.getSaved(), kMostPathBytes, "path");
  bench.device = checked_text(from.getDevice(), kMostDeviceBytes, "device");
  bench.math = word(from.getMath(), "math");
  return bench;
}

// --- Forecast. -------------------------------------------------------------------------------------------------------

void put_forecast(wire::ForecastRequest::Builder to, const ForecastRequest& request) {
  to.setSpec(text_of(request.spec));
  to.setNodes(request.nodes);
  to.setLineMbps(request.line_mbps);
  to.setCores(request.cores);
}

ForecastRequest take_forecast(wire::ForecastRequest::Reader from) {
  ForecastRequest request;
  request.spec = checked_lines(from.getSpec(), kMostSpecBytes, "spec");
  request.nodes = between(from.getNodes(), 1, kMostForecastNodes, "nodes");
  request.line_mbps = checked_real(from.getLineMbps(), kMostLineMbps, "line rate");
  request.cores = cores(from.getCores(), true, "cores");
  return request;
}

void put_forecast(wire::Forecast::Builder to, const ForecastReply& reply) {
  to.setNode(text_of(reply.node));
  to.setModel(text_of(clip_text(reply.model, kMostNameBytes)));
  to.setCompute(to_word(reply.compute));
  to.setParameters(reply.parameters);
  to.setLineMbps(reply.line_mbps);
  to.setPayloadMbps(reply.payload_mbps);
  to.setCores(reply.cores);
  to.setMeasuredMs(reply.measured_ms);
  to.setMeasuredNow(reply.measured_now);
  to.setExchange(text_of(clip_text(reply.exchange, kMostNameBytes)));
  to.setCoding(text_of(clip_text(reply.coding, kMostNameBytes)));
  put(to.initAsked(), reply.asked);
  auto table = to.initTable(static_cast<capnp::uint>(reply.table.size()));
  for (std::size_t i = 0; i < reply.table.size(); ++i) put(table[static_cast<capnp::uint>(i)], reply.table[i]);
  auto assumptions = to.initAssumptions(static_cast<capnp::uint>(reply.assumptions.size()));
  for (std::size_t i = 0; i < reply.assumptions.size(); ++i)
    assumptions.set(static_cast<capnp::uint>(i), text_of(clip_text(reply.assumptions[i], kMostAssumptionBytes)));
}

ForecastReply take_forecast(wire::Forecast::Reader from) {
  ForecastReply reply;
  reply.node = checked_node(from.getNode(), "node");
  reply.model = word(from.getModel(), "model");
  reply.compute = compute(from.getCompute());
  reply.parameters = from.getParameters();
  reply.line_mbps = checked_real(from.getLineMbps(), kMostLineMbps, "line rate");
  reply.payload_mbps = real(from.getPayloadMbps(), "payload rate");
  reply.cores = cores(from.getCores(), false, "cores");
  reply.measured_ms = from.getMeasuredMs();
  reply.measured_now = from.getMeasuredNow();
  reply.exchange = word(from.getExchange(), "exchange");
  reply.coding = word(from.getCoding(), "coding");
  reply.asked = take(from.getAsked());
  const auto table = from.getTable();
  checked_below(table.size(), kMostForecastRows + 1, "rows");
  for (const wire::ForecastRow::Reader one : table) reply.table.push_back(take(one));
  const auto assumptions = from.getAssumptions();
  checked_below(assumptions.size(), kMostAssumptions + 1, "assumptions");
  for (const capnp::Text::Reader one : assumptions)
    reply.assumptions.push_back(checked_text(one, kMostAssumptionBytes, "assumption"));
  return reply;
}

}  // namespace tg::schema
