#include "daemon/doctor/link_verdicts.h"

#include <map>

#include "daemon/doctor/thresholds.h"
#include "daemon/membership/choose_exchange.h"
#include "kernels/base/median.h"

namespace tg::daemon {

using schema::Cell;
using schema::Check;
using schema::Examination;
using schema::LinkFacts;
using schema::Reach;

namespace {

constexpr const char* kNoConnection = "no other node takes a connection, see nodes";

bool reaches(const LinkFacts& link) { return link.mesh == Reach::kOk && link.control == Reach::kOk; }
bool reaches_any(const LinkFacts& link) { return link.mesh == Reach::kOk || link.control == Reach::kOk; }
bool is_refused(const LinkFacts& link) {
  return !link.refusal.empty() || (!link.problem.empty() && !link.waiting_helps);
}

// Calls visit(from, to, link) for every link of an examined node.
template <class Visit>
void for_links(const Survey& survey, Visit visit) {
  for (const Seat from : survey.names.places())
    for (const Seat to : survey.names.places())
      if (const LinkFacts* link = from == to ? nullptr : link_of(survey, from, to)) visit(from, to, *link);
}

// No examined node reaches it, and it has not answered.
bool is_down(const Survey& survey, Seat node) {
  if (survey.parts[node].examination) return false;
  bool reached = false;
  for_links(survey, [&](Seat, Seat to, const LinkFacts& link) { reached |= to == node && reaches_any(link); });
  return !reached;
}

std::uint16_t port_of(const LinkFacts& link) {
  const std::size_t colon = link.line.rfind(':');
  return static_cast<std::uint16_t>(colon == std::string::npos ? 0 : std::atoi(link.line.c_str() + colon + 1));
}

std::string host_of(const LinkFacts& link) { return link.line.substr(0, link.line.rfind(':')); }

std::string in_words(Reach reach) {
  switch (reach) {
    case Reach::kUntried:
      return "it was not tried";
    case Reach::kOk:
      return "it answers";
    case Reach::kRefused:
      return "the connection is refused";
    case Reach::kSilent:
      return "no answer";
    case Reach::kUnreachable:
      return "no way there";
    case Reach::kStuck:
      return "it accepts the connection and says nothing";
    case Reach::kStranger:
      return "the program that answers is not a tgd";
  }
  return "";
}

Advice why_down(const std::string& name, const LinkFacts& link) {
  const std::string place = link.address.empty() ? host_of(link) : link.address;
  if (!link.name_problem.empty()) return {"no node reaches it: its host " + place + " does not resolve", "see names"};
  switch (std::max(link.mesh, link.control)) {
    case Reach::kRefused:
      return {"down: nothing listens at " + place,
              "start tgd on " + name + " (systemctl start tgd, or tgd --config FILE); where it ends at once, its log " +
                  "says why (journalctl -u tgd)"};
    case Reach::kStuck:
      return {"down: its process at " + place + " accepts connections and does nothing",
              "continue or restart tgd on " + name + " (is it stopped, is its machine out of memory?)"};
    case Reach::kStranger:
      return {"down: what answers at " + place + " is not a tgd",
              "correct the peer line of " + name + ", or end that program"};
    default:
      return {"down: its machine does not answer at " + place,
              "is " + name + " on, is its cable in, is that its address (ip -brief address), does its firewall let " +
                  "TCP " + std::to_string(port_of(link)) + "," + std::to_string(port_of(link) + 1) + " in?"};
  }
}

// The link that tells most about an unexamined node: the asked node's own, else anybody's.
const LinkFacts* witness_of(const Survey& survey, Seat node) {
  if (const LinkFacts* own = link_of(survey, survey.self, node)) return own;
  const LinkFacts* seen = nullptr;
  for_links(survey, [&](Seat, Seat to, const LinkFacts& link) {
    if (to == node) seen = &link;
  });
  return seen;
}

}  // namespace

std::vector<Cell> matrix_of(const Survey& survey) {
  std::vector<Cell> cells;
  for (const Seat from : survey.names.places()) {
    for (const Seat to : survey.names.places()) {
      const LinkFacts* link = link_of(survey, from, to);
      if (from == to)
        cells.push_back(Cell::kSelf);
      else if (is_down(survey, to) || is_down(survey, from))
        cells.push_back(Cell::kDown);
      else if (link == nullptr)
        cells.push_back(Cell::kUnknown);
      else if (reaches(*link))
        cells.push_back(is_refused(*link) ? Cell::kRefused : Cell::kOk);
      else if (!reaches_any(*link))
        cells.push_back(Cell::kBoth);
      else
        cells.push_back(link->mesh == Reach::kOk ? Cell::kControl : Cell::kMesh);
    }
  }
  return cells;
}

void judge_nodes(const Survey& survey, Findings& findings) {
  for (const Seat node : survey.names.places()) {
    const Part& part = survey.parts[node];
    if (part.examination) {
      const std::string& late = part.examination->unfinished;
      if (!late.empty())
        findings.fail(Check::kNodes, survey.names[node], "",
                      {"its check of " + late + " did not end in time, and the later checks were not run",
                       "does that disk, or the machine as a whole, hang? see dmesg there"});
      continue;
    }
    const LinkFacts* link = witness_of(survey, node);
    if (link != nullptr && is_down(survey, node))
      findings.fail(Check::kNodes, survey.names[node], "", why_down(survey.names[node], *link));
    else if (link != nullptr && is_refused(*link))
      findings.skip(Check::kNodes, survey.names[node],
                    "not examined, it and " + survey.names[survey.self] +
                        " refuse each other: see keys, versions and configuration");
    else if (link != nullptr && link->control != Reach::kOk && link->control != Reach::kUntried)
      findings.fail(Check::kNodes, survey.names[node], "",
                    {"not examined: " + survey.names[survey.self] + " does not reach its control port",
                     "see ports; or ask another node with --address"});
    else
      findings.fail(Check::kNodes, survey.names[node], "",
                    {"not examined: " + part.silence,
                     "ask again in a moment; the log of " + survey.names[node] + " says what it does"});
  }
  findings.pass(Check::kNodes,
                count(survey.names.size(), "node") + (survey.names.size() == 1 ? " answers" : " answer"));
}

void judge_names(const Survey& survey, Findings& findings) {
  std::size_t looked_up = 0;
  for (const Seat to : survey.names.places()) {
    std::map<std::string, std::vector<std::string>> unresolved, addresses;  // what: by whom
    std::string host;
    for_links(survey, [&](Seat from, Seat peer, const LinkFacts& link) {
      const std::string own = host_of(link);
      if (peer != to || schema::is_ipv4(own) || schema::is_ipv6(own)) return;
      host = own;
      ++looked_up;
      if (!link.name_problem.empty()) unresolved[own + "\n" + link.name_problem].push_back(survey.names[from]);
      if (!link.address.empty()) addresses[link.address].push_back(survey.names[from]);
    });
    for (const auto& [what, by] : unresolved) {
      const std::string name = what.substr(0, what.find('\n'));
      findings.fail(
          Check::kNames, by.front(), survey.names[to],
          {name + ", in the peer line of " + survey.names[to] + ", does not resolve on " + schema::joined(by) + ": " +
               what.substr(what.find('\n') + 1),
           "correct the peer line of " + survey.names[to] + ", or make the name known there (the DNS server, " +
               "/etc/hosts); getent hosts " + name + " tries it"});
    }
    if (addresses.size() < 2) continue;
    std::string who;
    for (const auto& [address, by] : addresses)
      who += (who.empty() ? "" : ", ") + address + " on " + schema::joined(by);
    findings.warn(Check::kNames, "", survey.names[to],
                  {host + " is not the same everywhere: " + who,
                   "correct /etc/hosts or the DNS server where it is wrong, or give the address in the peer line"});
  }
  findings.pass(Check::kNames, looked_up == 0 ? "the peer lines have addresses, no names" : "every name resolves");
}

namespace {

// The node's address as the others see it: the one that its connections come from.
std::string address_of(const Survey& survey, Seat node) {
  std::string address = survey.names[node];
  for_links(survey, [&](Seat from, Seat, const LinkFacts& link) {
    if (from == node && !link.from.empty()) address = link.from;
  });
  return address;
}

void judge_port(const Survey& survey, Seat from, Seat to, const LinkFacts& link, Findings& findings) {
  const std::string &here = survey.names[from], &there = survey.names[to];
  std::string ports, which;
  Reach worst = Reach::kOk;
  const auto look = [&](Reach reach, const char* name, int port) {
    if (reach == Reach::kOk) return;
    ports += (ports.empty() ? "" : ",") + std::to_string(port);
    which += (which.empty() ? "" : " and ") + std::string(name) + " port " + std::to_string(port);
    worst = reach;
  };
  look(link.mesh, "mesh", port_of(link));
  look(link.control, "control", port_of(link) + 1);
  if (ports.empty()) return;
  const LinkFacts* back = link_of(survey, to, from);
  const std::string seen = here + " does not get to the " + which + " of " + there + " at " + link.address + ": " +
                           in_words(worst) + (back != nullptr && reaches(*back) ? "; the way back works" : "");
  const std::string own = address_of(survey, from);
  std::string fix;
  switch (worst) {
    case Reach::kRefused:
      fix = "a firewall on " + there + " refuses it, or tgd listens on another address there: let TCP " + ports +
            " in from " + own + ", and look at listen (ss -ltn)";
      break;
    case Reach::kUnreachable:
      fix = "no route, or the machine is off: ip route get " + link.address + " on " + here;
      break;
    case Reach::kStuck:
      fix = "continue or restart tgd on " + there;
      break;
    case Reach::kStranger:
      fix = "another program has that port: correct the peer line of " + there + ", or end that program";
      break;
    default:
      fix = "a firewall drops it: on " + there + " let TCP " + ports + " in from " + own + " (ufw allow from " + own +
            " to any port " + ports + " proto tcp), and out of " + here + "; nft list ruleset shows who drops it";
  }
  findings.fail(Check::kPorts, here, there, {seen, fix});
}

}  // namespace

void judge_ports(const Survey& survey, Findings& findings) {
  for_examined(survey, [&](Seat seat, const Examination& one) {
    if (one.links.empty())
      findings.fail(
          Check::kPorts, survey.names[seat], "",
          {"its links to the others could not be examined", "does that machine have memory and threads left?"});
  });
  std::size_t tried = 0;
  for_links(survey, [&](Seat from, Seat to, const LinkFacts& link) {
    if (is_down(survey, to) || !link.name_problem.empty()) return;
    ++tried;
    if (link.mesh == Reach::kUntried || link.control == Reach::kUntried)
      return findings.fail(Check::kPorts, survey.names[from], survey.names[to],
                           {"there was no time to try " + link.line, "ask again when the machine is less busy"});
    judge_port(survey, from, to, link, findings);
    const LinkFacts* back = link_of(survey, to, from);
    if (reaches(link) && !link.up && !is_refused(link) && back != nullptr && reaches(*back) && !is_refused(*back))
      findings.fail(Check::kPorts, survey.names[from], survey.names[to],
                    {"the ports answer, but the link is not up" + (link.problem.empty() ? "" : ": " + link.problem),
                     "ask again in a few seconds; if it stays down, restart tgd on " + survey.names[to]});
  });
  const std::size_t nodes = survey.names.size(), links = nodes * (nodes - 1);
  if (tried == 0) findings.not_looked(Check::kPorts, "not examined: no other node is there to be reached, see nodes");
  findings.pass(Check::kPorts, nodes < 2 ? "no other node"
                               : tried == links
                                   ? "every node reaches both ports of every other"
                                   : "both ports answer on " + std::to_string(tried) + " of " + count(links, "link"));
}

void judge_keys(const Survey& survey, Findings& findings) {
  std::map<Seat, std::vector<Seat>> refusers, refused;
  std::map<Seat, std::size_t> peers;
  for_links(survey, [&](Seat from, Seat to, const LinkFacts& link) {
    if (reaches_any(link)) ++peers[from];
    if (link.refusal.empty()) return;
    refusers[to].push_back(from);
    refused[from].push_back(to);
  });
  std::vector<Seat> odd;  // nodes that agree with no other
  for (const auto& [from, all] : refused)
    if (all.size() > 1 && all.size() == peers[from]) odd.push_back(from);
  const auto is_odd = [&](Seat seat) { return std::find(odd.begin(), odd.end(), seat) != odd.end(); };
  for (const Seat seat : odd)
    findings.fail(Check::kKeys, survey.names[seat], "",
                  {"it has another cluster key than all the others, or they have none",
                   "copy the cluster key file of another node to " + survey.names[seat] + " (its key-file)"});
  for (const auto& [to, by] : refusers) {
    std::vector<std::string> names;
    for (const Seat from : by)
      if (!is_odd(from)) names.push_back(survey.names[from]);
    if (names.empty() || is_odd(to)) continue;
    Advice advice = advice_of(link_of(survey, by.front(), to)->refusal);
    advice.seen += " (told by " + schema::joined(names) + ")";
    findings.fail(Check::kKeys, survey.names[to], "", std::move(advice));
  }
  bool keys = false;
  for_examined(survey, [&](Seat seat, const Examination& one) {
    keys = keys || one.has_keys;
    if (!one.key_problem.empty()) findings.fail(Check::kKeys, survey.names[seat], "", advice_of(one.key_problem));
  });
  if (peers.empty()) findings.not_looked(Check::kKeys, "not compared: no other node is there to be reached, see nodes");
  findings.pass(Check::kKeys, keys ? "all have the same cluster key" : "no keys, as the configuration says");
}

void judge_round_trips(const Survey& survey, Findings& findings) {
  std::vector<double> all;
  for_links(survey, [&](Seat from, Seat to, const LinkFacts& link) {
    if (link.round_trip_micros == 0) return;
    all.push_back(link.round_trip_micros * 1e-3);
    const LinkFacts* back = link_of(survey, to, from);
    const bool told = from > to && back != nullptr && back->round_trip_micros > kMaxRoundTripMicros;
    if (link.round_trip_micros <= kMaxRoundTripMicros || told || !survey.parts[from].examination->busy.empty()) return;
    findings.warn(Check::kRoundTrip, survey.names[from], survey.names[to],
                  {"from " + survey.names[from] + " to " + survey.names[to] + " and back takes " +
                       fixed(link.round_trip_micros * 1e-3, 1) + " ms; a local Ethernet takes 0.1 to 1 ms",
                   "use a cable in place of Wi-Fi, and one switch; does something else fill that link?"});
  });
  if (!all.empty())
    findings.pass(Check::kRoundTrip, fixed(median(all), 2) + " ms in the median, " +
                                         fixed(*std::max_element(all.begin(), all.end()), 2) + " ms at most");
  findings.not_looked(Check::kRoundTrip, "not measured: " + std::string(kNoConnection));
}

namespace {

struct Sent {  // by one node's network device
  std::uint32_t mtu = 0, device_mbps = 0;
  std::string device;
};

// The most frequent value; among equally frequent ones the largest.
std::uint32_t most_frequent(const std::map<Seat, Sent>& all, std::uint32_t Sent::*field) {
  std::map<std::uint32_t, std::size_t> votes;
  for (const auto& [seat, sent] : all)
    if (sent.*field != 0) ++votes[sent.*field];
  std::uint32_t found = 0;
  for (const auto& [value, times] : votes)
    if (found == 0 || times >= votes[found]) found = value;
  return found;
}

std::map<Seat, Sent> devices_of(const Survey& survey) {
  std::map<Seat, Sent> all;
  for_links(survey, [&](Seat from, Seat, const LinkFacts& link) {
    if (link.mtu == 0 || link.device.empty() || link.device == "lo") return;
    Sent& sent = all[from];
    if (sent.mtu == 0 || link.mtu < sent.mtu) sent = {link.mtu, link.device_mbps, link.device};
  });
  return all;
}

}  // namespace

void judge_mtu(const Survey& survey, Findings& findings) {
  const std::map<Seat, Sent> all = devices_of(survey);
  const std::uint32_t usual = most_frequent(all, &Sent::mtu);
  bool on_loopback = false;
  for_links(survey, [&](Seat, Seat, const LinkFacts& link) { on_loopback |= link.device == "lo"; });
  for (const auto& [seat, sent] : all)
    if (sent.mtu != usual)
      findings.warn(Check::kMtu, survey.names[seat], "",
                    {"sends packets of " + std::to_string(sent.mtu) + " bytes (" + sent.device + "), most others of " +
                         std::to_string(usual) + ": where they do not fit, connections hang",
                     "give all the same: ip link set dev " + sent.device + " mtu " + std::to_string(usual) + " on " +
                         survey.names[seat] + ", and the same in its network configuration"});
  if (usual != 0)
    findings.pass(Check::kMtu, std::to_string(usual) + " bytes on " + count(all.size(), "node"));
  else if (on_loopback)
    findings.pass(Check::kMtu, "all nodes are on one machine's loopback");
  findings.not_looked(Check::kMtu, "not examined: " + std::string(kNoConnection));
}

namespace {

struct Rate {
  Seat from, to;
  double mbps = 0;
};

std::string range_of(const std::vector<Rate>& rates) {
  const auto [least, most] =
      std::minmax_element(rates.begin(), rates.end(), [](const Rate& a, const Rate& b) { return a.mbps < b.mbps; });
  if (mbit(least->mbps) == mbit(most->mbps)) return mbit(least->mbps);
  const std::string low = mbit(least->mbps);
  return low.substr(0, low.find(' ')) + " to " + mbit(most->mbps);
}

std::string look_at(const Survey& survey, Seat node, const std::string& device) {
  return "look at its cable, its port in the switch and what it has agreed on: ethtool " +
         (device.empty() ? std::string("DEVICE") : device) + " on " + survey.names[node] +
         "; is that link shared with others, or shaped (tc qdisc)?";
}

// A node whose links in one direction are all slow is named once; other links are named one by one.
void name_slow(const Survey& survey, std::vector<Rate> slow, const std::vector<Rate>& all, const std::string& beside,
               Findings& findings) {
  const std::map<Seat, Sent> devices = devices_of(survey);
  const auto device_of = [&](Seat node) { return devices.contains(node) ? devices.at(node).device : ""; };
  for (Seat Rate::*end : {&Rate::from, &Rate::to}) {
    for (const Seat node : survey.names.places()) {
      const auto of_node = [&](const Rate& rate) { return rate.*end == node; };
      std::vector<Rate> own;
      std::copy_if(slow.begin(), slow.end(), std::back_inserter(own), of_node);
      if (own.size() < 2 || static_cast<std::ptrdiff_t>(own.size()) != std::count_if(all.begin(), all.end(), of_node))
        continue;
      std::erase_if(slow, of_node);
      findings.fail(
          Check::kBandwidth, survey.names[node], "",
          {(end == &Rate::from ? "what it sends to every node comes at " : "what every node sends it comes at ") +
               range_of(own) + beside,
           look_at(survey, node, device_of(node))});
    }
  }
  for (const Rate& rate : slow)
    findings.fail(
        Check::kBandwidth, survey.names[rate.from], survey.names[rate.to],
        {"from " + survey.names[rate.from] + " to " + survey.names[rate.to] + " come " + mbit(rate.mbps) + beside,
         look_at(survey, rate.from, device_of(rate.from)) + " The same on " + survey.names[rate.to]});
}

// Judges the speeds that the devices have agreed on with their switch.
void judge_devices(const Survey& survey, Findings& findings) {
  const std::map<Seat, Sent> all = devices_of(survey);
  const std::uint32_t usual = most_frequent(all, &Sent::device_mbps);
  for (const auto& [seat, sent] : all)
    if (sent.device_mbps != 0 && sent.device_mbps < usual)
      findings.warn(Check::kBandwidth, survey.names[seat], "",
                    {sent.device + " has agreed on " + std::to_string(sent.device_mbps) +
                         " Mbit/s with its switch, most " + "others on " + std::to_string(usual),
                     "try another cable (all eight wires, Cat 5e) and another port: ethtool " + sent.device});
}

}  // namespace

void judge_bandwidth(const Survey& survey, Findings& findings) {
  judge_devices(survey, findings);
  if (survey.seconds == 0) return;
  std::vector<Rate> all, slow, short_of_told;
  std::vector<double> rates;
  std::map<std::string, std::vector<std::string>> unmeasured;  // why: by whom
  for_links(survey, [&](Seat from, Seat to, const LinkFacts& link) {
    if (link.mbps > 0) {
      all.push_back({from, to, link.mbps});
      rates.push_back(link.mbps);
    } else if (!survey.parts[from].examination->busy.empty()) {
      std::vector<std::string>& by = unmeasured[survey.parts[from].examination->busy];
      if (by.empty() || by.back() != survey.names[from]) by.push_back(survey.names[from]);
    } else if (link.up && !link.unmeasured.empty()) {
      findings.fail(Check::kBandwidth, survey.names[from], survey.names[to],
                    {"from " + survey.names[from] + " to " + survey.names[to] + ": " + link.unmeasured,
                     "packets are lost, or the largest ones do not pass (mtu): ping -M do -s 1472 " + link.address +
                         " on " + survey.names[from]});
    }
  });
  for (const auto& [why, by] : unmeasured)
    findings.skip(Check::kBandwidth, by.size() == 1 ? by.front() : "",
                  "not measured by " + schema::joined(by) + ": " + why);
  const double usual = median(rates), told = survey.line_mbps * kPayloadShare;
  for (const Rate& rate : all) {
    // On one machine's loopback it is the processors that differ.
    const bool wire = link_of(survey, rate.from, rate.to)->device != "lo";
    if (wire && rate.mbps < kSlowShare * usual && rate.mbps < kGigabitPayloadMbps)
      slow.push_back(rate);
    else if (rate.mbps < kToldShare * told)
      short_of_told.push_back(rate);
  }
  name_slow(survey, std::move(slow), all, ", the median link carries " + mbit(usual), findings);
  name_slow(survey, std::move(short_of_told), all, "; a line of " + mbit(survey.line_mbps) + " carries " + mbit(told),
            findings);
  if (!all.empty())
    findings.pass(Check::kBandwidth, range_of(all) + " of payload on " + count(all.size(), "link") + ", " +
                                         mbit(usual) + " in the median");
  findings.not_looked(Check::kBandwidth, "not measured: no link is up");
}

}  // namespace tg::daemon
