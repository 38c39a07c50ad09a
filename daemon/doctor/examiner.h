// Answers examine on the node: one examination at a time. Its checks have two threads of their own (names and ports;
// this machine), so that neither a resolver nor a disk that hangs keeps the node waiting; links are measured by the
// node's thread, in slots that all nodes count from when the question came (schedule.h):
//
//   0 .. examine_checks_ms     names, ports, keys, disk, ...       both threads
//   then slot after slot       this node -> its partner, or back   frames and their acknowledgements (link_stream.h)
//   + kExamineGraceMs          whatever has not ended by then is said to be unfinished
//
// It judges nothing: diagnose.h does, at the node that was asked. Node's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/doctor/link_stream.h"
#include "daemon/doctor/report.h"
#include "daemon/mesh/mesh.h"
#include "engine/compute_device.h"
#include "kernels/base/status.h"
#include "schema/frame/frame.h"
#include "schema/options/node_config.h"

namespace tg::daemon {

class Examiner {
 public:
  struct Patient {
    const schema::NodeConfig& config;
    const engine::ComputeDevice& compute;
    const std::string& build;
    std::uint64_t threads;
    Mesh& mesh;
    schema::FramePool& pool;
  };
  using Answer = std::function<void(Result<schema::Examination>)>;

  explicit Examiner(const Patient& patient) : patient_(patient) {}

  // busy: why nothing that disturbs may be done, "" = it may. key: drawn, of the frames that measure links. Answered
  // once, sooner or later; at once where another examination is on.
  void examine(const schema::ExamineRequest& request, const std::string& busy, std::uint64_t key, Answer answer);
  bool measuring() const { return current_ && current_->request.seconds > 0 && current_->facts.busy.empty(); }
  void on_probe_reply(std::uint64_t key, Seat from, std::uint32_t number);
  void tick();
  // A run begins, or a measurement: links are not measured any further.
  void give_way(const std::string& why);

 private:
  struct Current {
    schema::ExamineRequest request;
    Answer answer;
    std::uint64_t key = 0;
    double began = 0;  // seconds of a steady clock
    std::shared_ptr<Report> report;
    schema::Examination facts;        // what the node's thread knows itself
    std::optional<std::size_t> slot;  // that was begun last (schedule.h)
    std::optional<Seat> receiver;     // whom it measures the link to
    LinkStream stream;
    Per<Seat, double> mbps;
    Per<Seat, std::string> unmeasured;
  };
  void begin_slot(std::size_t slot, double now);
  void end_slot();
  void send(const LinkStream::Frames& frames);
  void finish();

  const Patient patient_;
  std::optional<Current> current_;
  std::weak_ptr<Report> last_;  // its threads may go on
};

}  // namespace tg::daemon
