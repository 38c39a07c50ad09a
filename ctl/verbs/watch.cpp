// The live view of `status --watch`: asks each second, and takes keys also while an answer is waited for.
#include <chrono>
#include <optional>
#include <utility>

#include "ctl/report/run_source.h"
#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/verbs.h"
#include "ctl/watch/terminal.h"
#include "kernels/base/log.h"
#include "kernels/base/now.h"

namespace tg::ctl {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kAskEvery{1000};
constexpr int kMaxLogSlices = 4;                    // of one look at a log
constexpr std::uint64_t kMaxPastBytes = 16u << 20;  // of metrics

class LiveView {
 public:
  LiveView(Client& client, std::string run) : client_(client), run_(std::move(run)) {}

  // An error that ends the view; that nobody answers is one only at the beginning.
  Status ask() {
    Result<schema::MeshStatus> mesh = run_.empty() ? client_.ask_for<schema::MeshStatus>(schema::StatusRequest{})
                                                   : ask_mesh(client_, run_, schema::Pick::kNewest);
    facts_.now_ms = unix_time_ms();
    if (mesh) {
      if (!run_.empty()) run_ = mesh->runs.front().id;
      facts_.take(*std::move(mesh));
      return {};
    }
    const ErrorKind kind = mesh.error().kind;
    if (facts_.mesh_ms == 0 || kind == ErrorKind::kForbidden || kind == ErrorKind::kNotFound) return mesh.error();
    facts_.trouble = mesh.error().message;
    return {};
  }

  Status show(Terminal& terminal) {
    client_.while_waiting([&] { return turn(terminal, 0); });
    Status asked;
    while (asked && wait_for_next(terminal)) {
      asked = ask();
      if (asked && log_due()) ask_log();
      if (asked && facts_.trouble.empty()) ask_past();
    }
    client_.while_waiting({});
    return over(terminal) ? Status() : asked;
  }

 private:
  bool over(const Terminal& terminal) const { return view_.quit || interrupted() || terminal.ended_by() != 0; }

  // What is scrolled through stands still.
  bool log_due() const { return view_.page == Page::kLog && view_.scroll == 0; }

  bool wait_for_next(Terminal& terminal) {
    const Steady::time_point next = Steady::now() + kAskEvery;
    while (turn(terminal, remaining_ms(next))) {
      if (log_due() && facts_.log.run != view_.run) ask_log();
      if (Steady::now() >= next) return true;
    }
    return false;
  }

  // Takes the keys that came, and draws; false once the view is over.
  bool turn(Terminal& terminal, int wait_ms) {
    terminal.measure(view_);
    facts_.now_ms = unix_time_ms();
    terminal.draw(screen(facts_, view_));
    for (int key = terminal.key(wait_ms); key != kNoKey && !over(terminal); key = terminal.key(0))
      press(key, facts_, view_);
    return !over(terminal);
  }

  // Of each run that is looked at, until it is there: its first lines may not be written yet. What cannot be read, or
  // is too long, is left out after some tries: then its curves begin here.
  void ask_past() {
    const schema::RunStatus* const shown = chosen_run(facts_, view_);
    if (shown == nullptr) return;
    const schema::RunStatus run = *shown;  // keys, taken meanwhile, may choose another one
    int& asks = facts_.courses[run.id].past_asks;
    if (asks == kMaxPastAsks) return;
    ++asks;
    RunSource source(client_, run.id, RunSource::node_of(facts_.mesh.node, run));
    if (source.read_metrics(kMaxPastBytes)) facts_.take_past(run.id, source.curves());
  }

  void ask_log() {
    if (facts_.log.run != view_.run) facts_.log = {.run = view_.run};
    const std::string run = view_.run;
    for (int i = 0; i < kMaxLogSlices; ++i) {
      const Result<schema::SliceReply> slice =
          client_.ask_for<schema::SliceReply>(schema::LogsRequest{run, "", facts_.log.offset});
      if (!slice) facts_.log.problem = slice.error().message;
      if (!slice || !facts_.log.take(*slice)) return;
    }
  }

  Client& client_;
  std::string run_;  // the only one that is asked for; "" = all
  Facts facts_;
  View view_;
};

}  // namespace

int watch(Client& client, const std::string& run) {
  LiveView view(client, run);
  if (const Status asked = view.ask(); !asked) return fail(asked.error());
  std::optional<Terminal> terminal(std::in_place);
  const Status shown = view.show(*terminal);
  const int ended_by = terminal->ended_by();
  terminal.reset();
  if (ended_by != 0) std::raise(ended_by);
  if (!shown) return fail(shown.error());
  return interrupted() ? kInterrupted : kOk;
}

}  // namespace tg::ctl
