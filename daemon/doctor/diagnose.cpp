#include "daemon/doctor/diagnose.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "daemon/doctor/problems.h"
#include "daemon/membership/choose_exchange.h"
#include "kernels/base/hex.h"
#include "kernels/base/median.h"
#include "schema/limits.h"
#include "schema/text.h"

namespace tg::daemon {
namespace {

using schema::Examination;
using schema::Finding;
using schema::LinkFacts;
using schema::LinkResult;
using schema::Reach;
using schema::Verdict;
using Words = std::map<std::string, std::string>;

std::string filled(std::string text, const Words& words) {
  for (const auto& [name, value] : words) {
    const std::string place = "{" + name + "}";
    for (std::size_t at = 0; (at = text.find(place, at)) != std::string::npos; at += value.size())
      text.replace(at, place.size(), value);
  }
  return schema::clip_text(text, schema::kMaxSentenceBytes);
}

std::string fixed(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", value < 100 ? 1 : 0, value);
  return text;
}

bool reaches(const LinkFacts& link) { return link.mesh == Reach::kOk && link.control == Reach::kOk; }
bool reaches_any(const LinkFacts& link) { return link.mesh == Reach::kOk || link.control == Reach::kOk; }
bool is_refused(const LinkFacts& link) {
  return !link.refusal.empty() || (!link.problem.empty() && !link.waiting_helps);
}

std::string host_of(const LinkFacts& link) { return link.line.substr(0, link.line.rfind(':')); }
std::string place_of(const LinkFacts& link) { return link.address.empty() ? host_of(link) : link.address; }
// "7700,7701", those that do not answer.
std::string ports_of(const LinkFacts& link) {
  const int mesh = std::atoi(link.line.c_str() + link.line.rfind(':') + 1);
  std::string ports = link.mesh == Reach::kOk ? "" : std::to_string(mesh);
  if (link.control != Reach::kOk) ports += (ports.empty() ? "" : ",") + std::to_string(mesh + 1);
  return ports;
}

using Values = Per<Seat, std::string>;
// The first node with the most frequent value, and all that have another one. An empty value is none.
struct Comparison {
  explicit Comparison(const Values& values) {
    std::map<std::string, std::size_t> count;
    for (const std::string& value : values) ++count[value];
    std::vector<Seat> known = values.places_where([&](Seat seat) { return !values[seat].empty(); });
    if (known.empty()) return;
    model = *std::ranges::max_element(known, {}, [&](Seat seat) { return count[values[seat]]; });
    std::erase_if(known, [&](Seat seat) { return values[seat] == values[model]; });
    others = std::move(known);
  }
  Seat model;
  std::vector<Seat> others;
};

class Diagnoser {
 public:
  explicit Diagnoser(const Survey& survey)
      : survey_(survey), names_(survey.names), links_(names_.size()), reached_(names_.size(), false) {
    for (const Seat from : names_.places()) {
      links_[from].resize(names_.size(), nullptr);
      if (!survey.parts[from].examination) {
        unexamined_.push_back(names_[from]);
        continue;
      }
      reached_[from] = true;
      for (const LinkFacts& link : survey.parts[from].examination->links)
        if (const std::optional<Seat> to = names_.place_of(link.peer)) links_[from][*to] = &link;
    }
    for_links([&](Seat, Seat to, const LinkFacts& link) { reached_[to] = reached_[to] || reaches_any(link); });
  }

  schema::Diagnosis diagnosis() {
    judge_nodes();
    judge_configuration();
    judge_versions();
    judge_names();
    judge_ports();
    judge_own_problems();
    judge_keys();
    judge_refusals();
    judge_mtu();
    judge_clocks();
    judge_bandwidth();
    judge_data();
    add_passes();
    std::ranges::stable_sort(findings_, {}, &Finding::check);
    schema::Diagnosis result{names_[survey_.self], names_, {}, 0, {}, {}};
    if (findings_.size() > schema::kMaxFindings) {
      result.left_out = static_cast<std::uint32_t>(findings_.size() - schema::kMaxFindings);
      findings_.resize(schema::kMaxFindings);
    }
    result.findings = std::move(findings_);
    for (const Seat from : names_.places())
      for (const Seat to : names_.places()) {
        result.reach.push_back(link_result(from, to));
        result.mbps.push_back(links_[from][to] == nullptr ? 0 : static_cast<float>(links_[from][to]->mbps));
      }
    return result;
  }

