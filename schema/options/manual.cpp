#include "schema/options/manual.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "schema/options/job.h"
#include "schema/options/node_config.h"
#include "schema/text.h"
#include "schema/version.h"

namespace tg::schema {
namespace {

constexpr std::size_t kColumns = 64;  // columns of a source line before escaping; man wants at most 80 afterwards

// Keeps dashes, quotes and the like as typed, so that text copied from a page works.
std::string escape(std::string_view line) {
  std::string text = line.starts_with('.') || line.starts_with('\'') ? "\\&" : "";
  for (const char c : line) {
    if (c == '\\')
      text += "\\e";
    else if (c == '-')
      text += "\\-";
    else if (c == '\'')
      text += "\\(aq";
    else if (c == '`')
      text += "\\(ga";
    else if (c == '^')
      text += "\\(ha";
    else if (c == '~')
      text += "\\(ti";
    else if (c == '"')
      text += "\\(dq";
    else
      text += c;
  }
  return text;
}

std::string wrapped(std::string_view paragraph) {
  std::string text;
  for (const std::string& line : wrap_text(paragraph, kColumns)) text += escape(line) + "\n";
  return text;
}

template <class Target>
void add_keys(Manual& page, const std::vector<Option<Target>>& table, const Target& defaults) {
  std::string group;
  for (const Option<Target>& row : table) {
    if (row.group != group) page.subheading(row.group);
    group = row.group;
    const std::string& values = row.allowed.empty() ? row.form : row.allowed;
    const std::string value = row.get(defaults);
    page.item(row.name, {row.help, values + (row.repeated ? ", repeated" : "") +
                                       "; default: " + (value.empty() ? "none" : value)});
  }
}

}  // namespace

Manual::Manual(const std::string& name, int section, std::string_view summary) {
  std::string title = name;
  std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
  text_ = ".TH " + title + " " + std::to_string(section) + " " + release_date() + " \"tgd " + release() + "\" tgd\n";
  heading("NAME");
  text_ += escape(name) + " \\- " + escape(summary) + "\n";
}

void Manual::heading(std::string_view title) {
  text_ += ".SH " + escape(title) + "\n";
  below_heading_ = true;
}

void Manual::subheading(std::string_view title) {
  text_ += ".SS " + escape(title) + "\n";
  below_heading_ = true;
}

// After a heading no command is needed: it begins a paragraph itself.
void Manual::begin_paragraph() {
  if (!std::exchange(below_heading_, false)) text_ += ".PP\n";
}

void Manual::paragraph(std::string_view text) {
  begin_paragraph();
  text_ += wrapped(text);
}

void Manual::item(std::string_view tag, const std::vector<std::string>& paragraphs) {
  below_heading_ = false;
  text_ += ".TP\n.B " + escape(tag) + "\n";
  for (std::size_t i = 0; i < paragraphs.size(); ++i) text_ += (i == 0 ? "" : ".br\n") + wrapped(paragraphs[i]);
}

void Manual::example(std::string_view lines) {
  begin_paragraph();
  text_ += ".nf\n.RS\n";
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    text_ += escape(lines.substr(0, end)) + "\n";
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  text_ += ".RE\n.fi\n";
}

void Manual::see_also(const std::vector<std::string>& pages) {
  heading("SEE ALSO");
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const std::size_t open = pages[i].find('(');
    text_ += ".BR " + escape(pages[i].substr(0, open)) + " " + pages[i].substr(open) +
             (i + 1 == pages.size() ? "" : ",") + "\n";
  }
}

