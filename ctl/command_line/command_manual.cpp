// tgctl(1), made of the table.
#include <string>
#include <string_view>

#include "ctl/command_line/command_table.h"
#include "ctl/exit_code.h"
#include "schema/options/manual.h"

namespace tg::ctl {
namespace {

std::string tag_of(const OptionRow& option) {
  return (*option.letter == '\0' ? "" : "-" + std::string(option.letter) + ", ") + "--" + option.name +
         (*option.argument == '\0' ? "" : " ") + option.argument;
}

std::string tgctl_manual() {
  schema::Manual page("tgctl", 1, "start, watch and end training runs of a mesh of tgd nodes");
  page.heading("SYNOPSIS");
  page.paragraph("tgctl [--address HOST:PORT] [--key FILE] COMMAND [ARGUMENT]...");
  page.heading("DESCRIPTION");
  page.paragraph(
      "tgctl asks one node, and the answer covers all. Results go to stdout, messages to stderr. A run's id may be "
      "shortened to its beginning; each command says which run it takes where several match.");
  page.heading("COMMANDS");
  for (const VerbRow& row : verb_rows()) {
    page.subheading(std::string(row.name) + (*row.operand == '\0' ? "" : " ") + row.operand);
    page.paragraph(std::string(row.summary) + ".");
    if (*row.details != '\0') page.paragraph(row.details);
    for (const char* name : row.options)
      if (std::string_view(name) != "help" && std::string_view(name) != "address" && std::string_view(name) != "key")
        page.item(tag_of(option_row(name)), {option_row(name).help});
    page.example(std::string(row.examples[0]) + "\n" + row.examples[1] + "\n");
  }
  page.heading("OPTIONS OF EVERY COMMAND");
  for (const char* name : {"address", "key", "help"}) page.item(tag_of(option_row(name)), {option_row(name).help});
  page.heading("EXIT STATUS");
  for (const ExitMeaning& row : kExitMeanings) page.item(std::to_string(row.code), {row.meaning});
  page.heading("ENVIRONMENT");
  page.item("TGCTL_ADDRESS", {"The node to ask, if there is no --address: HOST:PORT of its control port (the one "
                              "above the mesh's), or the path of its local socket, STATE-DIR/control.sock."});
  page.item("TGCTL_KEY", {"The key file, if there is no --key."});
  page.see_also({"tgd(8)", "tgd.conf(5)", "tgd.job(5)"});
  return page.text();
}

struct Page {
  const char* name;
  std::string (*text)();
};
constexpr Page kPages[] = {{"tgctl", tgctl_manual},
                           {"tgd", schema::daemon_manual},
                           {"tgd.conf", schema::node_manual},
                           {"tgd.job", schema::job_manual}};

}  // namespace

const std::vector<std::string>& manual_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Page& page : kPages) all.emplace_back(page.name);
    return all;
  }();
  return names;
}

std::string manual_page(const std::string& name) {
  for (const Page& page : kPages)
    if (name == page.name) return page.text();
  return "";
}

}  // namespace tg::ctl