 private:
  // Calls visit(from, to, link) for every link of an examined node.
  template <class Visit>
  void for_links(Visit visit) {
    for (const Seat from : names_.places())
      for (const Seat to : names_.places())
        if (from != to && links_[from][to] != nullptr) visit(from, to, *links_[from][to]);
  }
  // Calls visit(seat, examination) for every examined node.
  template <class Visit>
  void for_examined(Visit visit) {
    for (const Seat seat : names_.places())
      if (survey_.parts[seat].examination) visit(seat, *survey_.parts[seat].examination);
  }
  template <class ValueOf>
  Values values_of(ValueOf value_of) {
    Values values(names_.size());
    for_examined([&](Seat seat, const Examination& one) { values[seat] = value_of(seat, one); });
    return values;
  }

  void add(Check check, Verdict verdict, const std::string& node, const std::string& seen) {
    findings_.push_back({check, verdict, node, "", filled(seen, {}), ""});
  }
  void fail(const Problem& problem, Seat node, std::optional<Seat> peer, Words words) {
    words["node"] = names_[node];
    if (peer) words["peer"] = names_[*peer];
    findings_.push_back({problem.check, Verdict::kFail, words["node"], words["peer"], filled(problem.seen, words),
                         filled(problem.fix, words)});
  }
  // "what is wrong; what to do", as nodes and the mesh say it.
  void fail_with(Check check, Seat node, std::optional<Seat> peer, const std::string& sentence) {
    const std::size_t at = sentence.find("; ");
    const std::string fix = at == std::string::npos ? "" : sentence.substr(at + 2);
    findings_.push_back({check, Verdict::kFail, names_[node], peer ? names_[*peer] : "",
                         filled(sentence.substr(0, at), {}), filled(fix, {})});
  }
  bool has(Check check) const { return std::ranges::find(findings_, check, &Finding::check) != findings_.end(); }
  bool has(Check check, Seat node) const {
    return std::ranges::any_of(findings_,
                               [&](const Finding& one) { return one.check == check && one.node == names_[node]; });
  }

  LinkResult link_result(Seat from, Seat to) const {
    const LinkFacts* link = links_[from][to];
    if (from == to) return LinkResult::kSelf;
    if (!reached_[from] || !reached_[to]) return LinkResult::kDown;
    if (link == nullptr) return LinkResult::kUnknown;
    if (reaches(*link)) return is_refused(*link) ? LinkResult::kRefused : LinkResult::kOk;
    if (!reaches_any(*link)) return LinkResult::kBoth;
    return link->mesh == Reach::kOk ? LinkResult::kControl : LinkResult::kMesh;
  }

  void judge_nodes() {
    for (const Seat node : names_.places()) {
      const Part& part = survey_.parts[node];
      if (part.examination) {
        if (!part.examination->unfinished.empty())
          fail(kHungCheck, node, {}, {{"value", part.examination->unfinished}});
        continue;
      }
      const LinkFacts* link = links_[survey_.self][node];
      const std::string& asked = names_[survey_.self];
      if (link == nullptr)
        fail(kNoAnswer, node, {}, {{"why", part.silence}});
      else if (!link->name_problem.empty())
        add(Check::kNodes, Verdict::kSkipped, names_[node], "not examined: its host does not resolve (see names)");
      else if (!reached_[node] && link->problem.find("it connects from") == 0)
        fail_with(Check::kNodes, node, {}, link->problem);
      else if (!reached_[node])
        fail(kDown[static_cast<std::size_t>(std::max(link->mesh, link->control))], node, {},
             {{"why", part.silence}, {"place", place_of(*link)}, {"ports", ports_of(*link)}});
      else if (is_refused(*link))
        add(Check::kNodes, Verdict::kSkipped, names_[node],
            "not examined: it and " + asked + " refuse each other (see keys, versions and configuration)");
      else if (link->control > Reach::kOk)
        add(Check::kNodes, Verdict::kSkipped, names_[node],
            "not examined: " + asked + " cannot connect to its control port (see ports)");
      else
        fail(kNoAnswer, node, {}, {{"why", part.silence}});
    }
  }

