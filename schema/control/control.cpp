#include "schema/control/control.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>

#include "schema/control/control_doctor.h"
#include "schema/control/control_forecast.h"
#include "schema/control/control_status.h"
#include "schema/text.h"
#include "schema/wire.h"

namespace tg::schema {
namespace {

constexpr ErrorKind kLastErrorKind = ErrorKind::kForbidden;
static_assert(words_of(RunState()).size() == static_cast<std::size_t>(RunState::kFailed) + 1);
static_assert(words_of(SaveState()).size() == static_cast<std::size_t>(kLastSaveState) + 1);
static_assert(words_of(Phase()).size() == static_cast<std::size_t>(Phase::kSave) + 1);

// --- Requests. -------------------------------------------------------------------------------------------------------

void put(wire::Request::Builder request, const StatusRequest& body) {
  wire::StatusRequest::Builder to = request.initStatus();
  to.setRun(text_of(body.run));
  to.setLocal(body.local);
}

void put(wire::Request::Builder request, const StartRequest& body) {
  wire::StartRequest::Builder to = request.initStart();
  to.setSpec(text_of(body.spec));
  to.setRunId(text_of(body.run_id));
  to.setDryRun(body.dry_run);
}

void put(wire::Request::Builder request, const StopRequest& body) { request.initStop().setRun(text_of(body.run)); }

void put(wire::Request::Builder request, const LogsRequest& body) {
  wire::LogsRequest::Builder to = request.initLogs();
  to.setRun(text_of(body.run));
  to.setNode(text_of(body.node));
  to.setOffset(body.offset);
}

void put(wire::Request::Builder request, const FetchRequest& body) {
  wire::FetchRequest::Builder to = request.initFetch();
  to.setRun(text_of(body.run));
  to.setNode(text_of(body.node));
  to.setFile(text_of(body.file));
  to.setOffset(body.offset);
}

void put(wire::Request::Builder request, const VersionRequest&) { request.setVersion(); }

void put(wire::Request::Builder request, const Beat& body) {
  wire::Beat::Builder to = request.initBeat();
  to.setNode(text_of(body.node));
  to.setIncarnation(body.incarnation);
  to.setRunId(text_of(body.run_id));
  to.setPhase(static_cast<std::uint16_t>(body.phase));
  to.setStep(body.step);
  to.setProgress(body.progress);
}

void put(wire::Request::Builder request, const BenchRequest&) { request.initBench(); }

void put(wire::Request::Builder request, const ForecastRequest& body) { put_forecast(request.initForecast(), body); }

void put(wire::Request::Builder request, const DeleteRequest& body) {
  wire::DeleteRequest::Builder to = request.initDelete();
  to.setRun(text_of(body.run));
  to.setNode(text_of(body.node));
}

void put(wire::Request::Builder request, const FetchedRequest& body) {
  wire::FetchedRequest::Builder to = request.initFetched();
  to.setRun(text_of(body.run));
  to.setNode(text_of(body.node));
}

void put(wire::Request::Builder request, const ExamineRequest& body) { put_examine(request.initExamine(), body); }

StatusRequest take(wire::StatusRequest::Reader from) {
  return {checked_run_or_empty(from.getRun(), "run"), from.getLocal()};
}

StartRequest take(wire::StartRequest::Reader from) {
  return {checked_lines(from.getSpec(), kMostSpecBytes, "spec"), checked_run_or_empty(from.getRunId(), "run id"),
          from.getDryRun()};
}

StopRequest take(wire::StopRequest::Reader from) { return {checked_run(from.getRun(), "run")}; }

LogsRequest take(wire::LogsRequest::Reader from) {
  return {checked_run(from.getRun(), "run"), checked_node_or_empty(from.getNode(), "node"), from.getOffset()};
}

FetchRequest take(wire::FetchRequest::Reader from) {
  // A file's name follows the rules of a run's id: no slash, no dot in front.
  return {checked_run(from.getRun(), "run"), checked_node_or_empty(from.getNode(), "node"),
          checked_run(from.getFile(), "file"), from.getOffset()};
}

DeleteRequest take(wire::DeleteRequest::Reader from) {
  return {checked_run(from.getRun(), "run"), checked_node_or_empty(from.getNode(), "node")};
}

FetchedRequest take(wire::FetchedRequest::Reader from) {
  return {checked_run(from.getRun(), "run"), checked_node_or_empty(from.getNode(), "node")};
}

Beat take(wire::Beat::Reader from) {
  Beat beat;
  beat.node = checked_node(from.getNode(), "node");
  beat.incarnation = from.getIncarnation();
  beat.run_id = checked_run_or_empty(from.getRunId(), "run id");
  beat.phase = checked_enum(from.getPhase(), Phase::kSave, "phase");
  beat.step = from.getStep();
  beat.progress = from.getProgress();
  return beat;
}

RequestBody take_body(wire::Request::Reader request) {
  switch (request.which()) {
    case wire::Request::STATUS:
      return take(request.getStatus());
    case wire::Request::START:
      return take(request.getStart());
    case wire::Request::STOP:
      return take(request.getStop());
    case wire::Request::LOGS:
      return take(request.getLogs());
    case wire::Request::FETCH:
      return take(request.getFetch());
    case wire::Request::VERSION:
      return VersionRequest{};
    case wire::Request::BEAT:
      return take(request.getBeat());
    case wire::Request::BENCH:
      return BenchRequest{};
    case wire::Request::FORECAST:
      return take_forecast(request.getForecast());
    case wire::Request::DELETE:
      return take(request.getDelete());
    case wire::Request::FETCHED:
      return take(request.getFetched());
    case wire::Request::EXAMINE:
      return take_examine(request.getExamine());
  }
  throw Odd{"unknown union member " + std::to_string(static_cast<unsigned>(request.which()))};
}

// --- Replies. --------------------------------------------------------------------------------------------------------

void put(wire::Reply::Builder reply, const Error& body) {
  wire::Error::Builder to = reply.initError();
  to.setKind(static_cast<std::uint16_t>(body.kind));
  to.setMessage(text_of(clip_text(body.message, kMostReasonBytes)));
}

void put(wire::Reply::Builder reply, const MeshStatus& body) { put_mesh(reply.initMesh(), body, body.runs.size()); }

void put(wire::Reply::Builder reply, const StartReply& body) {
  wire::Plan::Builder to = reply.initPlan();
  to.setRunId(text_of(body.run_id));
  to.setParameters(body.parameters);
  to.setMembers(body.members);
  to.setGlobalBatch(body.global_batch);
  to.setLocalBatch(body.local_batch);
  to.setExchange(text_of(clip_text(body.exchange, kMostNameBytes)));
  to.setCoding(text_of(clip_text(body.coding, kMostNameBytes)));
  to.setMemoryBytes(body.memory_bytes);
  to.setDeviceBytes(body.device_bytes);
  to.setComputeSeconds(body.compute_seconds);
  to.setLinkMbps(body.link_mbps);
  put_outcome(to.initPredicted(), body.predicted);
  to.setMeasuredMs(body.measured_ms);
  to.setUnpredicted(text_of(clip_text(body.unpredicted, kMostReasonBytes)));
  TG_CHECK(body.shares.size() <= kMostMembers, body.shares.size());
  auto shares = to.initShares(static_cast<capnp::uint>(body.shares.size()));
  for (std::size_t i = 0; i < body.shares.size(); ++i) {
    wire::Share::Builder share = shares[static_cast<capnp::uint>(i)];
    share.setNode(text_of(body.shares[i].node));
    share.setSamples(body.shares[i].samples);
  }
}

void put(wire::Reply::Builder reply, const StopReply& body) {
  wire::Stop::Builder to = reply.initStop();
  to.setRunId(text_of(body.run_id));
  to.setState(static_cast<std::uint16_t>(body.state));
}

void put(wire::Reply::Builder reply, const SliceReply& body) {
  TG_CHECK(body.data.size() <= kFileSliceBytes, body.data.size());
  wire::Slice::Builder to = reply.initSlice();
  to.setRunId(text_of(body.run_id));
  to.setNode(text_of(body.node));
  to.setTotalBytes(body.total_bytes);
  to.setData(kj::arrayPtr(reinterpret_cast<const kj::byte*>(body.data.data()), body.data.size()));
  to.setFinal(body.final);
}

void put(wire::Reply::Builder reply, const DoneReply& body) {
  wire::Done::Builder to = reply.initDone();
  to.setRunId(text_of(body.run_id));
  to.setNode(text_of(body.node));
  to.setFreedBytes(body.freed_bytes);
}

void put(wire::Reply::Builder reply, const VersionReply& body) {
  wire::Version::Builder to = reply.initVersion();
  to.setNode(text_of(body.node));
  to.setBuild(text_of(clip_text(body.build, kMostBuildBytes)));
  to.setProtocol(body.protocol);
}

void put(wire::Reply::Builder reply, const BenchReply& body) { put_bench(reply.initBench(), body); }

void put(wire::Reply::Builder reply, const ForecastReply& body) { put_forecast(reply.initForecast(), body); }

void put(wire::Reply::Builder reply, const Examination& body) { put_examination(reply.initExamination(), body); }

void put(wire::Reply::Builder reply, const Diagnosis& body) { put_diagnosis(reply.initDiagnosis(), body); }

Error take(wire::Error::Reader from) {
  return {checked_enum(from.getKind(), kLastErrorKind, "kind"),
          checked_lines(from.getMessage(), kMostReasonBytes, "message")};
}

StartReply take(wire::Plan::Reader from) {
  StartReply start;
  start.run_id = checked_run_or_empty(from.getRunId(), "run id");
  start.parameters = from.getParameters();
  start.members = from.getMembers();
  start.global_batch = from.getGlobalBatch();
  start.local_batch = from.getLocalBatch();
  start.exchange = checked_text(from.getExchange(), kMostNameBytes, "exchange");
  start.coding = checked_text(from.getCoding(), kMostNameBytes, "coding");
  start.memory_bytes = from.getMemoryBytes();
  start.device_bytes = from.getDeviceBytes();
  start.compute_seconds = checked_real(from.getComputeSeconds(), kMostReal, "compute seconds");
  start.link_mbps = checked_real(from.getLinkMbps(), kMostReal, "link rate");
  start.predicted = take_outcome(from.getPredicted());
  start.measured_ms = from.getMeasuredMs();
  start.unpredicted = checked_text(from.getUnpredicted(), kMostReasonBytes, "reason");
  const auto shares = from.getShares();
  checked_below(shares.size(), kMostMembers + 1, "shares");
  for (const wire::Share::Reader share : shares)
    start.shares.push_back({checked_node(share.getNode(), "node"), share.getSamples()});
  return start;
}

StopReply take(wire::Stop::Reader from) {
  return {checked_run(from.getRunId(), "run id"), checked_enum(from.getState(), RunState::kFailed, "run state")};
}

SliceReply take(wire::Slice::Reader from) {
  SliceReply slice;
  slice.run_id = checked_run(from.getRunId(), "run id");
  slice.node = checked_node(from.getNode(), "node");
  slice.total_bytes = from.getTotalBytes();
  const capnp::Data::Reader data = from.getData();
  checked_below(data.size(), kFileSliceBytes + 1, "slice bytes");
  slice.data.assign(reinterpret_cast<const char*>(data.begin()), data.size());
  slice.final = from.getFinal();
  return slice;
}

DoneReply take(wire::Done::Reader from) {
  return {checked_run(from.getRunId(), "run id"), checked_node(from.getNode(), "node"), from.getFreedBytes()};
}

VersionReply take(wire::Version::Reader from) {
  return {checked_node(from.getNode(), "node"), checked_text(from.getBuild(), kMostBuildBytes, "build"),
          from.getProtocol()};
}

ReplyBody take_body(wire::Reply::Reader reply) {
  switch (reply.which()) {
    case wire::Reply::ERROR:
      return take(reply.getError());
    case wire::Reply::MESH:
      return take_mesh(reply.getMesh());
    case wire::Reply::PLAN:
      return take(reply.getPlan());
    case wire::Reply::STOP:
      return take(reply.getStop());
    case wire::Reply::SLICE:
      return take(reply.getSlice());
    case wire::Reply::VERSION:
      return take(reply.getVersion());
    case wire::Reply::BENCH:
      return take_bench(reply.getBench());
    case wire::Reply::FORECAST:
      return take_forecast(reply.getForecast());
    case wire::Reply::DONE:
      return take(reply.getDone());
    case wire::Reply::EXAMINATION:
      return take_examination(reply.getExamination());
    case wire::Reply::DIAGNOSIS:
      return take_diagnosis(reply.getDiagnosis());
  }
  throw Odd{"unknown union member " + std::to_string(static_cast<unsigned>(reply.which()))};
}

// One segment whatever its size: a message that grew past its first one is copied into one that fits.
template <class Root, class Fill>
std::string encode(Fill fill) {
  capnp::MallocMessageBuilder message;
  fill(message.initRoot<Root>());
  if (message.getSegmentsForOutput().size() == 1) {
    const auto bytes = capnp::messageToFlatArray(message);
    const auto chars = bytes.asChars();
    return {chars.begin(), chars.size()};
  }
  const auto root = message.getRoot<Root>().asReader();
  capnp::MallocMessageBuilder single(static_cast<capnp::uint>(root.totalSize().wordCount) + 1);
  single.setRoot(root);
  TG_CHECK(single.getSegmentsForOutput().size() == 1);
  const auto bytes = capnp::messageToFlatArray(single);
  const auto chars = bytes.asChars();
  return {chars.begin(), chars.size()};
}

template <class Value, class Root>
Result<Value> decode(const char* what, std::span<const std::byte> bytes) {
  return guarded<Value>(what, [bytes]() -> Result<Value> {
    const AlignedMessage message(bytes, kMostControlBytes);
    capnp::FlatArrayMessageReader reader(message.words(), reader_options(message.words().size()));
    const typename Root::Reader from = reader.getRoot<Root>();
    return Value{from.getId(), take_body(from)};
  });
}

}  // namespace

std::string uneven_shares(const std::vector<MemberShare>& shares) {
  if (shares.empty()) return "";
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end(),
                                                 [](const auto& a, const auto& b) { return a.samples < b.samples; });
  if (most->samples - least->samples <= 1) return "";
  std::string text;
  for (const MemberShare& share : shares)
    text += (text.empty() ? "" : ", ") + share.node + " " + std::to_string(share.samples);
  return text;
}

