// The members of a view in one process: real Members, each with its Exchange and its Worker. Each has a Replica of its
// own, or rank 0 keeps the state of all: then the others exchange as ever and apply nothing (step/replica.h).
// Their frames are encoded, delivered in memory in the order in which they were sent, and decoded. No clock, socket or
// thread: the members take turns, so that the same view gives the same calls in the same order. Only their learning may
// be done elsewhere meanwhile, in which case the order of calls follows when it is done; the bits do not. The
// caller goes from view to view with the same nodes (daemon/simulate/recompute.h does).
//
//   run():  each member in turn: gradient | frame | task | idle time ... until all hold state `last`, confirmed
//
// Frames in flight are bounded by the members' credit, as on a mesh.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/exchange/layout.h"
#include "daemon/membership/view.h"
#include "daemon/step/member.h"
#include "daemon/step/replica.h"
#include "daemon/step/step_event.h"
#include "engine/engine.h"
#include "engine/model.h"
#include "kernels/base/status.h"
#include "kernels/codec_kernels.h"
#include "kernels/memory_array.h"
#include "kernels/memory_space.h"
#include "schema/frame/frame.h"
#include "schema/options/job.h"
#include "schema/place.h"
#include "schema/step.h"

namespace tg::daemon {

inline constexpr std::uint64_t kSimulatedWindowBytes = 256u << 10;  // to a peer: no link has to be kept busy

// What a node keeps from view to view, in the memory space that computes.
struct SimulatedNode {
  std::shared_ptr<Replica> replica;
  kernels::MemoryArray gradient;
};

// Another node that holds the same state, confirmed; without room for a best model.
Result<SimulatedNode> copy_of(const SimulatedNode& holder, kernels::MemorySpace& space, const engine::Model& model,
                              std::uint64_t seed);

// A node that keeps no state of its own.
SimulatedNode follower_of(const SimulatedNode& keeper, kernels::MemorySpace& space, const engine::Model& model);

// What learns for the members of a view. train() and evaluate() are called within the work that is given, for a member
// at a time; they may throw what an engine throws.
class SimulatedLearning {
 public:
  virtual ~SimulatedLearning() = default;
  // This member's gradient of that step, whole; ready: each bucket of the layout, in order.
  using Ready = std::function<void(GradientReady&&)>;
  virtual void train(Rank member, const Origin& of, const Layout& layout, kernels::ConstFloats parameters,
                     kernels::Floats gradient, const Ready& ready) = 0;
  // This member's part of the test data, with the state that it holds.
  virtual engine::EvaluationCounts evaluate(Rank member, const Replica& replica) = 0;

  // A member's work: done now, or on another thread beside that of other members. Whose is done is told once; waits:
  // for one at least.
  using Work = std::function<void()>;
  virtual void give(Rank member, const Work& work) {
    work();
    done_.push_back(member);
  }
  virtual std::vector<Rank> take_done(bool /*waits*/) { return std::exchange(done_, {}); }

 private:
  std::vector<Rank> done_;
};

class SimulatedView {
 public:
  struct Options {
    View view;
    Per<Seat, std::string> names;  // all nodes', by seat
    schema::JobSpec job;
    schema::Commit choice;           // any: the bits do not depend on it
    std::uint64_t global_batch = 0;  // the run's
    bool has_test_data = false;
    Step first, last;              // from this state to that one
    bool evaluates_first = false;  // the first state's evaluation is due
    BestEvaluation best = {};      // so far in the run
  };
  // What all members tell alike, as rank 0 tells it.
  struct Listeners {
    std::function<void(const Member::Committed&)> committed = [](const Member::Committed&) {};
    std::function<void(const Member::Evaluation&)> evaluated = [](const Member::Evaluation&) {};
  };
  // What the members use; outlives the view.
  struct Environment {
    const engine::Model& model;
    kernels::MemorySpace& space;
    const kernels::CodecKernels& codec;
    schema::FramePool& pool;
    SimulatedLearning& learning;
  };
  // nodes: the members', by rank; each holds the state of step `first`, confirmed, or is a follower of rank 0's.
  SimulatedView(Options options, const Environment& environment, Per<Rank, SimulatedNode*> nodes, Listeners listeners);
  ~SimulatedView();

  // An error is the first member's that failed.
  Status run();
  const std::string& why_completed() const;                 // before the run's last step; "" = it is not
  std::uint64_t sent_bytes() const { return sent_bytes_; }  // so far, by rank 0, each copy of a frame counted

  // What a member takes besides replica and gradient, in the host's memory.
  static std::uint64_t bytes_of_member(const schema::JobSpec& job, const engine::Model& model, std::size_t members,
                                       const schema::Commit& choice);

 private:
  class SimulatedMember;
  void deliver(Rank from, const std::vector<Seat>& to, const schema::SharedFrame& frame);
  bool first_goes_on();
  void give(Rank member, const SimulatedLearning::Work& work);
  bool take_done(bool waits);

  const Options options_;
  const Environment environment_;
  const Listeners listeners_;
  Per<Rank, std::unique_ptr<SimulatedMember>> members_;
  std::uint64_t sent_bytes_ = 0;
  std::size_t in_flight_ = 0;  // members whose work was given
};

}  // namespace tg::daemon