  // Names every node with another value than most.
  void fail_others(const Problem& problem, const Values& values, std::optional<Seat> peer = {}, Words words = {}) {
    const Comparison found(values);
    words["usual"] = values[found.model];
    words["model"] = names_[found.model];
    for (const Seat node : found.others) {
      words["value"] = values[node];
      if (device_of(node) != nullptr) words["device"] = device_of(node)->device;
      fail(problem, node, peer, words);
    }
  }

  void judge_configuration() {
    Per<Seat, std::set<std::string>> lines(names_.size());
    const Values values = values_of([&](Seat seat, const Examination& one) {
      for (const LinkFacts& link : one.links) lines[seat].insert(link.peer + " " + link.line);
      return joined({lines[seat].begin(), lines[seat].end()});
    });
    const auto beyond = [&](Seat seat, Seat other) {
      std::vector<std::string> own;
      std::ranges::set_difference(lines[seat], lines[other], std::back_inserter(own));
      return own.empty() ? "none" : joined(own);
    };
    const Comparison found(values);
    for (const Seat node : found.others)
      fail(
          kOtherPeerLines, node, {},
          {{"value", beyond(node, found.model)}, {"usual", beyond(found.model, node)}, {"model", names_[found.model]}});
  }

  void judge_versions() {
    fail_others(kOtherBuild, values_of([](Seat, const Examination& one) { return one.build; }));
  }

  void judge_names() {
    for (const Seat peer : names_.places()) {
      std::vector<Seat> without;
      std::string host;
      Values addresses = values_of([&](Seat seat, const Examination&) {
        const LinkFacts* link = seat == peer ? nullptr : links_[seat][peer];
        if (link == nullptr || schema::is_ipv4(host_of(*link)) || schema::is_ipv6(host_of(*link))) return std::string();
        host = host_of(*link);
        if (!link->name_problem.empty()) without.push_back(seat);
        return link->address;
      });
      if (!without.empty())
        fail(kUnresolved, without[0], peer,
             {{"host", host},
              {"nodes", joined(without, ", ", [&](Seat seat) { return names_[seat]; })},
              {"why", links_[without[0]][peer]->name_problem}});
      // A name may have several addresses; where the link is up, another one is no mistake.
      const Comparison found(addresses);
      for (const Seat seat : found.others)
        if (links_[seat][peer]->up) addresses[seat] = addresses[found.model];
      fail_others(kOtherAddress, addresses, peer, {{"host", host}});
    }
  }

  void judge_ports() {
    for_links([&](Seat from, Seat to, const LinkFacts& link) {
      if (!reached_[to] || !link.name_problem.empty()) return;
      if (!reaches(link)) {
        const bool untried = link.mesh == Reach::kUntried || link.control == Reach::kUntried;
        const Reach reach = untried ? Reach::kUntried : link.mesh == Reach::kOk ? link.control : link.mesh;
        const std::string own = links_[from][from] == nullptr ? names_[from] : host_of(*links_[from][from]);
        return fail(kBlocked[static_cast<std::size_t>(reach)], from, to,
                    {{"place", place_of(link)}, {"ports", ports_of(link)}, {"from", own}});
      }
      const LinkFacts* back = links_[to][from];
      if (link.up || is_refused(link) || back == nullptr || !reaches(*back) || is_refused(*back)) return;
      if (back->up || from < to) fail(kLinkDown, from, to, {});  // once where both directions are down
    });
  }

  void judge_own_problems() {
    constexpr std::pair<Check, std::string Examination::*> kOwn[] = {{Check::kKeys, &Examination::key_problem},
                                                                     {Check::kNodes, &Examination::run_problem},
                                                                     {Check::kDisk, &Examination::disk_problem},
                                                                     {Check::kMemory, &Examination::memory_problem}};
    for_examined([&](Seat seat, const Examination& one) {
      for (const auto& [check, problem] : kOwn)
        if (!(one.*problem).empty()) fail_with(check, seat, {}, one.*problem);
      for (const schema::DataFacts& data : one.data)
        if (!data.problem.empty()) fail_with(Check::kData, seat, {}, data.problem);
    });
  }

