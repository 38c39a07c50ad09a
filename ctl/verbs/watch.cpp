// The live view of `status --watch`: asks each second, and handles keys also while it waits for an answer.
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
constexpr int kMaxLogSlices = 4;                       // per refresh of a log
constexpr std::uint64_t kMaxHistoryBytes = 16u << 20;  // metrics read for a run's history

class LiveView {
 public:
  LiveView(Client& client, std::string run) : client_(client), run_(std::move(run)) {}

  // Returns an error that ends the view. A node that does not answer is one only at the beginning.
  Status ask() {
    Result<schema::MeshStatus> mesh = run_.empty() ? client_.ask_for<schema::MeshStatus>(schema::StatusRequest{})
                                                   : ask_mesh(client_, run_, schema::Pick::kNewest);
    facts_.now_ms = unix_time_ms();
    if (mesh) {
      if (!run_.empty()) run_ = mesh->runs.front().id;
      facts_.update(*std::move(mesh));
      return {};
    }
    const ErrorKind kind = mesh.error().kind;
    if (facts_.mesh_ms == 0 || kind == ErrorKind::kForbidden || kind == ErrorKind::kNotFound) return mesh.error();
    facts_.error = mesh.error().message;
    return {};
  }

  Status show(Terminal& terminal) {
    client_.set_wait_callback([&] { return turn(terminal, 0); });
    Status asked;
    while (asked && wait_for_next(terminal)) {
      asked = ask();
      if (asked && log_due()) fetch_log();
      if (asked && facts_.error.empty()) fetch_history();
    }
    client_.set_wait_callback({});
    return over(terminal) ? Status() : asked;
  }

 private:
  bool over(const Terminal& terminal) const { return view_.quit || interrupted() || terminal.ended_by() != 0; }

  // The log does not change while the user scrolls.
  bool log_due() const { return view_.page == Page::kLog && view_.scroll == 0; }

  bool wait_for_next(Terminal& terminal) {
    const Steady::time_point next = Steady::now() + kAskEvery;
    while (turn(terminal, remaining_ms(next))) {
      if (log_due() && facts_.log.run != view_.run) fetch_log();
      if (Steady::now() >= next) return true;
    }
    return false;
  }

  // Draws, and handles pending keys. Returns false once the view has ended.
  bool turn(Terminal& terminal, int wait_ms) {
    terminal.measure(view_);
    facts_.now_ms = unix_time_ms();
    terminal.draw(screen(facts_, view_));
    for (int key = terminal.key(wait_ms); key != kNoKey && !over(terminal); key = terminal.key(0))
      on_key(key, facts_, view_);
    return !over(terminal);
  }

  // Reads the shown run's metrics once. They may not be written yet, or too large, so it tries some times; without them
  // the curves begin now.
  void fetch_history() {
    const schema::RunStatus* const shown = chosen_run(facts_, view_);
    if (shown == nullptr) return;
    const schema::RunStatus run = *shown;  // a key may choose another one meanwhile
    int& asks = facts_.histories[run.id].history_tries;
    if (asks == kMaxHistoryTries) return;
    ++asks;
    RunSource source(client_, run.id, RunSource::choose_node(facts_.mesh.node, run));
    if (source.read_metrics(kMaxHistoryBytes)) facts_.add_history(run.id, source.curves());
  }

  void fetch_log() {
    if (facts_.log.run != view_.run) facts_.log = {.run = view_.run};
    const std::string run = view_.run;
    for (int i = 0; i < kMaxLogSlices; ++i) {
      const Result<schema::SliceReply> slice =
          client_.ask_for<schema::SliceReply>(schema::LogsRequest{run, "", facts_.log.offset});
      if (!slice) facts_.log.problem = slice.error().message;
      if (!slice || !facts_.log.add(*slice)) return;
    }
  }

  Client& client_;
  std::string run_;  // the only run that is shown; "" = all
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