std::string daemon_manual() {
  Manual page("tgd", 8, "node of a mesh that trains neural networks");
  page.heading("SYNOPSIS");
  page.paragraph("tgd --config FILE [--KEY VALUE]...");
  page.paragraph("tgd recompute DIR [--data-dir DIR] [--threads N]");
  page.paragraph("tgd simulate JOB --members N -o DIR [--set KEY=VALUE]...");
  page.heading("DESCRIPTION");
  page.paragraph(
      "One tgd runs on every machine of a mesh, and no machine is special. Together they train one network at a time, "
      "each on its part of every batch, and exchange ternary gradients. Runs are started and watched with tgctl, which "
      "can ask any node.");
  page.paragraph(
      "Every key of tgd.conf(5) may be given in the file, as an option here, or in the environment as TGD_KEY "
      "(TGD_PEER_TIMEOUT). Options override the environment, which overrides the file.");
  page.paragraph("The log goes to stderr, one line for each event.");
  page.paragraph(
      "tgd recompute is no node: it computes a run that tgctl fetch got, or a node's own, again with all its members "
      "in "
      "one process, and says whether it comes to the digest that is recorded.");
  page.paragraph(
      "tgd simulate computes a run of JOB with N members in one process, without a mesh. Its --help has all options.");
  page.heading("OPTIONS");
  for (const ProgramOption& option : program_options())
    page.item((*option.letter == '\0' ? "" : "-" + std::string(option.letter) + ", ") + "--" + option.name +
                  (*option.argument == '\0' ? "" : " ") + option.argument,
              {option.help});
  page.item("--KEY VALUE", {"Set a key of tgd.conf(5)."});
  page.heading("SIGNALS");
  page.item("SIGTERM, SIGINT, SIGHUP",
            {"Save the run's state, tell the peers, and end; where something is stuck, end without that after " +
             std::to_string(2 * kShutdownMs / 1000) + " s. SIGHUP is ignored under nohup."});
  page.heading("EXIT STATUS");
  page.item("0", {"It was told to end, and did."});
  page.item(
      "1", {"Something it needs is not there: a port, the state directory, memory, with engine = cuda a device; or its "
            "end was overdue."});
  page.item("2", {"The command line, the environment or the configuration is wrong. Starting it again does not help."});
  page.heading("ENVIRONMENT");
  page.item("TGD_CONFIG", {"The file to read, if there is no --config."});
  page.item("NOTIFY_SOCKET, WATCHDOG_USEC",
            {"Set by systemd for a service of Type=notify: tgd says when its ports are open, what it does, and that it "
             "goes on."});
  page.see_also({"tgctl(1)", "tgd.conf(5)", "tgd.job(5)"});
  return page.text();
}

std::string node_manual() {
  Manual page("tgd.conf", 5, "configuration of a node");
  page.heading("DESCRIPTION");
  page.paragraph(
      "One key = value per line; # begins a comment. A key that is left out has its default. tgd --config FILE "
      "--check-config says whether a file is in order. All nodes have the same peer lines.");
  page.heading("EXAMPLE");
  page.example(
      "node = node-a\n"
      "peer = node-a@10.0.0.1:7700\n"
      "peer = node-b@10.0.0.2:7700\n"
      "listen = 0.0.0.0\n"
      "key-file = /etc/tgd/cluster.key\n");
  page.heading("KEYS");
  add_keys(page, node_options(), NodeConfig());
  page.see_also({"tgd(8)", "tgctl(1)"});
  return page.text();
}

std::string job_manual() {
  Manual page("tgd.job", 5, "what a run of tgd does");
  page.heading("DESCRIPTION");
  page.paragraph(
      "A job file has one key = value per line; # begins a comment. A key that is left out has its default. tgctl "
      "start FILE --set KEY=VALUE overrides the file; --dry-run checks it.");
  page.heading("EXAMPLE");
  page.example(
      "model = lenet\n"
      "data = mnist\n"
      "data-dir = /srv/mnist\n"
      "global-batch = 64\n"
      "steps = 10000\n");
  page.heading("KEYS");
  add_keys(page, job_options(), JobSpec());
  page.see_also({"tgctl(1)", "tgd(8)"});
  return page.text();
}

}  // namespace tg::schema
