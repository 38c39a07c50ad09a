// The rules by name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/plain/rule.h"

namespace tg::plain {

struct RuleOptions {
  std::size_t members = 1;
  std::uint64_t steps = 0;  // the whole run's
};
struct NamedRule {
  std::string name;
  std::function<std::unique_ptr<Rule>(const RuleOptions&)> make;
};
const std::vector<NamedRule>& rules();
// Null: there is none.
std::unique_ptr<Rule> make_rule(const std::string& name, const RuleOptions& options);

}  // namespace tg::plain
