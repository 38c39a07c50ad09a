// Examines a node and its links on request, one examination at a time. Its checks have threads of their own, so that
// neither a resolver nor a disk that hangs keeps the node waiting; links are measured by the node's thread, in slots
// that all nodes count from the arrival of the request (schedule.h):
//
//   0 .. examine_checks_ms     names, ports, keys, disk, ...       link_checks.h, node_checks.h
//   then slot after slot       this node -> its partner, or back   frames and their acknowledgements (link_stream.h)
//   + kExamineGraceMs          a check that has not ended by then is reported as unfinished
//
// It draws no conclusions: diagnose.h does, at the asked node. Node's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/doctor/examination_progress.h"
#include "daemon/doctor/link_stream.h"
#include "daemon/mesh/mesh.h"
#include "kernels/base/status.h"
#include "schema/frame/frame.h"
#include "schema/options/node_config.h"

namespace tg::daemon {

class Examiner {
 public:
  struct Context {
    const schema::NodeConfig& config;
    const std::string& build;
    std::uint64_t threads;
    Mesh& mesh;
    schema::FramePool& pool;
  };
  using Answer = std::function<void(Result<schema::Examination>)>;

  explicit Examiner(const Context& context) : context_(context) {}

  // busy: why nothing that disturbs may be done, "" = it may. key: drawn, for the frames that measure links. Answers
  // once; at once where another examination is on.
  void examine(const schema::ExamineRequest& request, const std::string& busy, std::uint64_t key, Answer answer);
  bool measuring() const { return current_ && current_->request.seconds > 0 && current_->facts.busy.empty(); }
  void on_probe_reply(std::uint64_t key, Seat from, std::uint32_t number);
  void tick();
  // Links are not measured any further: a run begins, or the node ends.
  void stop_measuring(const std::string& why);

 private:
  struct Current {
    schema::ExamineRequest request;
    schema::NodeConfig config;  // with the peer lines of now, which number the nodes of this examination
    Answer answer;
    std::uint64_t key = 0;
    double began = 0;  // seconds of a steady clock
    std::shared_ptr<ExaminationProgress> progress;
    schema::Examination facts;        // those of the node's thread
    std::optional<std::size_t> slot;  // the last that began (schedule.h)
    std::optional<Seat> receiver;     // the peer that the slot measures the link to
    LinkStream stream;
    Per<Seat, double> mbps;
    Per<Seat, bool> was_down;  // when its slot began
  };
  Seat seat_of(Seat number) const;  // by its number in this examination
  void begin_slot(std::size_t slot, double now);
  void end_slot();
  void send(const LinkStream::Frames& frames);
  void finish();

  const Context context_;
  std::optional<Current> current_;
  std::weak_ptr<ExaminationProgress> last_;  // its threads may go on
};

}  // namespace tg::daemon