bool RunStatus::saved_by_all() const {
  if (!is_final(state) || state == RunState::kFailed) return true;
  return std::all_of(members.begin(), members.end(), [](const MemberStatus& member) {
    return member.save == SaveState::kNone || member.save == SaveState::kSaved;
  });
}

Result<RunState> parse_run_state(std::string_view name) {
  std::string upper(name);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (const std::optional<RunState> state = from_word<RunState>(upper)) return *state;
  std::string known;
  for (const char* const word : words_of(RunState())) known += (known.empty() ? "" : ", ") + std::string(word);
  return Error{ErrorKind::kUsage, std::string("\"") + clip_text(name, 100) + "\" is not a state; there are " + known};
}

std::string encode_request(const Request& request) {
  return encode<wire::Request>([&](wire::Request::Builder to) {
    to.setId(request.id);
    std::visit([to](const auto& body) { put(to, body); }, request.body);
  });
}

Result<Request> decode_request(std::span<const std::byte> bytes) {
  return decode<Request, wire::Request>("request", bytes);
}

std::string encode_reply(const Reply& reply) {
  const auto* mesh = std::get_if<MeshStatus>(&reply.body);
  std::size_t run_count = mesh == nullptr ? 0 : std::min(mesh->runs.size(), kMostRunsKept);
  while (true) {
    std::string bytes = encode<wire::Reply>([&](wire::Reply::Builder to) {
      to.setId(reply.id);
      if (mesh != nullptr) {
        put_mesh(to.initMesh(), *mesh, run_count);
      } else {
        std::visit([to](const auto& body) { put(to, body); }, reply.body);
      }
    });
    if (bytes.size() <= kMostControlBytes) return bytes;
    TG_CHECK(run_count > 0, bytes.size());
    // Too many runs with too many members: the older half goes.
    run_count /= 2;
  }
}

Result<Reply> decode_reply(std::span<const std::byte> bytes) { return decode<Reply, wire::Reply>("reply", bytes); }

}  // namespace tg::schema
