// What is wrong with a mesh is found by name, with a fix, and nothing else is: one healthy mesh of four, and each time
// one thing that is broken in it.
#include "daemon/doctor/diagnose.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <tuple>

#include "daemon/doctor/thresholds.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

using schema::Cell;
using schema::Check;
using schema::Diagnosis;
using schema::Examination;
using schema::Finding;
using schema::LinkFacts;
using schema::Reach;
using schema::Verdict;

constexpr std::size_t kNodes = 4;
constexpr Seat kA(0), kB(1), kC(2), kD(3);

std::string name_of(std::size_t i) { return std::string("node-") + static_cast<char>('a' + i); }

Examination healthy_node(std::size_t self, std::size_t nodes) {
  Examination one;
  one.node = name_of(self);
  one.build = "0.1.0+abc";
  one.protocol = 5;
  one.has_keys = true;
  one.disk_free = 10ull << 30;
  one.disk_need = 60u << 20;
  one.memory_left = 4ull << 30;
  one.memory_need = 80u << 20;
  one.descriptors = 1024;
  one.descriptors_open = 60;
  one.descriptors_need = 160;
  one.engine = "scalar kernels agree";
  one.data_dir = "/srv/mnist";
  one.data = {{"mnist", 77, ""}};
  for (std::size_t i = 0; i < nodes; ++i) {
    LinkFacts link;
    link.peer = name_of(i);
    link.line = link.peer + ".lab:7700";
    if (i != self) {
      link.address = "10.0.0." + std::to_string(i + 1);
      link.mesh = link.control = Reach::kOk;
      link.from = "10.0.0." + std::to_string(self + 1);
      link.round_trip_micros = 200;
      link.mtu = 1500;
      link.device = "eth0";
      link.device_mbps = 1000;
      link.up = true;
      link.mbps = 930 + static_cast<double>(i + self);
    }
    one.links.push_back(link);
  }
  return one;
}

Survey healthy(std::size_t nodes = kNodes) {
  Survey survey;
  survey.self = kA;
  survey.seconds = 3;
  for (std::size_t i = 0; i < nodes; ++i) {
    survey.names.push_back(name_of(i));
    survey.parts.push_back({healthy_node(i, nodes), 0, ""});
  }
  return survey;
}

Examination& at(Survey& survey, Seat node) { return *survey.parts[node].examination; }
LinkFacts& link(Survey& survey, Seat from, Seat to) { return at(survey, from).links[to.index()]; }
Cell cell(const Diagnosis& diagnosis, Seat from, Seat to) {
  return diagnosis.reach[from.index() * diagnosis.nodes.size() + to.index()];
}

std::string text_of(const Diagnosis& diagnosis) {
  std::string text;
  for (const Finding& one : diagnosis.findings)
    text += std::string(to_word(one.check)) + " " + to_word(one.verdict) + " [" + one.node + "] [" + one.peer + "] " +
            one.seen + " | " + one.fix + "\n";
  return text;
}

// The only finding that is no pass.
Finding only(const Diagnosis& diagnosis) {
  std::vector<Finding> wrong;
  for (const Finding& one : diagnosis.findings)
    if (one.verdict != Verdict::kPass) wrong.push_back(one);
  EXPECT_EQ(wrong.size(), 1u) << text_of(diagnosis);
  return wrong.empty() ? Finding{} : wrong[0];
}

void expect(const Survey& survey, Check check, Verdict verdict, const std::string& node, const std::string& seen,
            const std::string& fix) {
  const Finding one = only(diagnose(survey));
  EXPECT_EQ(to_word(one.check), std::string(to_word(check)));
  EXPECT_EQ(to_word(one.verdict), std::string(to_word(verdict))) << one.seen;
  EXPECT_EQ(one.node, node) << one.seen;
  EXPECT_NE(one.seen.find(seen), std::string::npos) << one.seen;
  EXPECT_NE(one.fix.find(fix), std::string::npos) << one.fix;
}

// As the others see it.
void take_down(Survey& survey, Seat node, Reach reach) {
  survey.parts[node] = {std::nullopt, 0, "it does not answer"};
  for (const Seat from : survey.names.places()) {
    if (!survey.parts[from].examination) continue;
    LinkFacts& to = link(survey, from, node);
    to.mesh = to.control = reach;
    to.up = false;
    to.mbps = 0;
    to.round_trip_micros = to.mtu = 0;
    to.unmeasured = "the link is not up";
  }
}

