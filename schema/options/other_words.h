// What people write who know other programs, and what it is here. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tg::schema {

struct OtherWord {
  std::string_view meant;  // our word, or a clause that says what there is instead
  std::string_view words;  // what others call it, with spaces between
};
using OtherWords = std::span<const OtherWord>;

// "" if nothing is known of the word.
std::string meant_by(std::string_view word, OtherWords rows);
// The same for the name of a job's key, with _ as -; a key of the node's configuration is known, too.
std::string job_key_meant(std::string_view name);
// "; " and the clause; "" if there is none.
inline std::string other_way(const std::string& clause) { return clause.empty() ? "" : "; " + clause; }

}  // namespace tg::schema
