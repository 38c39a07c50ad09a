// Chooses the state that a run resumes from, and the members. Pure; the proposer decides it with all offers.
//
// States are ordered by (lineage, view, step): after a resume from an earlier state the newer one has fewer steps. The
// choice is the newest state that all participants have; but if some of them continued in a later view, it is the
// newest that all of those have, or, if those share none of that view, the newest of all. Those that have it are the
// members; the others join the run later (admission.h), and so does a node that knows nothing of the run. With
// from_step it is the newest of that step, which all must have. An automatic resume requires all members of the newest
// view that any participant knows: if there was a later view, one of them would know it. A person may resume with
// fewer. A state has one digest: if two members' differ nothing is chosen and both are named; older states remain for
// from_step. Without joins (join-limit = 0) all nodes resume or none; then an automatic resume does not go back to the
// run's beginning if some continued without the others: that would give up all their steps.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "kernels/base/status.h"
#include "schema/frame/frame.h"
#include "schema/options/node_list.h"
#include "schema/place.h"

namespace tg::daemon {

// Why no state is chosen. node: "" if it concerns all.
struct StateRefusal {
  std::string node;
  Error error;
};
struct ResumePoint {
  schema::StateId state;
  std::vector<Seat> members;       // the nodes that have it, by seat
  std::vector<std::string> names;  // by seat in the run, as the newest view has them; empty: no node knows a view
};
using ChosenState = std::variant<ResumePoint, StateRefusal>;

struct ResumePolicy {
  bool unasked = false;  // an automatic resume
  bool joins = true;     // a node without the state can join later
};
// offers: by seat; only those of `nodes` count.
ChosenState choose_state(const std::string& run_id, const schema::Resume& asked, const std::vector<Seat>& nodes,
                         const Per<Seat, schema::Offer>& offers, const schema::NodeList& names,
                         const ResumePolicy& how = {});

}  // namespace tg::daemon