TEST(Diagnose, AHealthyMeshPassesEveryCheckOnce) {
  for (const std::size_t nodes : {1u, 2u, 4u, 9u}) {
    SCOPED_TRACE(nodes);
    const Diagnosis diagnosis = diagnose(healthy(nodes));
    std::set<Check> seen;
    for (const Finding& one : diagnosis.findings) {
      EXPECT_EQ(one.verdict, Verdict::kPass) << one.seen;
      EXPECT_FALSE(one.seen.empty()) << to_word(one.check);
      EXPECT_TRUE(seen.insert(one.check).second) << to_word(one.check);
    }
    if (nodes > 1) {
      EXPECT_EQ(seen.size(), words_of(Check()).size()) << text_of(diagnosis);
    }
    EXPECT_EQ(diagnosis.reach.size(), nodes * nodes);
  }
}

TEST(Diagnose, ADownNodeIsOneFindingByHowItIsDown) {
  for (const auto& [reach, seen, fix] : {std::tuple(Reach::kRefused, "nothing listens", "start tgd on node-c"),
                                         std::tuple(Reach::kSilent, "does not answer", "is its cable in"),
                                         std::tuple(Reach::kUnreachable, "does not answer", "is its cable in"),
                                         std::tuple(Reach::kStuck, "does nothing", "continue or restart"),
                                         std::tuple(Reach::kStranger, "not a tgd", "peer line of node-c")}) {
    Survey survey = healthy();
    take_down(survey, kC, reach);
    expect(survey, Check::kNodes, Verdict::kFail, "node-c", seen, fix);
    const Diagnosis diagnosis = diagnose(survey);
    EXPECT_EQ(cell(diagnosis, kA, kC), Cell::kDown);
    EXPECT_EQ(cell(diagnosis, kC, kA), Cell::kDown);
    EXPECT_EQ(cell(diagnosis, kA, kB), Cell::kOk);
  }
}

