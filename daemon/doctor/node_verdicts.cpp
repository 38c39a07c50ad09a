#include "daemon/doctor/node_verdicts.h"

#include <cmath>
#include <map>
#include <set>

#include "daemon/doctor/thresholds.h"
#include "kernels/base/hex.h"
#include "kernels/base/median.h"

namespace tg::daemon {

using schema::Check;
using schema::Examination;

namespace {

std::string names_in(const Examination& one) {
  std::vector<std::string> names;
  for (const schema::LinkFacts& link : one.links) names.push_back(link.peer);
  return schema::joined(names);
}

// Which nodes say what, the most frequent saying first.
class Sayings {
 public:
  void add(const std::string& saying, const std::string& node) {
    for (auto& [known, nodes] : all_)
      if (known == saying) return nodes.push_back(node);
    all_.push_back({saying, {node}});
  }
  bool agree() const { return all_.size() < 2; }
  struct Saying {
    std::string saying;
    std::vector<std::string> nodes;
  };
  const Saying& usual() { return sorted().front(); }
  std::vector<Saying> odd() { return {sorted().begin() + 1, all_.end()}; }

 private:
  std::vector<Saying>& sorted() {
    std::stable_sort(all_.begin(), all_.end(),
                     [](const Saying& a, const Saying& b) { return a.nodes.size() > b.nodes.size(); });
    return all_;
  }
  std::vector<Saying> all_;
};

void judge_peer_lines(const Survey& survey, Findings& findings) {
  Sayings names;
  for_examined(survey, [&](Seat seat, const Examination& one) {
    if (!one.links.empty()) names.add(names_in(one), survey.names[seat]);
  });
  if (!names.agree()) {
    for (const Sayings::Saying& odd : names.odd())
      findings.fail(Check::kConfiguration, odd.nodes.front(), "",
                    {"the peer lines of " + schema::joined(odd.nodes) + " name " + odd.saying + "; those of " +
                         schema::joined(names.usual().nodes) + " name " + names.usual().saying,
                     "give every node the same peer lines, and restart those that were changed"});
  }
  for (const Seat peer : survey.names.places()) {
    Sayings lines;
    for_examined(survey, [&](Seat seat, const Examination&) {
      if (const schema::LinkFacts* link = link_of(survey, seat, peer)) lines.add(link->line, survey.names[seat]);
    });
    if (lines.agree()) continue;
    for (const Sayings::Saying& odd : lines.odd())
      findings.warn(
          Check::kConfiguration, odd.nodes.front(), survey.names[peer],
          {"the peer line of " + survey.names[peer] + " says " + odd.saying + " on " + schema::joined(odd.nodes) +
               ", and " + lines.usual().saying + " on " + schema::joined(lines.usual().nodes),
           "give every node the same peer lines, and restart those that were changed"});
  }
}

// Names what the mesh refuses and no other check names. Wrong keys are named by the nodes that met them at the control
// port; the other links may have met them only in the mesh.
void judge_refusals(const Survey& survey, Findings& findings) {
  std::set<std::string> told;
  std::set<Seat> other_keys;
  for_examined(survey, [&](Seat seat, const Examination&) {
    for (const Seat peer : survey.names.places())
      if (const schema::LinkFacts* link = link_of(survey, seat, peer); link != nullptr && !link->refusal.empty())
        other_keys.insert(peer);
  });
  for_examined(survey, [&](Seat seat, const Examination& one) {
    for (const Seat peer : survey.names.places()) {
      const schema::LinkFacts* link = link_of(survey, seat, peer);
      if (link == nullptr || link->problem.empty() || link->waiting_helps) continue;
      if (other_keys.contains(peer)) continue;
      const std::optional<Examination>& other = survey.parts[peer].examination;
      if (other && (other->build != one.build || names_in(*other) != names_in(one))) continue;
      const bool of_builds = link->problem.find("builds differ") != std::string::npos;  // as the mesh says it
      if (told.insert(link->problem).second)
        findings.fail(of_builds ? Check::kVersions : Check::kConfiguration, survey.names[seat], survey.names[peer],
                      advice_of(link->problem));
    }
  });
}

}  // namespace

void judge_configuration(const Survey& survey, Findings& findings) {
  judge_peer_lines(survey, findings);
  judge_refusals(survey, findings);
  for_examined(survey, [&](Seat seat, const Examination& one) {
    if (!one.configuration.empty())
      findings.warn(Check::kConfiguration, survey.names[seat], "", advice_of(one.configuration));
  });
  findings.agree(Check::kConfiguration, count(examined(survey), "node") + " with the same peer lines");
}

void judge_versions(const Survey& survey, Findings& findings) {
  Sayings builds;
  for_examined(survey, [&](Seat seat, const Examination& one) {
    builds.add(one.build + " (protocol " + std::to_string(one.protocol) + ")", survey.names[seat]);
  });
  if (!builds.agree()) {
    for (const Sayings::Saying& odd : builds.odd())
      findings.fail(Check::kVersions, odd.nodes.front(), "",
                    {schema::joined(odd.nodes) + (odd.nodes.size() == 1 ? " runs " : " run ") + odd.saying + ", and " +
                         schema::joined(builds.usual().nodes) +
                         (builds.usual().nodes.size() == 1 ? " runs " : " run ") + builds.usual().saying,
                     "install one build everywhere and restart tgd; tgd --version shows a node's"});
    return;
  }
  findings.agree(Check::kVersions, "tgd " + builds.usual().saying);
}

// As NTP does: how far a node's clock was ahead while the question and the answer travelled.
void judge_clocks(const Survey& survey, Findings& findings) {
  std::map<Seat, double> ahead;  // of the asked node's, seconds
  std::vector<double> all;
  for_examined(survey, [&](Seat seat, const Examination& one) {
    const auto there = static_cast<double>(one.received_ms - one.asked_ms),
               back = static_cast<double>(one.answered_ms - survey.parts[seat].arrived_ms);
    ahead[seat] = seat == survey.self ? 0 : (there + back) / 2000;
    all.push_back(ahead[seat]);
  });
  // With two nodes, nobody knows whose clock is right; the asked node's is assumed to be.
  const double usual = all.size() > 2 ? median(all) : 0;
  double most = 0;
  for (const auto& [seat, seconds] : ahead) {
    const double off = seconds - usual;
    most = std::max(most, std::abs(off));
    if (std::abs(off) < kClockWarnSeconds) continue;
    const std::string others = all.size() > 2 ? "the others'" : survey.names[survey.self] + "'s";
    findings.add(Check::kClock, std::abs(off) < kClockFailSeconds ? schema::Verdict::kWarn : schema::Verdict::kFail,
                 survey.names[seat], "",
                 {"its clock is " + fixed(std::abs(off), 1) + " s " + (off > 0 ? "ahead of " : "behind ") + others +
                      ": which node failed first, the age of a run and the order of logs come out wrong",
                  "timedatectl set-ntp true on " + survey.names[seat] + ", or install chrony there"});
  }
  findings.agree(Check::kClock,
                 all.size() < 2 ? "one node" : "within " + fixed(std::max(most, 0.01), 2) + " s of each other");
}

namespace {

struct Owner {
  std::string node, directory, seen;
};

// "26 classes, 3,900 + 780 pictures", or the hash of a set that always has one size; both where both looked alike.
std::string difference(const Owner& one, std::uint64_t hash, const Owner& other) {
  if (one.seen.empty()) return hex_digest(hash);
  return one.seen + (one.seen == other.seen ? ", other names" : "");
}

void judge_set(const std::string& set, const Survey& survey, Findings& findings) {
  std::map<std::uint64_t, std::vector<Owner>> owners;
  std::vector<Owner> without;
  for_examined(survey, [&](Seat seat, const Examination& one) {
    const std::string& node = survey.names[seat];
    if (!one.busy.empty() || !one.unfinished.empty()) return;
    const auto found =
        std::find_if(one.data.begin(), one.data.end(), [&](const schema::DataFacts& data) { return data.set == set; });
    if (found == one.data.end())
      without.push_back({node, one.data_dir, ""});
    else if (!found->problem.empty())
      findings.fail(Check::kData, node, "", advice_of(found->problem));
    else
      owners[found->hash].push_back({node, one.data_dir, found->seen});
  });
  if (owners.empty()) return;
  const auto usual = std::max_element(owners.begin(), owners.end(),
                                      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const Owner& model = usual->second.front();
  for (const Owner& one : without)
    findings.fail(
        Check::kData, one.node, "",
        one.directory.empty()
            ? Advice{"it has no data-dir; " + model.node + " has " + set + " in " + model.directory,
                     "copy that folder to " + one.node + " and set data-dir there"}
            : Advice{"no " + set + " in " + one.directory + "; " + model.node + " has it in " + model.directory,
                     "copy it from there"});
  for (const auto& [hash, nodes] : owners) {
    if (hash == usual->first) continue;
    for (const Owner& one : nodes)
      findings.fail(Check::kData, one.node, "",
                    {"another " + set + " (" + difference(one, hash, model) + ", in " + one.directory + ") than " +
                         model.node + " (" + difference(model, usual->first, {}) + ")",
                     "copy the files of " + model.node + ", in " + model.directory + ", to " + one.node});
  }
}

}  // namespace

void judge_data(const Survey& survey, Findings& findings) {
  std::set<std::string> sets, seen;
  for_examined(survey, [&](Seat seat, const Examination& one) {
    if (!one.busy.empty() && !one.data_dir.empty())
      findings.skip(Check::kData, survey.names[seat], "not read: " + one.busy);
    for (const schema::DataFacts& data : one.data) {
      sets.insert(data.set);
      if (!data.seen.empty()) seen.insert(data.seen + " by their names");
    }
  });
  for (const std::string& set : sets) judge_set(set, survey, findings);
  for_examined(survey, [&](Seat seat, const Examination& one) {
    if (sets.empty() && !one.data_dir.empty() && one.busy.empty())
      findings.skip(Check::kData, survey.names[seat],
                    "nothing in " + one.data_dir +
                        " that is compared here (MNIST, CIFAR, pictures in a folder per class); a start compares "
                        "what its job reads");
  });
  if (sets.empty()) return findings.pass(Check::kData, "no node has a data-dir; synthetic data needs none");
  findings.agree(Check::kData, "the same " + schema::joined({sets.begin(), sets.end()}) + " everywhere" +
                                   (seen.empty() ? "" : " (" + schema::joined({seen.begin(), seen.end()}) + ")"));
}

namespace {

void judge_disk(const std::string& node, const Examination& one, Findings& findings) {
  if (!one.disk_problem.empty()) return findings.fail(Check::kDisk, node, "", advice_of(one.disk_problem));
  if (one.disk_free >= one.disk_need + kMinDiskBytes) return;
  findings.fail(
      Check::kDisk, node, "",
      {mebibytes_of(one.disk_free) + " free where its state-dir is; a run of LeNet with adam writes " +
           mebibytes_of(one.disk_need) + ", and " + mebibytes_of(kMinDiskBytes) + " should stay",
       "delete runs (tgctl list, tgctl delete RUN; keep-runs, keep-mib), or move state-dir to a larger disk"});
}

void judge_descriptors(const std::string& node, const Examination& one, Findings& findings) {
  const std::string raise = "raise the limit: LimitNOFILE=" + std::to_string(one.descriptors_need) +
                            " in the systemd unit, or ulimit -n " + std::to_string(one.descriptors_need) +
                            "; then restart tgd";
  if (one.descriptors < one.descriptors_need)
    findings.fail(Check::kDescriptors, node, "",
                  {std::to_string(one.descriptors) + " open files and connections are allowed, and this mesh needs " +
                       std::to_string(one.descriptors_need),
                   raise});
  else if (one.descriptors < one.descriptors_open + kMinFreeDescriptors)
    findings.fail(Check::kDescriptors, node, "",
                  {std::to_string(one.descriptors_open) + " of " + std::to_string(one.descriptors) +
                       " open files and connections are in use",
                   "who connects so often? ss -tn; or " + raise});
}

}  // namespace

void judge_hosts(const Survey& survey, Findings& findings) {
  std::uint64_t least_disk = UINT64_MAX, least_memory = UINT64_MAX, least_descriptors = UINT64_MAX;
  const Examination* any = nullptr;
  std::string tested;
  for_examined(survey, [&](Seat seat, const Examination& one) {
    const std::string& node = survey.names[seat];
    any = &one;
    judge_disk(node, one, findings);
    if (!one.memory_problem.empty()) findings.fail(Check::kMemory, node, "", advice_of(one.memory_problem));
    judge_descriptors(node, one, findings);
    if (!one.engine_problem.empty())
      findings.fail(Check::kEngine, node, "", advice_of(one.engine_problem));
    else if (one.engine.empty() && !one.busy.empty())
      findings.skip(Check::kEngine, node, "not tested: " + one.busy);
    else if (!one.engine.empty() && tested.find(one.engine) == std::string::npos)
      tested += (tested.empty() ? "" : " | ") + one.engine;
    least_disk = std::min(least_disk, one.disk_free);
    least_memory = std::min(least_memory, one.memory_left);
    least_descriptors = std::min(least_descriptors, one.descriptors);
  });
  findings.pass(Check::kDisk, mebibytes_of(least_disk) + " free at least; a run of LeNet with adam (" +
                                  "two checkpoints, one being written, what is fetched) writes " +
                                  mebibytes_of(any->disk_need));
  findings.pass(Check::kMemory,
                (least_memory == UINT64_MAX ? "no limit known" : mebibytes_of(least_memory) + " left at least") +
                    "; a run of LeNet with adam takes " + mebibytes_of(any->memory_need));
  findings.pass(Check::kDescriptors, std::to_string(least_descriptors) + " allowed at least, " +
                                         std::to_string(any->descriptors_need) + " needed");
  findings.pass(Check::kEngine, tested);
}

}  // namespace tg::daemon
