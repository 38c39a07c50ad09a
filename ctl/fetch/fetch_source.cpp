#include "ctl/fetch/fetch_source.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "kernels/base/hex.h"

namespace tg::ctl {
namespace {

using schema::MemberStatus;
using schema::RunStatus;

// Whether the member can provide the state that it reports.
bool answers(const MemberStatus& member) {
  return member.digest != 0 && (member.save == schema::SaveState::kNone || schema::has_state(member.save));
}

std::string describe(const MemberStatus& member) {
  if (member.digest != 0 && !answers(member)) return member.node + " has not saved its state";
  if (!answers(member)) return member.node + " reports no state";
  return member.node + " has " + hex_digest(member.digest) + " at step " + std::to_string(member.digest_step);
}

// The most common state; among equally common ones, the furthest.
std::pair<std::uint64_t, std::uint64_t> common_state(const RunStatus& run) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> counts;  // (step, digest)
  for (const MemberStatus& member : run.members) {
    if (answers(member)) ++counts[{member.digest_step, member.digest}];
  }
  std::pair<std::uint64_t, std::uint64_t> best{};
  std::size_t max = 0;
  for (const auto& [state, count] : counts) {
    if (count < max) continue;
    max = count;
    best = state;
  }
  return best;
}

Result<FetchSource> agreed_source(const RunStatus& run) {
  const auto common = common_state(run);
  FetchSource source;
  source.step = common.first;
  source.digest = common.second;
  std::string odd;
  std::string silent;
  for (const MemberStatus& member : run.members) {
    if (!answers(member)) {
      silent += (silent.empty() ? "" : ", ") + member.node;
    } else if (!schema::has_ended(member.state)) {
      return Error{ErrorKind::kRefused, member.node + " is still " + std::string(to_word(member.state)) + " in run " +
                                            run.id + "; try again when it has ended there"};
    } else if (std::pair(member.digest_step, member.digest) != common) {
      odd += (odd.empty() ? "" : ", ") + describe(member);
    } else {
      source.nodes.push_back(member.node);
    }
  }
  if (!odd.empty()) {
    return Error{ErrorKind::kFailed, "the members of run " + run.id + " do not agree: most have " +
                                         hex_digest(common.second) + " at step " + std::to_string(common.first) +
                                         ", but " + odd + ". Nothing was fetched"};
  }
  if (source.nodes.empty())
    return Error{ErrorKind::kFailed, "no reachable member has the state of run " + run.id + "; missing: " + silent +
                                         ". Is tgd running there? tgctl status " + run.id + " says more"};
  if (!silent.empty()) source.notes.push_back(silent + " has no copy, or did not answer; it was not compared");
  return source;
}

Result<FetchSource> furthest_source(const RunStatus& run) {
  const MemberStatus* best = nullptr;
  for (const MemberStatus& member : run.members) {
    if (answers(member) && (best == nullptr || member.digest_step > best->digest_step)) best = &member;
  }
  if (best == nullptr) {
    return Error{ErrorKind::kFailed, "no reachable member of run " + run.id + " has a committed state of it"};
  }
  FetchSource source{{}, best->digest_step, best->digest, {"taking the furthest state: " + describe(*best)}};
  for (const MemberStatus& member : run.members) {
    if (member.digest == best->digest && member.digest_step == best->digest_step) {
      source.nodes.push_back(member.node);
    } else {
      source.notes.push_back("not taken: " + describe(member));
    }
  }
  return source;
}

}  // namespace

Result<FetchSource> choose_fetch_source(const RunStatus& run, const std::string& asked, bool partial) {
  if (!schema::has_ended(run.state)) {
    return Error{ErrorKind::kRefused, "run " + run.id + " is " + std::string(to_word(run.state)) + " at step " +
                                          std::to_string(run.step) + "; fetch works once it has ended: tgctl wait " +
                                          run.id + ", or tgctl stop " + run.id};
  }
  std::set<std::string> names;
  for (const MemberStatus& member : run.members)
    if (!names.insert(member.node).second)
      return Error{ErrorKind::kCorrupt, "the node's reply has two members named " + member.node + " in run " + run.id +
                                            "; nothing was fetched. Ask another node (--address)"};
  if (run.members.empty()) return Error{ErrorKind::kFailed, "run " + run.id + " has no members to fetch from"};
  if (run.state == schema::RunState::kFailed && !partial) {
    return Error{ErrorKind::kRunFailed,
                 "run " + run.id + " FAILED at step " + std::to_string(run.step) +
                     "; --partial fetches its last committed state. It failed because: " + run.reason};
  }
  if (run.state == schema::RunState::kInterrupted && !partial) {
    return Error{ErrorKind::kRefused, "run " + run.id + " is INTERRUPTED at step " + std::to_string(run.step) +
                                          "; --partial fetches its newest state, and tgctl resume " + run.id +
                                          " continues it"};
  }
  Result<FetchSource> source = schema::is_authoritative(run.state) ? agreed_source(run) : furthest_source(run);
  if (source)
    std::stable_partition(source->nodes.begin(), source->nodes.end(),
                          [&](const std::string& node) { return node == asked; });
  return source;
}

}  // namespace tg::ctl
