// The findings of a diagnosis as they are made, and the words that its checks share. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "daemon/doctor/survey.h"
#include "schema/text.h"

namespace tg::daemon {

struct Advice {
  std::string seen, fix;
};
// "what is wrong; what to do", as errors and problems are written.
inline Advice advice_of(const std::string& sentence) {
  const std::size_t at = sentence.find("; ");
  if (at == std::string::npos) return {sentence, ""};
  return {sentence.substr(0, at), sentence.substr(at + 2)};
}

class Findings {
 public:
  explicit Findings(const Survey& survey) : nodes_(survey.names.size()) {
    for (const Seat seat : survey.parts.places())
      if (!survey.parts[seat].examination) unexamined_.push_back(survey.names[seat]);
  }
  void add(schema::Check check, schema::Verdict verdict, std::string node, std::string peer, Advice advice) {
    all_.push_back({check, verdict, std::move(node), std::move(peer), std::move(advice.seen), std::move(advice.fix)});
  }
  void fail(schema::Check check, std::string node, std::string peer, Advice advice) {
    add(check, schema::Verdict::kFail, std::move(node), std::move(peer), std::move(advice));
  }
  void warn(schema::Check check, std::string node, std::string peer, Advice advice) {
    add(check, schema::Verdict::kWarn, std::move(node), std::move(peer), std::move(advice));
  }
  void skip(schema::Check check, std::string node, std::string why) {
    add(check, schema::Verdict::kSkipped, std::move(node), "", {std::move(why), ""});
  }
  // Adds a pass of what was looked at, unless this check has found something else.
  void pass(schema::Check check, std::string seen) {
    if (!unexamined_.empty()) seen += "; not examined: " + schema::joined(unexamined_);
    if (!has(check)) add(check, schema::Verdict::kPass, "", "", {std::move(seen), ""});
  }
  // The same of what nodes are compared by: one node alone agrees with nobody.
  void agree(schema::Check check, std::string seen) {
    if (nodes_ < 2 || unexamined_.size() + 1 < nodes_) return pass(check, std::move(seen));
    if (!has(check)) skip(check, "", "not compared: no other node was examined, see nodes");
  }
  // Where a check has nothing to say of links that it could not look at.
  void not_looked(schema::Check check, const std::string& why) {
    if (nodes_ > 1 && !has(check)) skip(check, "", why);
  }
  std::vector<schema::Finding> take() { return std::move(all_); }

 private:
  bool has(schema::Check check) const {
    return std::any_of(all_.begin(), all_.end(), [check](const schema::Finding& one) { return one.check == check; });
  }

  const std::size_t nodes_;
  std::vector<std::string> unexamined_;
  std::vector<schema::Finding> all_;
};

inline std::string count(std::size_t number, const std::string& thing) {
  return std::to_string(number) + " " + thing + (number == 1 ? "" : "s");
}

inline std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

inline std::string mbit(double mbps) { return fixed(mbps, mbps < 100 ? 1 : 0) + " Mbit/s"; }
inline std::string mebibytes_of(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// Calls visit(Seat, const Examination&) for every node that was examined.
template <class Visit>
void for_examined(const Survey& survey, Visit visit) {
  for (const Seat seat : survey.parts.places())
    if (survey.parts[seat].examination) visit(seat, *survey.parts[seat].examination);
}

inline std::size_t examined(const Survey& survey) {
  std::size_t number = 0;
  for_examined(survey, [&](Seat, const schema::Examination&) { ++number; });
  return number;
}

// What this node says of its way to that peer; null where it was not examined, or knows no such peer.
inline const schema::LinkFacts* link_of(const Survey& survey, Seat from, Seat to) {
  if (!survey.parts[from].examination) return nullptr;
  for (const schema::LinkFacts& link : survey.parts[from].examination->links)
    if (link.peer == survey.names[to]) return &link;
  return nullptr;
}

}  // namespace tg::daemon
