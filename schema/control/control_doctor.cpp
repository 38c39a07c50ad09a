#include "schema/control/control_doctor.h"

#include <algorithm>
#include <cmath>

#include "schema/control/control_forecast.h"
#include "schema/limits.h"
#include "schema/text.h"
#include "schema/wire.h"

namespace tg::schema {
namespace {

constexpr Check kLastCheck = Check::kEngine;
constexpr Verdict kLastVerdict = Verdict::kSkipped;
constexpr Reach kLastReach = Reach::kStranger;
constexpr Cell kLastCell = Cell::kUnknown;
static_assert(words_of(Check()).size() == static_cast<std::size_t>(kLastCheck) + 1);
static_assert(words_of(Verdict()).size() == static_cast<std::size_t>(kLastVerdict) + 1);
static_assert(words_of(Reach()).size() == static_cast<std::size_t>(kLastReach) + 1);
static_assert(words_of(Cell()).size() == static_cast<std::size_t>(kLastCell) + 1);

// Both answers fit a reply. A text is padded to a word, after its closing zero.
constexpr std::size_t text_bytes(std::size_t most) { return most + kWordBytes; }
constexpr std::size_t kLinkBytes = capnp::sizeInWords<wire::LinkFacts>() * kWordBytes + 2 * text_bytes(kMostNameBytes) +
                                   3 * text_bytes(kMostAddressBytes) + 4 * text_bytes(kMostSeenBytes);
constexpr std::size_t kExaminationTexts = 9;
static_assert(kMostMembers * kLinkBytes + (kMostDataSets + kExaminationTexts) * text_bytes(kMostPathBytes) +
                  kFrameOverheadBytes <=
              kMostControlBytes);
constexpr std::size_t kFindingBytes =
    capnp::sizeInWords<wire::Finding>() * kWordBytes + 2 * text_bytes(kMostNameBytes) + 2 * text_bytes(kMostSeenBytes);
static_assert(kMostFindings * kFindingBytes + kMostMembers * (kWordBytes + text_bytes(kMostNameBytes)) +
                  kMostMembers * kMostMembers * (sizeof(Cell) + sizeof(float) + sizeof(std::uint32_t)) +
                  kFrameOverheadBytes <=
              kMostControlBytes);
static_assert(kMostSeenBytes <= kMostPathBytes && kMostBuildBytes <= kMostPathBytes);

std::string clipped(const std::string& text) { return clip_text(text, kMostSeenBytes); }
std::string sentence(capnp::Text::Reader text, const char* field) { return checked_text(text, kMostSeenBytes, field); }
std::string address(capnp::Text::Reader text, const char* field) {
  return checked_text(text, kMostAddressBytes, field);
}

void put(wire::LinkFacts::Builder to, const LinkFacts& link) {
  const std::string address = clip_text(link.address, kMostAddressBytes),
                    from = clip_text(link.from, kMostAddressBytes), line = clip_text(link.line, kMostAddressBytes),
                    device = clip_text(link.device, kMostNameBytes);
  to.setPeer(text_of(link.peer));
  to.setLine(text_of(line));
  to.setAddress(text_of(address));
  to.setNameProblem(text_of(clipped(link.name_problem)));
  to.setMesh(static_cast<std::uint16_t>(link.mesh));
  to.setControl(static_cast<std::uint16_t>(link.control));
  to.setFrom(text_of(from));
  to.setRoundTripMicros(link.round_trip_micros);
  to.setMtu(link.mtu);
  to.setDevice(text_of(device));
  to.setDeviceMbps(link.device_mbps);
  to.setUp(link.up);
  to.setProblem(text_of(clipped(link.problem)));
  to.setWaitingHelps(link.waiting_helps);
  to.setRefusal(text_of(clipped(link.refusal)));
  to.setMbps(link.mbps);
  to.setUnmeasured(text_of(clipped(link.unmeasured)));
}

LinkFacts take(wire::LinkFacts::Reader from) {
  LinkFacts link;
  link.peer = checked_node(from.getPeer(), "peer");
  link.line = address(from.getLine(), "peer line");
  link.address = address(from.getAddress(), "address");
  link.name_problem = sentence(from.getNameProblem(), "name problem");
  link.mesh = checked_enum(from.getMesh(), kLastReach, "mesh port");
  link.control = checked_enum(from.getControl(), kLastReach, "control port");
  link.from = address(from.getFrom(), "own address");
  link.round_trip_micros = from.getRoundTripMicros();
  link.mtu = from.getMtu();
  link.device = checked_text(from.getDevice(), kMostNameBytes, "device");
  link.device_mbps = from.getDeviceMbps();
  link.up = from.getUp();
  link.problem = sentence(from.getProblem(), "link problem");
  link.waiting_helps = from.getWaitingHelps();
  link.refusal = sentence(from.getRefusal(), "refusal");
  link.mbps = checked_real(from.getMbps(), kMostReal, "link rate");
  link.unmeasured = sentence(from.getUnmeasured(), "reason");
  return link;
}

void put(wire::Finding::Builder to, const Finding& finding) {
  to.setCheck(static_cast<std::uint16_t>(finding.check));
  to.setVerdict(static_cast<std::uint16_t>(finding.verdict));
  to.setNode(text_of(finding.node));
  to.setPeer(text_of(finding.peer));
  to.setSeen(text_of(clipped(finding.seen)));
  to.setFix(text_of(clipped(finding.fix)));
}

Finding take(wire::Finding::Reader from) {
  return {checked_enum(from.getCheck(), kLastCheck, "check"), checked_enum(from.getVerdict(), kLastVerdict, "verdict"),
          checked_node_or_empty(from.getNode(), "node"),      checked_node_or_empty(from.getPeer(), "peer"),
          sentence(from.getSeen(), "what was seen"),          sentence(from.getFix(), "fix")};
}

}  // namespace

void put_examine(wire::ExamineRequest::Builder to, const ExamineRequest& request) {
  to.setLocal(request.local);
  to.setSeconds(request.seconds);
  to.setLineMbps(request.line_mbps);
  to.setAskedMs(request.asked_ms);
}

ExamineRequest take_examine(wire::ExamineRequest::Reader from) {
  const auto seconds = checked_below(from.getSeconds(), kMostExamineSeconds + 1, "seconds");
  return {from.getLocal(), static_cast<std::uint8_t>(seconds),
          checked_real(from.getLineMbps(), kMostLineMbps, "line rate"), from.getAskedMs()};
}

void put_examination(wire::Examination::Builder to, const Examination& examination) {
  const std::string data_dir = clip_text(examination.data_dir, kMostPathBytes);
  to.setNode(text_of(examination.node));
  to.setBuild(text_of(clip_text(examination.build, kMostBuildBytes)));
  to.setProtocol(examination.protocol);
  to.setAskedMs(examination.asked_ms);
  to.setReceivedMs(examination.received_ms);
  to.setAnsweredMs(examination.answered_ms);
  to.setBusy(text_of(clipped(examination.busy)));
  to.setConfiguration(text_of(clipped(examination.configuration)));
  to.setHasKeys(examination.has_keys);
  to.setKeyProblem(text_of(clipped(examination.key_problem)));
  to.setDiskFree(examination.disk_free);
  to.setDiskNeed(examination.disk_need);
  to.setDiskProblem(text_of(clipped(examination.disk_problem)));
  to.setMemoryLeft(examination.memory_left);
  to.setMemoryNeed(examination.memory_need);
  to.setMemoryProblem(text_of(clipped(examination.memory_problem)));
  to.setDescriptors(examination.descriptors);
  to.setDescriptorsOpen(examination.descriptors_open);
  to.setDescriptorsNeed(examination.descriptors_need);
  to.setEngine(text_of(clipped(examination.engine)));
  to.setEngineProblem(text_of(clipped(examination.engine_problem)));
  to.setDataDir(text_of(data_dir));
  auto data = to.initData(static_cast<capnp::uint>(std::min(examination.data.size(), kMostDataSets)));
  for (capnp::uint i = 0; i < data.size(); ++i) {
    data[i].setSet(text_of(clip_text(examination.data[i].set, kMostNameBytes)));
    data[i].setHash(examination.data[i].hash);
    data[i].setProblem(text_of(clipped(examination.data[i].problem)));
  }
  to.setUnfinished(text_of(clipped(examination.unfinished)));
  auto links = to.initLinks(static_cast<capnp::uint>(examination.links.size()));
  for (capnp::uint i = 0; i < links.size(); ++i) put(links[i], examination.links[i]);
}

Examination take_examination(wire::Examination::Reader from) {
  Examination examination;
  examination.node = checked_node(from.getNode(), "node");
  examination.build = checked_text(from.getBuild(), kMostBuildBytes, "build");
  examination.protocol = from.getProtocol();
  examination.asked_ms = from.getAskedMs();
  examination.received_ms = from.getReceivedMs();
  examination.answered_ms = from.getAnsweredMs();
  examination.busy = sentence(from.getBusy(), "busy");
  examination.configuration = sentence(from.getConfiguration(), "configuration");
  examination.has_keys = from.getHasKeys();
  examination.key_problem = sentence(from.getKeyProblem(), "key problem");
  examination.disk_free = from.getDiskFree();
  examination.disk_need = from.getDiskNeed();
  examination.disk_problem = sentence(from.getDiskProblem(), "disk problem");
  examination.memory_left = from.getMemoryLeft();
  examination.memory_need = from.getMemoryNeed();
  examination.memory_problem = sentence(from.getMemoryProblem(), "memory problem");
  examination.descriptors = from.getDescriptors();
  examination.descriptors_open = from.getDescriptorsOpen();
  examination.descriptors_need = from.getDescriptorsNeed();
  examination.engine = sentence(from.getEngine(), "engine");
  examination.engine_problem = sentence(from.getEngineProblem(), "engine problem");
  examination.data_dir = checked_text(from.getDataDir(), kMostPathBytes, "data-dir");
  const auto data = from.getData();
  checked_below(data.size(), kMostDataSets + 1, "data sets");
  for (const wire::DataFacts::Reader one : data)
    examination.data.push_back({checked_text(one.getSet(), kMostNameBytes, "data set"), one.getHash(),
                                sentence(one.getProblem(), "data problem")});
  examination.unfinished = sentence(from.getUnfinished(), "unfinished");
  const auto links = from.getLinks();
  checked_below(links.size(), kMostMembers + 1, "links");
  for (const wire::LinkFacts::Reader link : links) examination.links.push_back(take(link));
  return examination;
}

void put_diagnosis(wire::Diagnosis::Builder to, const Diagnosis& diagnosis) {
  to.setNode(text_of(diagnosis.node));
  auto nodes = to.initNodes(static_cast<capnp::uint>(diagnosis.nodes.size()));
  for (capnp::uint i = 0; i < nodes.size(); ++i) nodes.set(i, text_of(diagnosis.nodes[i]));
  auto findings = to.initFindings(static_cast<capnp::uint>(diagnosis.findings.size()));
  for (capnp::uint i = 0; i < findings.size(); ++i) put(findings[i], diagnosis.findings[i]);
  to.setLeftOut(diagnosis.left_out);
  static_assert(sizeof(Cell) == 1);
  to.setReach(kj::arrayPtr(reinterpret_cast<const kj::byte*>(diagnosis.reach.data()), diagnosis.reach.size()));
  auto mbps = to.initMbps(static_cast<capnp::uint>(diagnosis.mbps.size()));
  for (capnp::uint i = 0; i < mbps.size(); ++i) mbps.set(i, diagnosis.mbps[i]);
  auto trips = to.initRoundTripMicros(static_cast<capnp::uint>(diagnosis.round_trip_micros.size()));
  for (capnp::uint i = 0; i < trips.size(); ++i) trips.set(i, diagnosis.round_trip_micros[i]);
}

Diagnosis take_diagnosis(wire::Diagnosis::Reader from) {
  Diagnosis diagnosis;
  diagnosis.node = checked_node(from.getNode(), "node");
  const auto nodes = from.getNodes();
  checked_below(nodes.size(), kMostMembers + 1, "nodes");
  for (const capnp::Text::Reader node : nodes) diagnosis.nodes.push_back(checked_node(node, "node"));
  const auto findings = from.getFindings();
  checked_below(findings.size(), kMostFindings + 1, "findings");
  for (const wire::Finding::Reader finding : findings) diagnosis.findings.push_back(take(finding));
  diagnosis.left_out = from.getLeftOut();
  const capnp::Data::Reader reach = from.getReach();
  const auto mbps = from.getMbps();
  const auto trips = from.getRoundTripMicros();
  const std::size_t pairs = diagnosis.nodes.size() * diagnosis.nodes.size();
  if (reach.size() != pairs || mbps.size() != pairs || trips.size() != pairs)
    throw Odd{"a matrix has not as many fields as there are pairs of nodes"};
  for (const kj::byte cell : reach) diagnosis.reach.push_back(checked_enum(cell, kLastCell, "cell"));
  for (const float rate : mbps)
    diagnosis.mbps.push_back(static_cast<float>(checked_real(rate, kMostReal, "link rate")));
  for (const std::uint32_t micros : trips) diagnosis.round_trip_micros.push_back(micros);
  return diagnosis;
}

}  // namespace tg::schema
