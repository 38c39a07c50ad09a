// The frames of a view change (DESIGN.md, section 6b), with which the members of a view agree on the next one when one
// of them is lost. Their header has the view that is left. Values; frame.h, which includes this file, says what is
// checked.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "schema/described/rule.h"
#include "schema/limits.h"

namespace tg::schema {

// A member of a view. Seat and directory together identify a voter, which outlives the process.
struct ViewMember {
  std::uint32_t seat = 0;         // index among all nodes
  std::uint32_t since = 1;        // its first view as a member; the senior has the lowest
  std::uint16_t weight = 1;       // its share of a batch
  std::uint64_t incarnation = 0;  // its process's
  std::uint64_t directory = 0;    // drawn when its state directory was made
  std::uint64_t vote = 0;         // the number of its newest promise
  bool operator==(const ViewMember&) const = default;
};
void fields(Is<ViewMember> auto& it, auto&& field) {
  field("seat", it.seat, up_to(kMaxMembers - 1));
  field("since", it.since);
  field("weight", it.weight, between(1, kMaxWeight));
  field("incarnation", it.incarnation);
  field("directory", it.directory);
  field("vote", it.vote);
}

inline std::string order_error(const std::vector<ViewMember>& members) {
  for (std::size_t i = 1; i < members.size(); ++i)
    if (members[i - 1].seat >= members[i].seat) return "members that are out of order";
  return "";
}

// The decision about the view that follows that of the header.
inline constexpr std::uint32_t kMaxViews = 1u << 30;  // the number of a run's last view
struct NextView {
  std::uint32_t number = 0;
  std::vector<ViewMember> members = {};  // by seat, ascending; a member's rank is its index here
  std::uint64_t start = 0;               // committed steps of its first state
  bool waits = false;                    // pause before the first step: others may be about to leave as well
  std::string why = {};                  // the reason for the change, for people
  bool operator==(const NextView&) const = default;
};
void fields(Is<NextView> auto& it, auto&& field) {
  field("number", it.number, up_to(kMaxViews));
  field("members", it.members, list(kMaxMembers));
  field("start", it.start);
  field("waits", it.waits);
  field("why", it.why, line(kMaxReasonBytes));
}
inline std::string validation_error(const NextView& it) { return order_error(it.members); }

// The number of an attempt to decide, higher than all that its owner has used before. Count 0: none.
inline constexpr std::uint32_t kMaxBallots = 1u << 30;  // in one view change, with at most one a second
struct Ballot {
  std::uint32_t count = 0;
  std::uint32_t seat = 0;  // its owner
  auto operator<=>(const Ballot&) const = default;
};
void fields(Is<Ballot> auto& it, auto&& field) {
  field("count", it.count, up_to(kMaxBallots));
  field("seat", it.seat, up_to(kMaxMembers - 1));
}

// The sender has lost this member, or is ineligible itself.
struct Suspect {
  std::uint32_t seat = 0;
  std::string why;
};
void fields(Is<Suspect> auto& it, auto&& field) {
  field("seat", it.seat, up_to(kMaxMembers - 1));
  field("why", it.why, line(kMaxReasonBytes));
}

struct Prepare {
  Ballot ballot;
};
void fields(Is<Prepare> auto& it, auto&& field) { field("ballot", it.ballot); }

// The answer to Prepare: the sender commits nothing more in this view, and takes part in no lower ballot. With another
// directory than the member's it is none: the vote is lost, `unfit` says why, and all nodes get it, after an Accept
// too.
struct Promise {
  Ballot ballot;
  std::uint64_t directory = 0, incarnation = 0;  // the sender's; 0: its vote is lost, whatever its directory
  bool has_state = false;                        // it has the state of `step` in memory
  std::uint64_t step = 0;
  std::string unfit = {};                     // why it is ineligible for the next view; empty: eligible
  bool leaving = false;                       // it is being shut down
  std::vector<std::uint32_t> reachable = {};  // seats with frames both ways
  Ballot accepted_in = {};                    // the ballot of `accepted`; count 0: none
  NextView accepted = {};
  std::uint64_t vote = 0, votes_before = 0;  // the writes of the sender's vote, and those before its process began
};
void fields(Is<Promise> auto& it, auto&& field) {
  field("ballot", it.ballot);
  field("directory", it.directory);
  field("incarnation", it.incarnation);
  field("has_state", it.has_state);
  field("step", it.step);
  field("unfit", it.unfit, line(kMaxReasonBytes));
  field("leaving", it.leaving);
  field("reachable", it.reachable, list(kMaxMembers, up_to(kMaxMembers - 1)));
  field("accepted_in", it.accepted_in);
  field("accepted", it.accepted);
  field("vote", it.vote);
  field("votes_before", it.votes_before);
}

// The refusal of a Prepare or an Accept: the sender has promised this higher ballot.
struct Nack {
  Ballot ballot;
};
void fields(Is<Nack> auto& it, auto&& field) { field("ballot", it.ballot); }

struct Accept {
  Ballot ballot;
  NextView view;
};
void fields(Is<Accept> auto& it, auto&& field) {
  field("ballot", it.ballot);
  field("view", it.view);
}

struct Accepted {
  Ballot ballot;
  std::uint64_t directory = 0, incarnation = 0;  // the sender's
  std::uint64_t vote = 0, votes_before = 0;      // as in Promise
};
void fields(Is<Accepted> auto& it, auto&& field) {
  field("ballot", it.ballot);
  field("directory", it.directory);
  field("incarnation", it.incarnation);
  field("vote", it.vote);
  field("votes_before", it.votes_before);
}

// The decided view. A receiver that knows the sender as a member records it durably, passes it on, then installs it.
struct Decide {
  NextView view;
};
void fields(Is<Decide> auto& it, auto&& field) { field("view", it.view); }

}  // namespace tg::schema
