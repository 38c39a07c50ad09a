// A virtual node that really trains: Membership, Exchange, Worker and Replica as the daemon wires them, view after
// view, every run frame through the wire's own encoding, drawn gradients (tiny_training.h) that become ready bucket by
// bucket after a while. Members use different kernels variants, as different machines would, and different numbers of
// helpers, whose tasks begin and end at any time.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "daemon/step/member.h"
#include "daemon/step/replica.h"
#include "daemon/step/snapshot.h"
#include "kernels/kernels.h"
#include "kernels/memory_array.h"
#include "schema/options/job.h"
#include "tests/simulation/simulator/virtual_node.h"

namespace tg::simulation {

// What goes wrong on one node, at a step.
struct Faults {
  std::optional<std::uint64_t> flip_bit;         // the lowest, of the first parameters of segment 2, before this step
  std::optional<std::uint64_t> not_a_number;     // in the gradient of segment 2
  std::optional<std::uint64_t> infinite;         // in the gradient of segment 0
  std::optional<std::uint64_t> odd_statistic;    // the variance of the second normalization is not finite
  std::optional<std::uint64_t> few_statistics;   // one less than the model has
  std::optional<std::uint64_t> other_statistic;  // the first one that it announces is not the one it takes itself
  std::optional<std::uint64_t> other_rate;       // the learning rate that it announces
  std::optional<std::uint64_t> bad_payload;      // its chunks lose their last byte
  std::uint64_t extra_compute_us = 0;            // every bucket of every step
};

class ExchangeNode : public VirtualNode, private daemon::Member::Delegate {
 public:
  ExchangeNode(Network& network, NodeOptions options, Faults faults = {});

  const daemon::Replica& replica() const { return *replica_; }
  bool has_state() const { return replica_ != nullptr; }
  std::uint64_t committed_steps() const { return replica_ ? replica_->committed_rounds().value() : 0; }
  kernels::MemorySpace& space() const { return *space_; }
  std::uint64_t digest() const;
  // The digest of every state that it has confirmed, by step; of a view's first one as well.
  const std::map<std::uint64_t, std::uint64_t>& confirmed_digests() const { return confirmed_digests_; }
  std::uint64_t undone() const { return undone_; }
  std::uint64_t cut_short() const { return cut_short_; }  // views that ended in a step
  double last_loss() const { return last_loss_; }
  std::uint64_t next_step_frames() const { return next_step_frames_; }  // they came while this member was a step back
  std::uint64_t helped_tasks() const { return helped_tasks_; }
  const schema::JobSpec& job() const { return job_; }

 protected:
  void run_begins(const schema::Commit& choice) override;
  void run_frame(Seat from, const SharedMessage& message) override;
  void run_asked_to_stop() override;
  void run_ends() override;
  State held() const override { return {committed_steps(), digest()}; }
  Sealed seal_run() override;
  void run_changes(const schema::NextView& next) override;
  void run_is_left(std::uint64_t start) override;
  void run_quiesces() override;
  schema::SnapshotOffer run_offers_snapshot() override;
  void run_sends_snapshot(Seat to, const schema::SnapshotRequest& want) override;
  void run_is_released() override;
  void run_receives_snapshot(const daemon::ReceiveSnapshot& action) override;
  void run_is_joined(const schema::NextView& next, const schema::Commit& choice) override;
  void run_tick() override {}
  bool run_is_prepared() const override { return member_ != nullptr; }
  schema::Vote prepare_run(const daemon::RunIdentity& run, const daemon::View& view) override;

 private:
  // Member::Delegate
  void send(const std::vector<Seat>& to, const schema::SharedFrame& frame) override;
  void train(Step step, const daemon::Layout& layout, kernels::ConstFloats parameters, bool early) override;
  void segment_ready(std::size_t) override {}
  void evaluate(Step step) override;
  void reached(schema::Phase phase, Step step) override;
  void confirmed(Step step, bool checkpoint) override;
  void step_begins(Step step) override;
  // A drawn gradient has no use for parameters: the step is computed when the one before is committed.
  bool may_start_early(Step) override { return false; }
  void committed(const daemon::Member::Committed& committed) override;

  void make_member(const daemon::RunIdentity& run, const daemon::View& view, std::uint64_t first_step);
  void begin_view();
  void rebuild(const schema::NextView& next);
  void ask_for_slices();
  void fails_to_join(const std::string& why);
  void take_slice(Seat from, const schema::FrameHeader& header, const schema::SnapshotChunk& slice);
  void install(std::uint64_t start);
  void ready(const daemon::Origin& of, std::size_t bucket);
  void help(daemon::Task task);
  bool trains(std::uint64_t key, std::uint32_t view) const {
    return running_key() == key && !ended_ && member_ && member_->members().view.number() == view;
  }
  void settle();

  const kernels::Kernels& kernels_;
  const std::unique_ptr<kernels::MemorySpace> space_;
  const std::unique_ptr<kernels::TensorKernels> tensors_;
  const Faults faults_;
  schema::FramePool pool_;
  schema::JobSpec job_;
  std::unique_ptr<daemon::Replica> replica_;
  std::unique_ptr<daemon::Member> member_;
  std::unique_ptr<daemon::Worker> helper_;  // for all helpers: they never run at the same time here
  const std::size_t helpers_;
  std::size_t helped_ = 0;  // tasks in flight with them
  AlignedArray<float> drawn_;
  kernels::MemoryArray gradient_;
  std::unique_ptr<daemon::SnapshotSource> snapshot_source_;
  std::unique_ptr<daemon::SnapshotSink> snapshot_sink_;
  Seat donor_;
  std::uint32_t donors_view_ = 0;
  bool ended_ = false, told_ = false;  // the run has ended; this view's failure has been told
  std::uint64_t global_batch_ = 0;
  schema::Commit choice_;
  std::map<std::uint64_t, std::uint64_t> confirmed_digests_;
  std::uint64_t undone_ = 0;
  std::uint64_t cut_short_ = 0;
  double last_loss_ = 0;
  std::uint64_t next_step_frames_ = 0, helped_tasks_ = 0;
};

}  // namespace tg::simulation
