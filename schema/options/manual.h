// Manual pages made from the option tables, in the language that man(1) reads. `tgctl man PAGE` prints them, the build
// writes them beside the programs (ctl/CMakeLists.txt). Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"

namespace tg::schema {

// One page. Texts are plain: anything that man would take for a command is escaped, and lines are broken.
class Manual {
 public:
  // name: "tgd.conf"; section: 5; summary: the text after the name under NAME.
  Manual(const std::string& name, int section, std::string_view summary);
  void heading(std::string_view title);
  void subheading(std::string_view title);
  void paragraph(std::string_view text);
  // A bold tag with indented paragraphs below it.
  void item(std::string_view tag, const std::vector<std::string>& paragraphs);
  void example(std::string_view lines);  // printed as they are
  // The SEE ALSO section; pages are written like "tgd.conf(5)".
  void see_also(const std::vector<std::string>& pages);
  std::string text() const { return text_; }

 private:
  void begin_paragraph();

  std::string text_;
  bool below_heading_ = false;
};

std::string daemon_manual();  // tgd(8)
std::string node_manual();    // tgd.conf(5)
std::string job_manual();     // tgd.job(5)

}  // namespace tg::schema