TEST(Diagnose, WhatCouldNotBeLookedAtIsNoPass) {
  Survey survey = healthy();
  for (const Seat node : {kB, kC, kD}) take_down(survey, node, Reach::kSilent);
  const std::set<Check> alone{Check::kPorts,    Check::kKeys,  Check::kRoundTrip,     Check::kMtu, Check::kBandwidth,
                              Check::kVersions, Check::kClock, Check::kConfiguration, Check::kData};
  std::set<Check> skipped;
  for (const Finding& one : diagnose(survey).findings) {
    if (one.verdict == Verdict::kSkipped) skipped.insert(one.check);
    if (one.verdict == Verdict::kPass) {
      EXPECT_NE(one.seen.find("; not examined: node-b, node-c, node-d"), std::string::npos) << one.seen;
    }
  }
  EXPECT_EQ(skipped, alone) << text_of(diagnose(survey));

  // One of four: what was looked at passes, and says what was not.
  survey = healthy();
  take_down(survey, kD, Reach::kSilent);
  const std::string text = text_of(diagnose(survey));
  EXPECT_NE(text.find("ports pass [] [] both ports answer on 6 of 12 links; not examined: node-d"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("skipped"), std::string::npos) << text;
}

TEST(Diagnose, AFolderThatIsNotTheSameIsToldByWhatIsThere) {
  Survey survey = healthy();
  for (const Seat seat : survey.names.places())
    at(survey, seat).data = {
        {"folder", seat == kC ? 2u : 1u, "", seat == kC ? "2 classes, 3 pictures" : "2 classes, 4 pictures"}};
  expect(survey, Check::kData, Verdict::kFail, "node-c",
         "another folder (2 classes, 3 pictures, in /srv/mnist) than node-a (2 classes, 4 pictures)", "copy the files");
  for (const Seat seat : survey.names.places()) at(survey, seat).data.clear();
  const std::string text = text_of(diagnose(survey));
  EXPECT_NE(text.find("data skipped [node-a] [] nothing in /srv/mnist that is compared here"), std::string::npos)
      << text;
}

TEST(Diagnose, AnUnknownNameIsNamedWithWhoCannotResolveIt) {
  Survey survey = healthy();
  for (const Seat from : {kA, kB}) {
    LinkFacts& to = link(survey, from, kC);
    to.address.clear();
    to.name_problem = "Name or service not known";
    to.mesh = to.control = Reach::kUntried;
    to.mbps = 0;
    to.up = false;
  }
  expect(survey, Check::kNames, Verdict::kFail, "node-a",
         "node-c.lab, in the peer line of node-c, does not resolve on node-a, node-b",
         "correct the peer line of node-c");
  EXPECT_EQ(cell(diagnose(survey), kA, kC), Cell::kBoth);
}

TEST(Diagnose, ANameThatIsNotTheSameEverywhere) {
  Survey survey = healthy();
  link(survey, kB, kC).address = "10.9.9.9";
  expect(survey, Check::kNames, Verdict::kWarn, "", "10.9.9.9 on node-b", "/etc/hosts");
}

TEST(Diagnose, APortThatIsBlockedInOneDirection) {
  Survey survey = healthy();
  LinkFacts& to = link(survey, kA, kB);
  to.mesh = Reach::kSilent;
  to.up = false;
  to.mbps = 0;
  to.unmeasured = "the link is not up";
  expect(survey, Check::kPorts, Verdict::kFail, "node-a",
         "mesh port 7700 of node-b at 10.0.0.2: no answer; the way back works",
         "on node-b let TCP 7700 in from 10.0.0.1");
  const Diagnosis diagnosis = diagnose(survey);
  EXPECT_EQ(cell(diagnosis, kA, kB), Cell::kMesh);
  EXPECT_EQ(cell(diagnosis, kB, kA), Cell::kOk);
  to.control = Reach::kSilent;
  EXPECT_EQ(cell(diagnose(survey), kA, kB), Cell::kBoth);
  to.mesh = Reach::kOk;
  to.control = Reach::kRefused;
  expect(survey, Check::kPorts, Verdict::kFail, "node-a", "control port 7701", "refuses it");
  EXPECT_EQ(cell(diagnose(survey), kA, kB), Cell::kControl);
}

TEST(Diagnose, ANodeWhoseControlPortTheAskedNodeDoesNotReach) {
  Survey survey = healthy();
  survey.parts[kB] = {std::nullopt, 0, "its control port cannot be reached"};
  link(survey, kA, kB).control = Reach::kSilent;
  const Diagnosis diagnosis = diagnose(survey);
  const std::string text = text_of(diagnosis);
  EXPECT_NE(text.find("nodes fail [node-b] [] not examined: node-a does not reach its control port"), std::string::npos)
      << text;
  EXPECT_NE(text.find("ports fail [node-a] [node-b]"), std::string::npos) << text;
  EXPECT_EQ(cell(diagnosis, kB, kA), Cell::kUnknown);
  EXPECT_EQ(cell(diagnosis, kC, kB), Cell::kOk);
}

TEST(Diagnose, AnotherKeyIsToldOnceOfWhomItIs) {
  Survey survey = healthy();
  survey.parts[kB] = {std::nullopt, 0, "its control port cannot be reached"};
  for (const Seat from : {kA, kC, kD}) {
    link(survey, from, kB).refusal = "the control port of node-b has other keys than " + name_of(from.index()) +
                                     ", or none; give both the same cluster key file";
    link(survey, from, kB).up = false;
    link(survey, from, kB).mbps = 0;
  }
  std::string text = text_of(diagnose(survey));
  EXPECT_NE(text.find("keys fail [node-b]"), std::string::npos) << text;
  EXPECT_NE(text.find("told by node-a, node-c, node-d) | give both the same cluster key file"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("fail", text.find("keys fail") + 9), std::string::npos) << text;
  EXPECT_NE(text.find("nodes skipped [node-b]"), std::string::npos) << text;
  EXPECT_EQ(cell(diagnose(survey), kA, kB), Cell::kRefused);

  // One met the other key in the mesh alone so far.
  link(survey, kD, kB).refusal.clear();
  link(survey, kD, kB).problem = "node-b has no keys, or others than node-d; give both the same cluster key file";
  text = text_of(diagnose(survey));
  EXPECT_NE(text.find("told by node-a, node-c) |"), std::string::npos) << text;
  EXPECT_EQ(text.find("configuration fail"), std::string::npos) << text;

  // Asked at the one with the other key.
  survey = healthy();
  survey.self = kB;
  for (const Seat other : {kA, kC, kD}) {
    survey.parts[other] = {std::nullopt, 0, "its control port cannot be reached"};
    link(survey, kB, other).refusal = "other keys; mend them";
  }
  text = text_of(diagnose(survey));
  EXPECT_NE(text.find("keys fail [node-b] [] it has another cluster key than all the others"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("keys fail", text.find("keys fail") + 1), std::string::npos) << text;
}

TEST(Diagnose, WhatTheMeshRefusesOtherwise) {
  Survey survey = healthy();
  link(survey, kA, kB).problem = "another process called node-b connects from 10.0.0.9; are two nodes called node-b?";
  expect(survey, Check::kConfiguration, Verdict::kFail, "node-a", "connects from 10.0.0.9", "are two nodes");
}

TEST(Diagnose, AnotherBuildThatCannotBeExamined) {
  Survey survey = healthy();
  survey.parts[kB] = {std::nullopt, 0, "its control port cannot be reached"};
  link(survey, kA, kB).problem = "builds differ: node-b runs x, node-a runs y; install one build everywhere";
  const std::string text = text_of(diagnose(survey));
  EXPECT_NE(
      text.find("versions fail [node-a] [node-b] builds differ: node-b runs x, node-a runs y | install one build"),
      std::string::npos)
      << text;
}

TEST(Diagnose, ALinkThatIsNotUpAlthoughItsPortsAnswer) {
  Survey survey = healthy();
  link(survey, kA, kB).up = false;
  link(survey, kA, kB).waiting_helps = true;
  link(survey, kA, kB).problem = "no data from node-b";
  expect(survey, Check::kPorts, Verdict::kFail, "node-a", "the link is not up: no data", "ask again");
}

TEST(Diagnose, ANodeWhoseLinksAreNotKnown) {
  Survey survey = healthy();
  at(survey, kB).links.clear();
  const std::string text = text_of(diagnose(survey));
  EXPECT_NE(text.find("ports fail [node-b] [] its links to the others could not be examined"), std::string::npos)
      << text;
}

TEST(Diagnose, VersionsAreToldByWhoIsOdd) {
  Survey survey = healthy();
  at(survey, kC).build = "0.1.0+def";
  link(survey, kA, kC).problem = "builds differ: ...; install one build everywhere";
  expect(survey, Check::kVersions, Verdict::kFail, "node-c",
         "node-c runs 0.1.0+def (protocol 5), and node-a, node-b, node-d run", "install one build everywhere");
}

TEST(Diagnose, PeerLinesThatDiffer) {
  Survey survey = healthy();
  link(survey, kD, kB).line = "10.0.0.77:7700";
  expect(survey, Check::kConfiguration, Verdict::kWarn, "node-d",
         "says 10.0.0.77:7700 on node-d, and node-b.lab:7700 on", "same peer lines");
  survey = healthy();
  at(survey, kC).links.pop_back();
  expect(survey, Check::kConfiguration, Verdict::kFail, "node-c", "name node-a, node-b, node-c; those of",
         "same peer lines");
  survey = healthy();
  at(survey, kB).configuration = "data-dir = /x is not a folder here; create it";
  expect(survey, Check::kConfiguration, Verdict::kWarn, "node-b", "/x is not a folder", "create it");
}

TEST(Diagnose, ClocksAreComparedWithTheMedian) {
  const auto off = [](std::size_t nodes, Seat who, std::int64_t ms, std::int64_t trip_ms) {
    Survey survey = healthy(nodes);
    for (const Seat seat : survey.names.places()) {
      at(survey, seat).asked_ms = 1000;
      at(survey, seat).received_ms = 1000 + trip_ms + (seat == who ? ms : 0);
      at(survey, seat).answered_ms = 9000 + trip_ms + (seat == who ? ms : 0);
      survey.parts[seat].arrived_ms = 9000 + 2 * trip_ms;
    }
    return survey;
  };
  // How long the question travels is no difference.
  EXPECT_EQ(only(diagnose(off(4, kD, 61'000, 400))).node, "node-d");
  expect(off(4, kD, 61'000, 0), Check::kClock, Verdict::kFail, "node-d", "61.0 s ahead of the others'", "set-ntp");
  expect(off(4, kB, -61'000, 5), Check::kClock, Verdict::kFail, "node-b", "61.0 s behind the others'", "set-ntp");
  expect(off(4, kD, 1'500, 0), Check::kClock, Verdict::kWarn, "node-d", "1.5 s ahead", "set-ntp");
  expect(off(2, kB, 70'000, 0), Check::kClock, Verdict::kFail, "node-b", "ahead of node-a's", "set-ntp");
  for (const Finding& one : diagnose(off(4, kD, 900, 400)).findings) EXPECT_EQ(one.verdict, Verdict::kPass) << one.seen;
}

TEST(Diagnose, ASlowLinkIsNamedWithItsDirection) {
  Survey survey = healthy();
  link(survey, kA, kD).mbps = 9.4;
  expect(survey, Check::kBandwidth, Verdict::kFail, "node-a",
         "from node-a to node-d come 9.4 Mbit/s, the median link carries 9", "ethtool eth0 on node-a");
  EXPECT_EQ(only(diagnose(survey)).peer, "node-d");

  // A node that is slow towards everybody, both ways.
  survey = healthy();
  for (const Seat other : {kA, kB, kC}) link(survey, other, kD).mbps = link(survey, kD, other).mbps = 9.4;
  const std::string text = text_of(diagnose(survey));
  EXPECT_NE(text.find("bandwidth fail [node-d] [] what it sends to every node comes at 9.4 Mbit/s"), std::string::npos)
      << text;
  EXPECT_NE(text.find("bandwidth fail [node-d] [] what every node sends it comes at 9.4 Mbit/s"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("from node-"), std::string::npos) << text;

  // On loopback it is the processors that differ.
  for (const Seat one : survey.names.places())
    for (LinkFacts& other : at(survey, one).links) other.device = "lo";
  for (const Finding& one : diagnose(survey).findings) EXPECT_EQ(one.verdict, Verdict::kPass) << one.seen;

  // Links that share cores differ, and nothing is wrong with them.
  survey = healthy();
  link(survey, kA, kD).mbps = 400;
  for (const Finding& one : diagnose(survey).findings) EXPECT_EQ(one.verdict, Verdict::kPass) << one.seen;
}

TEST(Diagnose, LinksAreComparedWithWhatWasTold) {
  Survey survey = healthy(2);
  link(survey, kA, kB).mbps = link(survey, kB, kA).mbps = 94;
  for (const Finding& one : diagnose(survey).findings) EXPECT_EQ(one.verdict, Verdict::kPass) << one.seen;
  survey.line_mbps = 1000;
  const Diagnosis diagnosis = diagnose(survey);
  EXPECT_NE(text_of(diagnosis).find("94.0 Mbit/s; a line of 1000 Mbit/s carries 941 Mbit/s"), std::string::npos)
      << text_of(diagnosis);
}

TEST(Diagnose, ALinkThatLetsNothingThrough) {
  Survey survey = healthy();
  link(survey, kB, kC).mbps = 0;
  link(survey, kB, kC).unmeasured = "nothing came through in 3 s";
  expect(survey, Check::kBandwidth, Verdict::kFail, "node-b", "nothing came through", "ping -M do");
}

TEST(Diagnose, ADeviceThatAgreedOnLess) {
  Survey survey = healthy();
  for (const Seat other : {kA, kB, kC}) link(survey, kD, other).device_mbps = 100;
  expect(survey, Check::kBandwidth, Verdict::kWarn, "node-d", "eth0 has agreed on 100 Mbit/s", "another cable");
}

TEST(Diagnose, MtuAndRoundTrips) {
  Survey survey = healthy();
  for (const Seat other : {kA, kB, kC}) link(survey, kD, other).mtu = 9000;
  expect(survey, Check::kMtu, Verdict::kWarn, "node-d", "9000 bytes (eth0), most others of 1500",
         "ip link set dev eth0 mtu 1500");
  survey = healthy();
  link(survey, kB, kC).round_trip_micros = link(survey, kC, kB).round_trip_micros = kMaxRoundTripMicros + 1;
  EXPECT_EQ(only(diagnose(survey)).peer, "node-c");
}

TEST(Diagnose, ARunIsNotDisturbedAndThatIsSaid) {
  Survey survey = healthy();
  for (const Seat seat : survey.names.places()) {
    Examination& one = at(survey, seat);
    one.busy = "run first is on";
    one.engine.clear();
    one.data.clear();
    for (LinkFacts& link : one.links) link.mbps = 0;
  }
  bool bandwidth = false;
  for (const Finding& one : diagnose(survey).findings) {
    EXPECT_TRUE(one.verdict == Verdict::kPass || one.verdict == Verdict::kSkipped) << one.seen;
    if (one.check == Check::kBandwidth)
      bandwidth = one.seen == "not measured by node-a, node-b, node-c, node-d: run first is on";
  }
  EXPECT_TRUE(bandwidth) << text_of(diagnose(survey));
}

TEST(Diagnose, DataSetsAreComparedWithWhatMostHave) {
  Survey survey = healthy();
  at(survey, kC).data[0].hash = 78;
  expect(survey, Check::kData, Verdict::kFail, "node-c", "another mnist (000000000000004e, in /srv/mnist) than node-a",
         "copy the files of node-a");
  at(survey, kC).data.clear();
  expect(survey, Check::kData, Verdict::kFail, "node-c", "no mnist in /srv/mnist; node-a has it", "copy it");
  at(survey, kC).data_dir.clear();
  expect(survey, Check::kData, Verdict::kFail, "node-c", "it has no data-dir", "set data-dir");
  survey = healthy();
  at(survey, kB).data[0].problem = "train-images is cut off; fetch it again";
  expect(survey, Check::kData, Verdict::kFail, "node-b", "train-images is cut off", "fetch it again");
}

TEST(Diagnose, WhatIsScarceOnAMachine) {
  const auto with = [](const std::function<void(Examination&)>& spoil) {
    Survey survey = healthy();
    spoil(at(survey, kC));
    return survey;
  };
  expect(with([](Examination& one) { one.disk_free = 100u << 20; }), Check::kDisk, Verdict::kFail, "node-c",
         "100 MiB free where its state-dir is; a run of LeNet with adam writes 60 MiB", "tgctl delete");
  expect(with([](Examination& one) { one.disk_problem = "state-dir /x cannot be written; mount it"; }), Check::kDisk,
         Verdict::kFail, "node-c", "cannot be written", "mount it");
  expect(with([](Examination& one) { one.memory_problem = "the run needs 80 MiB; stop what else runs"; }),
         Check::kMemory, Verdict::kFail, "node-c", "needs 80 MiB", "stop what else runs");
  expect(with([](Examination& one) { one.descriptors = 100; }), Check::kDescriptors, Verdict::kFail, "node-c",
         "100 open files and connections are allowed, and this mesh needs 160", "LimitNOFILE=160");
  expect(with([](Examination& one) { one.descriptors_open = 1000; }), Check::kDescriptors, Verdict::kFail, "node-c",
         "1000 of 1024", "ss -tn");
  expect(with([](Examination& one) { one.engine_problem = "a wrong gradient; test the memory"; }), Check::kEngine,
         Verdict::kFail, "node-c", "wrong gradient", "test the memory");
  expect(with([](Examination& one) { one.key_problem = "mode 0644; chmod 600 it"; }), Check::kKeys, Verdict::kFail,
         "node-c", "mode 0644", "chmod 600");
  expect(with([](Examination& one) { one.unfinished = "disk"; }), Check::kNodes, Verdict::kFail, "node-c",
         "check of disk did not end", "dmesg");
}

TEST(Diagnose, TooManyFindingsAreCounted) {
  constexpr std::size_t kMany = 40;
  Survey survey = healthy(kMany);
  for (const Seat from : survey.names.places())
    for (const Seat to : survey.names.places())
      if (from != to) link(survey, from, to).mesh = Reach::kSilent;
  const Diagnosis diagnosis = diagnose(survey);
  EXPECT_EQ(diagnosis.findings.size(), schema::kMaxFindings);
  EXPECT_GT(diagnosis.left_out, kMany * (kMany - 1) - schema::kMaxFindings);
}

TEST(Diagnose, NobodyAnswers) {
  Survey survey = healthy();
  for (Part& part : survey.parts) part = {std::nullopt, 0, "it does not answer"};
  const Diagnosis diagnosis = diagnose(survey);
  ASSERT_GE(diagnosis.findings.size(), kNodes) << text_of(diagnosis);
  for (std::size_t i = 0; i < kNodes; ++i) EXPECT_EQ(diagnosis.findings[i].verdict, Verdict::kFail);
}

}  // namespace
}  // namespace tg::daemon