  // Each refusal speaks against both ends; the node that takes part in most of them has the other key. Among equals it
  // is one that was not examined.
  void judge_keys() {
    std::vector<std::pair<Seat, Seat>> refusals;
    for_links([&](Seat from, Seat to, const LinkFacts& link) {
      if (!link.refusal.empty()) refusals.emplace_back(from, to);
    });
    while (!refusals.empty()) {
      Per<Seat, std::size_t> votes(names_.size());
      for (const auto& [from, to] : refusals) votes[from] += 2, votes[to] += 2;
      for (const Seat seat : names_.places())
        votes[seat] += votes[seat] > 0 && !survey_.parts[seat].examination ? 1 : 0;
      const Seat odd = *votes.place_of(*std::ranges::max_element(votes));
      std::vector<std::string> nodes;
      std::erase_if(refusals, [&](const auto& refusal) {
        if (refusal.first != odd && refusal.second != odd) return false;
        nodes.push_back(names_[refusal.first == odd ? refusal.second : refusal.first]);
        return true;
      });
      fail(kOtherKey, odd, {}, {{"nodes", joined(nodes)}, {"model", nodes[0]}});
    }
  }

  // What the mesh refuses, where no other finding of that check is about one of the two nodes.
  void judge_refusals() {
    for_links([&](Seat from, Seat to, const LinkFacts& link) {
      if (link.problem.empty() || link.waiting_helps) return;
      const auto about = [&](const char* words) { return link.problem.find(words) != std::string::npos; };
      const Check check = about("builds differ") ? Check::kVersions
                          : about("cluster key") ? Check::kKeys
                                                 : Check::kConfiguration;
      for (const Check one : {check, Check::kVersions, Check::kKeys, Check::kConfiguration})
        if (has(one, from) || has(one, to)) return;
      fail_with(check, from, to, link.problem);
    });
  }

  // The link of a node's network device with the smallest packets; null on one machine's loopback.
  const LinkFacts* device_of(Seat seat) const {
    const LinkFacts* found = nullptr;
    for (const LinkFacts* link : links_[seat])
      if (link != nullptr && link->mtu > 0 && !link->device.empty() && link->device != "lo" &&
          (found == nullptr || link->mtu < found->mtu))
        found = link;
    return found;
  }

  void judge_mtu() {
    fail_others(kOtherMtu, values_of([&](Seat seat, const Examination&) {
                  return device_of(seat) == nullptr ? std::string() : std::to_string(device_of(seat)->mtu);
                }));
  }

  // As NTP does: how far a clock was ahead of the asked node's while the question and the answer travelled.
  void judge_clocks() {
    std::map<Seat, double> ahead;
    std::vector<double> all;
    for_examined([&](Seat seat, const Examination& one) {
      const auto there = static_cast<double>(one.received_ms - one.asked_ms),
                 back = static_cast<double>(one.answered_ms - survey_.parts[seat].arrived_ms);
      all.push_back(ahead[seat] = seat == survey_.self ? 0 : (there + back) / 2000);
    });
    const double usual = all.size() > 2 ? median(all) : 0;  // with two clocks, the asked node's counts as right
    for (const auto& [seat, seconds] : ahead)
      if (const double off = seconds - usual; std::abs(off) >= kMaxClockSeconds)
        fail(kOtherClock, seat, {}, {{"value", fixed(std::abs(off))}, {"direction", off > 0 ? "ahead of" : "behind"}});
  }

  struct Rate {
    Seat from, to;
    double mbps = 0;
  };

