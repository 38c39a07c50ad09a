// Every problem of a mesh is found once, by its node and with its next step, and nothing else is: a healthy mesh of
// four with one thing broken at a time.
#include "daemon/doctor/diagnose.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <tuple>

#include "daemon/doctor/problems.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

using schema::Diagnosis;
using schema::Examination;
using schema::Finding;
using schema::LinkFacts;
using schema::LinkResult;
using schema::Reach;
using schema::Verdict;

constexpr std::size_t kNodes = 4;
constexpr Seat kA(0), kB(1), kC(2), kD(3);

std::string name_of(std::size_t i) { return std::string("node-") + static_cast<char>('a' + i); }

Examination healthy_node(std::size_t self, std::size_t nodes) {
  Examination one;
  one.node = name_of(self);
  one.build = "0.1.0+abc";
  one.data_dir = "/srv/mnist";
  one.data = {{"mnist", 77, ""}};
  for (std::size_t i = 0; i < nodes; ++i) {
    LinkFacts link;
    link.peer = name_of(i);
    link.line = link.peer + ".lab:7700";
    if (i != self) {
      link.address = "10.0.0." + std::to_string(i + 1);
      link.mesh = link.control = Reach::kOk;
      link.mtu = 1500;
      link.device = "eth0";
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
LinkResult cell(const Diagnosis& diagnosis, Seat from, Seat to) {
  return diagnosis.reach[from.index() * diagnosis.nodes.size() + to.index()];
}

std::string text_of(const Diagnosis& diagnosis) {
  std::string text;
  for (const Finding& one : diagnosis.findings)
    text += std::string(to_word(one.check)) + " " + to_word(one.verdict) + " [" + one.node + "] [" + one.peer + "] " +
            one.seen + " | " + one.fix + "\n";
  return text;
}

std::vector<Finding> not_passed(const Diagnosis& diagnosis) {
  std::vector<Finding> found = diagnosis.findings;
  std::erase_if(found, [](const Finding& one) { return one.verdict == Verdict::kPass; });
  return found;
}

// The only finding besides passes.
void expect(const Survey& survey, Check check, const std::string& node, const std::string& seen,
            const std::string& fix) {
  const Diagnosis diagnosis = diagnose(survey);
  const std::vector<Finding> found = not_passed(diagnosis);
  ASSERT_EQ(found.size(), 1u) << text_of(diagnosis);
  EXPECT_EQ(to_word(found[0].check), std::string(to_word(check)));
  EXPECT_EQ(found[0].verdict, Verdict::kFail);
  EXPECT_EQ(found[0].node, node) << found[0].seen;
  EXPECT_NE(found[0].seen.find(seen), std::string::npos) << found[0].seen;
  EXPECT_NE(found[0].fix.find(fix), std::string::npos) << found[0].fix;
  EXPECT_EQ((found[0].seen + found[0].fix).find('{'), std::string::npos) << "every word is filled in";
}

void expect_text(const Survey& survey, const std::string& line) {
  const std::string text = text_of(diagnose(survey));
  EXPECT_NE(text.find(line), std::string::npos) << text;
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
    to.mtu = 0;
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
      EXPECT_EQ(seen.size(), std::size(kChecks)) << text_of(diagnosis);
    }
    EXPECT_EQ(diagnosis.reach.size(), nodes * nodes);
  }
}

TEST(Diagnose, ADownNodeIsOneFindingWithItsCause) {
  for (const auto& [reach, seen, fix] : {std::tuple(Reach::kRefused, "nothing listens", "start tgd on node-c"),
                                         std::tuple(Reach::kSilent, "does not answer", "let TCP 7700,7701 in"),
                                         std::tuple(Reach::kUnreachable, "no route", "is the address right"),
                                         std::tuple(Reach::kStuck, "sends nothing", "continue or restart"),
                                         std::tuple(Reach::kStranger, "not a tgd", "peer line of node-c"),
                                         std::tuple(Reach::kUntried, "it does not answer", "ask again")}) {
    Survey survey = healthy();
    take_down(survey, kC, reach);
    expect(survey, Check::kNodes, "node-c", seen, fix);
    const Diagnosis diagnosis = diagnose(survey);
    EXPECT_EQ(cell(diagnosis, kA, kC), LinkResult::kDown);
    EXPECT_EQ(cell(diagnosis, kC, kA), LinkResult::kDown);
    EXPECT_EQ(cell(diagnosis, kA, kB), LinkResult::kOk);
  }
}

TEST(Diagnose, NoAnswerIsNoPass) {
  Survey survey = healthy();
  for (const Seat node : {kB, kC, kD}) take_down(survey, node, Reach::kSilent);
  std::set<Check> skipped;
  for (const Finding& one : diagnose(survey).findings) {
    if (one.verdict == Verdict::kSkipped) skipped.insert(one.check);
    if (one.verdict == Verdict::kPass) {
      EXPECT_NE(one.seen.find("; not examined: node-b, node-c, node-d"), std::string::npos) << one.seen;
    }
  }
  const std::set<Check> alone{Check::kConfiguration, Check::kVersions, Check::kPorts,     Check::kKeys,
                              Check::kMtu,           Check::kClock,    Check::kBandwidth, Check::kData};
  EXPECT_EQ(skipped, alone) << text_of(diagnose(survey));

  survey = healthy();
  take_down(survey, kD, Reach::kSilent);
  expect_text(survey, "versions pass [] [] the same build on every node; not examined: node-d");
}

TEST(Diagnose, AHostThatDoesNotResolve) {
  Survey survey = healthy();
  const auto unresolved = [&](Seat from) {
    LinkFacts& to = link(survey, from, kC);
    to.address.clear();
    to.name_problem = "Name or service not known";
    to.mesh = to.control = Reach::kUntried;
    to.mbps = 0;
    to.up = false;
  };
  for (const Seat from : {kA, kB}) unresolved(from);
  expect(survey, Check::kNames, "node-a",
         "node-c.lab, the host of node-c, does not resolve on node-a, node-b: Name or service not known",
         "correct the peer line of node-c");
  EXPECT_EQ(cell(diagnose(survey), kA, kC), LinkResult::kBoth);
  // On every node: the check of nodes refers to it.
  unresolved(kD);
  survey.parts[kC] = {std::nullopt, 0, "it does not answer"};
  expect_text(survey, "nodes skipped [node-c] [] not examined: its host does not resolve (see names)");
}

TEST(Diagnose, AHostWithAnotherAddressSomewhere) {
  Survey survey = healthy();
  link(survey, kB, kC).address = "10.9.9.9";
  EXPECT_TRUE(not_passed(diagnose(survey)).empty()) << "the link is up: the name has two addresses";
  link(survey, kB, kC).up = false;
  expect_text(survey,
              "names fail [node-b] [node-c] node-c.lab, the host of node-c, is 10.9.9.9 on node-b but 10.0.0.3 on "
              "node-a | correct /etc/hosts");
}

TEST(Diagnose, APortThatIsBlockedInOneDirection) {
  Survey survey = healthy();
  LinkFacts& to = link(survey, kA, kB);
  to.mesh = Reach::kSilent;
  to.up = false;
  to.mbps = 0;
  expect(survey, Check::kPorts, "node-a", "node-a gets no answer from node-b at 10.0.0.2, TCP 7700",
         "ufw allow from node-a.lab to any port 7700 proto tcp, on node-b");
  const Diagnosis diagnosis = diagnose(survey);
  EXPECT_EQ(cell(diagnosis, kA, kB), LinkResult::kMesh);
  EXPECT_EQ(cell(diagnosis, kB, kA), LinkResult::kOk);
  to.control = Reach::kSilent;
  EXPECT_EQ(cell(diagnose(survey), kA, kB), LinkResult::kBoth);
  to.mesh = Reach::kOk;
  to.control = Reach::kRefused;
  expect(survey, Check::kPorts, "node-a", "is refused by node-b at 10.0.0.2, TCP 7701", "let TCP 7701 in");
  EXPECT_EQ(cell(diagnose(survey), kA, kB), LinkResult::kControl);
  for (const auto& [reach, seen, fix] :
       {std::tuple(Reach::kUntried, "had no time", "less busy"),
        std::tuple(Reach::kUnreachable, "no route", "ip route"),
        std::tuple(Reach::kStuck, "sends nothing", "restart tgd on node-b"),
        std::tuple(Reach::kStranger, "another program than tgd", "end that program")}) {
    to.control = reach;
    expect(survey, Check::kPorts, "node-a", seen, fix);
  }
}

TEST(Diagnose, ANodeWithAControlPortThatTheAskedNodeDoesNotReach) {
  Survey survey = healthy();
  survey.parts[kB] = {std::nullopt, 0, "its control port cannot be reached"};
  link(survey, kA, kB).control = Reach::kSilent;
  expect_text(survey, "nodes skipped [node-b] [] not examined: node-a cannot connect to its control port (see ports)");
  expect_text(survey, "ports fail [node-a] [node-b]");
  const Diagnosis diagnosis = diagnose(survey);
  EXPECT_EQ(cell(diagnosis, kB, kA), LinkResult::kUnknown);
  EXPECT_EQ(cell(diagnosis, kC, kB), LinkResult::kOk);
  link(survey, kA, kB).control = Reach::kOk;
  expect(survey, Check::kNodes, "node-b", "its control port cannot be reached", "read the log of node-b");
}

TEST(Diagnose, ALinkThatIsNotUpAlthoughItsPortsAnswer) {
  Survey survey = healthy();
  for (const auto& [from, to] : {std::pair(kA, kB), std::pair(kB, kA)}) {
    link(survey, from, to).up = false;
    link(survey, from, to).waiting_helps = true;
    link(survey, from, to).problem = "nothing comes";
    expect(survey, Check::kPorts, "node-a", "both ports of node-b answer node-a, but the link is not up",
           "restart tgd");
  }
}

TEST(Diagnose, AnotherKeyIsOneFindingAtTheNodeThatHasIt) {
  Survey survey = healthy();
  survey.parts[kB] = {std::nullopt, 0, "its control port cannot be reached"};
  for (const Seat from : {kA, kC, kD}) {
    link(survey, from, kB).refusal = "the control port of node-b has other keys; give both the same cluster key file";
    link(survey, from, kB).up = false;
    link(survey, from, kB).mbps = 0;
  }
  // One met the other key in the mesh alone so far.
  link(survey, kD, kB).refusal.clear();
  link(survey, kD, kB).problem = "node-b has no keys, or others than node-d; give both the same cluster key file";
  const Diagnosis diagnosis = diagnose(survey);
  ASSERT_EQ(not_passed(diagnosis).size(), 2u) << text_of(diagnosis);
  expect_text(survey,
              "keys fail [node-b] [] it has another cluster key than node-a, node-c, or none | copy the cluster key "
              "file of node-a to node-b (its key-file)");
  expect_text(survey, "nodes skipped [node-b] [] not examined: it and node-a refuse each other");
  EXPECT_EQ(cell(diagnosis, kA, kB), LinkResult::kRefused);

  // Asked at the one with the other key.
  survey = healthy();
  survey.self = kB;
  for (const Seat other : {kA, kC, kD}) {
    survey.parts[other] = {std::nullopt, 0, "its control port cannot be reached"};
    link(survey, kB, other).refusal = "other keys; mend them";
  }
  const std::string text = text_of(diagnose(survey));
  const std::size_t found =
      text.find("keys fail [node-b] [] it has another cluster key than node-a, node-c, node-d, or none");
  ASSERT_NE(found, std::string::npos) << text;
  EXPECT_EQ(text.find("keys fail", found + 1), std::string::npos) << text;

  survey = healthy();
  at(survey, kC).key_problem = "mode 0644; chmod 600 it";
  expect(survey, Check::kKeys, "node-c", "mode 0644", "chmod 600");
}

TEST(Diagnose, ARefusalOfTheMeshAlone) {
  for (const auto& [problem, check] :
       {std::tuple("another process called node-b connects from 10.0.0.9; are two nodes?", Check::kConfiguration),
        std::tuple("builds differ: node-b runs x; are two nodes?", Check::kVersions),
        std::tuple("node-b has no cluster key; are two nodes?", Check::kKeys)}) {
    Survey survey = healthy();
    link(survey, kA, kB).problem = problem;
    expect(survey, check, "node-a", std::string(problem).substr(0, 10), "are two nodes");
  }
}

TEST(Diagnose, AnotherBuild) {
  Survey survey = healthy();
  at(survey, kC).build = "0.1.0+def";
  link(survey, kA, kC).problem = "builds differ: ...; install one build everywhere";
  expect(survey, Check::kVersions, "node-c", "runs tgd 0.1.0+def, node-a runs 0.1.0+abc", "install one build");
}

TEST(Diagnose, PeerLinesThatDiffer) {
  Survey survey = healthy();
  link(survey, kD, kB).line = "10.0.0.77:7700";
  expect(survey, Check::kConfiguration, "node-d",
         "its peer lines have node-b 10.0.0.77:7700 where those of node-a have node-b node-b.lab:7700",
         "the same peer lines");
  survey = healthy();
  at(survey, kC).links.pop_back();
  expect(survey, Check::kConfiguration, "node-c", "have none where those of node-a have node-d node-d.lab:7700",
         "the same peer lines");
}

TEST(Diagnose, ClocksAreComparedWithTheMedian) {
  const auto off = [](std::size_t nodes, Seat one, std::int64_t ms, std::int64_t trip_ms) {
    Survey survey = healthy(nodes);
    for (const Seat seat : survey.names.places()) {
      at(survey, seat).asked_ms = 1000;
      at(survey, seat).received_ms = 1000 + trip_ms + (seat == one ? ms : 0);
      at(survey, seat).answered_ms = 9000 + trip_ms + (seat == one ? ms : 0);
      survey.parts[seat].arrived_ms = 9000 + 2 * trip_ms;
    }
    return survey;
  };
  // The time that the question travels is no difference.
  expect(off(4, kD, 61'000, 400), Check::kClock, "node-d", "61.0 s ahead of the others'", "set-ntp true on node-d");
  expect(off(4, kB, -1'500, 5), Check::kClock, "node-b", "1.5 s behind the others'", "set-ntp");
  expect(off(2, kB, 70'000, 0), Check::kClock, "node-b", "ahead", "set-ntp");
  EXPECT_TRUE(not_passed(diagnose(off(4, kD, 900, 400))).empty());
}

TEST(Diagnose, ASlowLinkIsNamedWithItsDirection) {
  Survey survey = healthy();
  link(survey, kA, kD).mbps = 9.4;
  expect(survey, Check::kBandwidth, "node-a", "node-a to node-d is slow: 9.4 Mbit/s, expected 9",
         "ethtool eth0 on node-a");

  // A node that is slow towards all others, both ways.
  survey = healthy();
  for (const Seat other : {kA, kB, kC}) link(survey, other, kD).mbps = link(survey, kD, other).mbps = 9.4;
  EXPECT_EQ(not_passed(diagnose(survey)).size(), 2u) << text_of(diagnose(survey));
  expect_text(survey, "bandwidth fail [node-d] [] every link from node-d is slow: 9.4 Mbit/s");
  expect_text(survey, "bandwidth fail [node-d] [] every link to node-d is slow: 9.4 Mbit/s");

  // On loopback it is the processors that differ.
  for (const Seat one : survey.names.places())
    for (LinkFacts& other : at(survey, one).links) other.device = "lo";
  EXPECT_TRUE(not_passed(diagnose(survey)).empty());

  // Links that share cores differ, and nothing is wrong with them.
  survey = healthy();
  link(survey, kA, kD).mbps = 400;
  EXPECT_TRUE(not_passed(diagnose(survey)).empty());
  expect_text(survey, "bandwidth pass [] [] 400 to 935 Mbit/s of payload a link");
}

TEST(Diagnose, LinksAreComparedWithTheGivenRate) {
  Survey survey = healthy(2);
  link(survey, kA, kB).mbps = link(survey, kB, kA).mbps = 94;
  EXPECT_TRUE(not_passed(diagnose(survey)).empty());
  survey.line_mbps = 1000;
  expect_text(survey, "bandwidth fail [node-a] [node-b] node-a to node-b is slow: 94.0 Mbit/s, expected 941 Mbit/s");
}

TEST(Diagnose, ALinkThatLetsNothingThrough) {
  Survey survey = healthy();
  link(survey, kB, kC).mbps = 0;
  expect(survey, Check::kBandwidth, "node-b", "nothing came through from node-b to node-c", "ping -M do");
}

TEST(Diagnose, AnotherPacketSize) {
  Survey survey = healthy();
  for (const Seat other : {kA, kB, kC}) link(survey, kD, other).mtu = 9000;
  expect(survey, Check::kMtu, "node-d", "9000 bytes (eth0), node-a of 1500", "ip link set dev eth0 mtu 1500 on node-d");
}

TEST(Diagnose, ARunIsNotDisturbed) {
  Survey survey = healthy();
  for (const Seat seat : survey.names.places()) {
    at(survey, seat).busy = "run first is on";
    at(survey, seat).data.clear();
    for (LinkFacts& link : at(survey, seat).links) link.mbps = 0;
  }
  std::set<Check> skipped;
  for (const Finding& one : not_passed(diagnose(survey))) {
    EXPECT_EQ(one.seen, "not checked: run first is on");
    skipped.insert(one.check);
  }
  EXPECT_EQ(skipped, (std::set<Check>{Check::kBandwidth, Check::kData, Check::kMemory}));
}

TEST(Diagnose, DataSetsAreComparedWithTheMostFrequent) {
  Survey survey = healthy();
  at(survey, kC).data[0].hash = 78;
  expect(survey, Check::kData, "node-c", "another mnist in /srv/mnist, unlike node-a",
         "copy mnist from /srv/mnist on node-a into the data-dir of node-c");
  at(survey, kC).data.clear();
  expect(survey, Check::kData, "node-c", "no mnist in /srv/mnist, unlike node-a", "copy mnist");
  for (const Seat seat : {kB, kD}) at(survey, seat).data.clear();
  EXPECT_EQ(not_passed(diagnose(survey)).size(), 3u) << "one node has it";
  survey = healthy();
  at(survey, kC).data.clear();
  at(survey, kC).data_dir.clear();
  expect(survey, Check::kData, "node-c", "no mnist, and no data-dir is set", "copy mnist");
  survey = healthy();
  at(survey, kB).data[0].problem = "train-images is cut off; fetch it again";
  expect(survey, Check::kData, "node-b", "train-images is cut off", "fetch it again");
}

TEST(Diagnose, AMachineThatLacksSomething) {
  for (const auto& [problem, check] :
       {std::pair(&Examination::disk_problem, Check::kDisk), std::pair(&Examination::memory_problem, Check::kMemory),
        std::pair(&Examination::run_problem, Check::kNodes)}) {
    Survey survey = healthy();
    at(survey, kC).*problem = "too little; free some";
    expect(survey, check, "node-c", "too little", "free some");
  }
  Survey survey = healthy();
  at(survey, kC).unfinished = "disk";
  expect(survey, Check::kNodes, "node-c", "its check of disk did not end in time", "dmesg");
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

TEST(Diagnose, NoNodeAnswers) {
  Survey survey = healthy();
  for (Part& part : survey.parts) part = {std::nullopt, 0, "it does not answer"};
  const Diagnosis diagnosis = diagnose(survey);
  ASSERT_GE(diagnosis.findings.size(), kNodes) << text_of(diagnosis);
  for (std::size_t i = 0; i < kNodes; ++i) EXPECT_EQ(diagnosis.findings[i].verdict, Verdict::kFail);
}

}  // namespace
}  // namespace tg::daemon
