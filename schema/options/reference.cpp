#include "schema/options/reference.h"

#include <string_view>

#include "schema/options/job.h"
#include "schema/options/node_config.h"
#include "schema/text.h"

namespace tg::schema {
namespace {

constexpr std::size_t kColumns = 80;

std::string comment(std::string_view text) {
  std::string lines;
  for (const std::string& line : wrap_text(text, kColumns - 2)) lines += "# " + line + "\n";
  return lines;
}

// A key without a default is commented out.
template <class Target>
std::string keys_of(const std::vector<Option<Target>>& table, const Target& defaults) {
  std::string text, group;
  for (const Option<Target>& row : table) {
    if (row.group != group) text += "\n# --- " + row.group + " ---\n";
    group = row.group;
    text += "\n" + comment(row.help);
    const std::string& values = row.allowed.empty() ? row.form : row.allowed;
    const std::string mark = row.resumable ? "tgctl resume may change it" : "";
    if (!values.empty() || !mark.empty())
      text += comment("(" + values + (values.empty() || mark.empty() ? "" : "; ") + mark + ")");
    const std::string value = row.get(defaults);
    text += (value.empty() ? "#" + row.name + " =" : row.name + " = " + value) + "\n";
  }
  return text;
}

}  // namespace

std::string job_reference() {
  return comment(
             "Every key of a job file, with its default: a key that is left out has the value shown here. "
             "tgctl start FILE --set KEY=VALUE overrides the file; tgctl resume RUN --set KEY=VALUE changes a run that "
             "has "
             "ended, where the key says so. This page is what tgctl help job prints.") +
         keys_of(job_options(), JobSpec());
}

std::string node_reference() {
  return comment(
             "Every key of a node's configuration, with its default. In a file as here, on tgd's command line as --KEY "
             "VALUE, in the environment as TGD_KEY (TGD_PEER_TIMEOUT); flags win over the environment, the environment "
             "over the file. This page is what tgctl help node prints.") +
         keys_of(node_options(), NodeConfig());
}

}  // namespace tg::schema