  void judge_bandwidth() {
    if (survey_.seconds == 0) return;
    std::vector<Rate> all, slow;
    std::vector<double> rates;
    for_links([&](Seat from, Seat to, const LinkFacts& link) {
      if (link.mbps > 0) {
        all.push_back({from, to, link.mbps});
        rates.push_back(link.mbps);
      } else if (link.up && link.mesh != Reach::kNarrow && survey_.parts[from].examination->busy.empty()) {
        fail(kNothingThrough, from, to, {{"place", place_of(link)}});
      }
    });
    if (all.empty()) return;
    const bool given = survey_.line_mbps > 0;
    const double expected = given ? survey_.line_mbps * kPayloadShare : median(rates);
    const double least = given ? kMinLineShare * expected : std::min(kMinMedianShare * expected, kGigabitPayloadMbps);
    std::ranges::copy_if(all, std::back_inserter(slow), [&](const Rate& rate) {
      return rate.mbps < least && (given || links_[rate.from][rate.to]->device != "lo");
    });
    const auto name = [&](const Problem& problem, Seat node, std::optional<Seat> peer, double mbps) {
      fail(problem, node, peer,
           {{"value", fixed(mbps) + " Mbit/s"},
            {"usual", fixed(expected) + " Mbit/s"},
            {"device", device_of(node) == nullptr ? "DEVICE" : device_of(node)->device}});
    };
    // A node whose links in one direction are all slow is named once.
    for (const auto& [problem, end] : {std::pair(kSlowSender, &Rate::from), std::pair(kSlowReceiver, &Rate::to)})
      for (const Seat node : names_.places()) {
        const auto of_node = [&, end = end](const Rate& rate) { return rate.*end == node; };
        const auto own = std::ranges::count_if(slow, of_node);
        if (own < 2 || own != std::ranges::count_if(all, of_node)) continue;
        name(problem, node, {}, std::ranges::find_if(slow, of_node)->mbps);
        std::erase_if(slow, of_node);
      }
    for (const Rate& rate : slow) name(kSlowLink, rate.from, rate.to, rate.mbps);
    const auto [low, high] = std::ranges::minmax(rates);
    if (!has(Check::kBandwidth))
      add(Check::kBandwidth, Verdict::kPass, "", fixed(low) + " to " + fixed(high) + " Mbit/s of payload a link");
  }

  void judge_data() {
    std::set<std::string> sets;
    for_examined([&](Seat, const Examination& one) {
      for (const schema::DataFacts& data : one.data) sets.insert(data.set);
    });
    for (const std::string& set : sets) {
      std::vector<Seat> without;
      const Values hashes = values_of([&](Seat seat, const Examination& one) {
        const auto data = std::ranges::find(one.data, set, &schema::DataFacts::set);
        if (data != one.data.end()) return data->problem.empty() ? hex_digest(data->hash) : std::string();
        if (one.busy.empty() && one.unfinished.empty()) without.push_back(seat);
        return std::string();
      });
      const Comparison found(hashes);
      if (std::ranges::all_of(hashes, &std::string::empty)) continue;
      const auto differs = [&](Seat node, const std::string& what) {
        const std::string& folder = survey_.parts[node].examination->data_dir;
        fail(kOtherData, node, {},
             {{"value", what + set + (folder.empty() ? ", and no data-dir is set" : " in " + folder)},
              {"model", names_[found.model]},
              {"usual", survey_.parts[found.model].examination->data_dir},
              {"set", set}});
      };
      for (const Seat node : without) differs(node, "no ");
      for (const Seat node : found.others) differs(node, "another ");
    }
  }

  // A row for every check without a finding.
  void add_passes() {
    const std::size_t examined = names_.size() - unexamined_.size();
    bool connected = false;
    for_links([&](Seat, Seat, const LinkFacts& link) { connected = connected || reaches_any(link); });
    std::string busy;
    for_examined([&](Seat, const Examination& one) { busy = busy.empty() ? one.busy : busy; });
    for (const CheckRow& row : kChecks) {
      if (has(row.check) || (row.check == Check::kBandwidth && survey_.seconds == 0)) continue;
      const bool compared = row.needs == Needs::kTwoNodes     ? examined > 1
                            : row.needs == Needs::kConnection ? connected
                                                              : examined > 0;
      if (row.needs_idle && !busy.empty())
        add(row.check, Verdict::kSkipped, "", "not checked: " + busy);
      else if (!compared && names_.size() > 1)
        add(row.check, Verdict::kSkipped, "", "not checked: no other node answers (see nodes)");
      else
        add(row.check, Verdict::kPass, "",
            row.pass + (unexamined_.empty() ? "" : "; not examined: " + joined(unexamined_)));
    }
  }

  const Survey& survey_;
  const Per<Seat, std::string>& names_;
  Per<Seat, Per<Seat, const LinkFacts*>> links_;  // from, to; null where `from` was not examined
  Per<Seat, bool> reached_;                       // examined, or a port answers an examined node
  std::vector<std::string> unexamined_;
  std::vector<Finding> findings_;
};

}  // namespace

schema::Diagnosis diagnose(const Survey& survey) { return Diagnoser(survey).diagnosis(); }

}  // namespace tg::daemon
