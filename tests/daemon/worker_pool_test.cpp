// An exchange on real threads: members in one process, each with its helpers, against the plain reference, bit for bit.
#include "daemon/step/threads/worker_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <semaphore>

#include "daemon/step/member.h"
#include "kernels/memory_array.h"
#include "tests/simulation/simulator/awkward_memory.h"
#include "tests/simulation/training/tiny_training.h"

namespace tg::daemon {
namespace {

using simulation::tiny_segment_names;
using simulation::tiny_segments;

constexpr std::uint64_t kRun = 77;
constexpr std::chrono::seconds kPatience{60};

// Calls of any thread, carried out by the one that takes them.
class Calls {
 public:
  void post(std::function<void()> call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
    changed_.notify_one();
  }
  std::function<void()> take(bool wait) {
    std::unique_lock lock(mutex_);
    if (wait && !changed_.wait_for(lock, kPatience, [this] { return !calls_.empty(); })) return nullptr;
    if (calls_.empty()) return nullptr;
    std::function<void()> call = std::move(calls_.front());
    calls_.pop_front();
    return call;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> calls_;
};

std::atomic<std::uint64_t> updates_of_payloads{0};  // from all other members' codes
std::atomic<std::uint64_t> caller_measured{0};      // slices, on the thread that the pool is asked to work by
thread_local bool is_caller = false;

// Threads that measure wait here while it is closed.
class Gate {
 public:
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    closed_ = false;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++before_it_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !closed_; });
    --before_it_;
  }
  bool wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [this, count] { return before_it_ == count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  std::size_t before_it_ = 0;
};
Gate gate;

const kernels::Kernels& counting_kernels() {
  static const kernels::Kernels counting = [] {
    kernels::Kernels table = *kernels::available().front();
    table.statistics = [](std::span<const float> gradient) {
      gate.pass();
      if (is_caller) ++caller_measured;
      return kernels::available().front()->statistics(gradient);
    };
    table.apply_codes = [](const kernels::Update& update, const kernels::Received& received,
                           kernels::ConstStateSpan from, kernels::StateSpan to) {
      if (received.planes.size() == 1 && !received.payloads.empty()) ++updates_of_payloads;
      return kernels::available().front()->apply_codes(update, received, from, to);
    };
    return table;
  }();
  return counting;
}

struct Node : Member::Delegate {
  using Nodes = Per<Seat, std::unique_ptr<Node>>;

  Node(const schema::JobSpec& spec, Seat seat, std::size_t count, Calls& calls_of_all, Nodes& nodes,
       std::unique_ptr<kernels::MemorySpace> lives_in = simulation::space_under_test(counting_kernels()))
      : job(spec),
        self(seat),
        calls(calls_of_all),
        all(nodes),
        space(std::move(lives_in)),
        tensors(space->make_kernels()),
        replica(*space, simulation::tiny_model(), engine::slot_count(optimizer_of(job).kind), job.seed,
                keeps_average(job)),
        drawn(tiny_segments().padded_count()),
        gradient(*space, tiny_segments().padded_count()) {
    Per<Seat, std::string> names;
    for (std::size_t i = 0; i < count; ++i) names.push_back("node-" + std::to_string(i));
    member = std::make_unique<Member>(
        Member::Options{kRun, View::of_all(count), self, names, job, false, schema::resolved_global_batch(job, count)},
        simulation::tiny_model(), *this);
  }
  void send(const std::vector<Seat>& to, const schema::SharedFrame& frame) override {
    for (const Seat seat : to)
      calls.post([this, seat, frame] {
        const schema::Frame decoded = schema::decode_frame(frame->bytes()).value();
        all[seat]->member->on_frame(self, decoded.header, decoded.body, frame);
      });
  }
  // An early forward pass reads each segment as it becomes final, while helpers write others.
  void train(Step of, const Layout& layout, kernels::ConstFloats from, bool early) override {
    parameters = from;
    segments_missing = early ? tiny_segments().size() : 0;
    early_steps += early ? 1 : 0;
    compute = [this, step = of.value(), buckets = layout.buckets.size()] {
      simulation::draw_gradient(job.seed, self.index(), step, drawn.span());
      tensors->copy_in(std::as_bytes(drawn.span()), gradient.floats());
      for (std::size_t b = 0; b < buckets; ++b)
        calls.post([this, step, b] {
          GradientReady event{{View::kFirst, Step(step)}, b, 0};
          if (b == 0) event.statistics = simulation::draw_statistics(job.seed, self.index(), step);
          member->on_event(event);
        });
    };
    if (!early) compute();
  }
  void segment_ready(std::size_t segment) override {
    const engine::Segment& one = tiny_segments()[segment];
    std::vector<float> values(one.element_count);
    tensors->copy_out(parameters.subspan(one.offset, values.size()), std::as_writable_bytes(std::span(values)));
    for (const float value : values) read += static_cast<double>(value);
    if (--segments_missing == 0) compute();
  }
  void evaluate(Step) override {}

  void begin(const schema::Commit& choice, std::size_t helpers) {
    member->begin(choice, {*space, counting_kernels(), replica, gradient.floats(), pool});
    std::vector<std::unique_ptr<Worker>> helpers_made;
    for (std::size_t i = 0; i < helpers; ++i) helpers_made.push_back(member->make_worker());
    workers =
        std::make_unique<WorkerPool>(std::move(helpers_made), std::make_shared<Timeline>(), [this](StepEvent&& event) {
          if (std::holds_alternative<TaskDone>(event)) ++helped;
          const auto told = std::make_shared<StepEvent>(std::move(event));
          calls.post([this, told] { std::visit([this](const auto& one) { member->on_event(one); }, *told); });
        });
  }
  bool work() { return workers->work(*member); }

  const schema::JobSpec job;
  const Seat self;
  Calls& calls;
  Nodes& all;
  const std::unique_ptr<kernels::MemorySpace> space;
  const std::unique_ptr<kernels::TensorKernels> tensors;
  Replica replica;
  AlignedArray<float> drawn;
  kernels::MemoryArray gradient;
  schema::FramePool pool;
  std::unique_ptr<Member> member;
  kernels::ConstFloats parameters;
  std::size_t segments_missing = 0;
  std::function<void()> compute;
  std::uint64_t early_steps = 0;
  double read = 0;
  std::atomic<std::uint64_t> helped{0};
  std::unique_ptr<WorkerPool> workers;  // last: its threads use the others
};

schema::JobSpec job_of(schema::ExchangeKind exchange, GradientFormat gradients) {
  schema::JobSpec job;
  job.seed = 5;
  job.steps = 30;
  job.exchange = exchange;
  job.gradients = gradients;
  job.bucket_parameters = 1'000;
  job.chunk_parameters = 512;
  job.digest_every = 3;
  return job;
}

// Seat i with helpers[i] helpers.
void train(const schema::JobSpec& job, const Per<Seat, std::size_t>& helpers, Node::Nodes& nodes) {
  Calls calls;
  is_caller = true;
  for (const Seat seat : helpers.places())
    nodes.push_back(std::make_unique<Node>(job, seat, helpers.size(), calls, nodes));
  const schema::Commit choice{job.exchange.value(), job.coding.value_or(schema::Coding::kEntropy),
                              schema::kMinWindowBytes, schema::kSmallChunkParameters};
  for (const Seat seat : helpers.places()) nodes[seat]->begin(choice, helpers[seat]);
  const auto over = [&] {
    return std::all_of(nodes.begin(), nodes.end(),
                       [](const auto& node) { return node->member->finished() || node->member->failed(); });
  };
  while (!over()) {
    bool worked = false;
    for (const auto& node : nodes) worked = node->work() || worked;
    const std::function<void()> call = calls.take(!worked && !over());
    if (call) call();
    if (!call && !worked && !over()) {
      ADD_FAILURE() << "nothing happens any more";
      break;
    }
  }
  for (const auto& node : nodes) {
    EXPECT_FALSE(node->member->failed()) << node->member->failed()->message;
    node->workers.reset();
  }
}

TEST(WorkerPool, HelpersLeaveTheBitsAsTheyAre) {
  for (const auto exchange : values_of<schema::ExchangeKind>())
    for (const GradientFormat gradients : {GradientFormat::kTernary, GradientFormat::kFloat32}) {
      SCOPED_TRACE(std::string(to_word(exchange)) + " " + to_word(gradients));
      const schema::JobSpec job = job_of(exchange, gradients);
      const simulation::ReferenceState reference = simulation::train_reference(job, 3, job.steps);
      Node::Nodes nodes;
      train(job, {0, 1, 3}, nodes);
      for (const auto& node : nodes) EXPECT_EQ(simulation::difference(reference, node->replica), "");
      EXPECT_EQ(nodes[Seat(0)]->helped, 0u);
      EXPECT_GT(nodes[Seat(1)]->helped, 10u);
      EXPECT_GT(nodes[Seat(2)]->helped, 10u);
      for (const auto& node : nodes) EXPECT_GT(node->early_steps, 10u);
    }
}

TEST(WorkerPool, WithHelpersTheCallersThreadOnlyHandsOut) {
  const schema::JobSpec job = job_of(schema::ExchangeKind::kSharded, GradientFormat::kTernary);
  Node::Nodes with_helpers, without;
  const std::uint64_t before = caller_measured;
  train(job, {1, 2, 3}, with_helpers);
  EXPECT_EQ(caller_measured, before);
  train(job, {0, 2, 3}, without);
  EXPECT_EQ(caller_measured - before, job.steps * tiny_segments().size()) << "of the node without helpers";
}

TEST(WorkerPool, StatisticsAreForIdleHelpers) {
  Calls calls;
  Node::Nodes nodes;
  nodes.push_back(std::make_unique<Node>(job_of(schema::ExchangeKind::kDirect, GradientFormat::kTernary), Seat(0), 1,
                                         calls, nodes));
  Node& node = *nodes[Seat(0)];
  node.begin({}, 2);
  while (const auto call = calls.take(false)) call();  // three buckets are there to be measured
  gate.close();
  EXPECT_TRUE(node.work());
  EXPECT_TRUE(gate.wait_for(2));
  EXPECT_EQ(node.workers->idle_helper(), ThreadRole::kBusyThread);
  EXPECT_FALSE(node.work()) << "no statistics behind another task";
  EXPECT_TRUE(node.member->next_task(ThreadRole::kIdleThread)) << "the third bucket's are still there";
  node.workers->stop();
  gate.open();
  node.workers.reset();
}

TEST(WorkerPool, RawCodesAreReadByTheUpdateItself) {
  schema::JobSpec job = job_of(schema::ExchangeKind::kDirect, GradientFormat::kTernary);
  job.coding = schema::Coding::kRaw;
  const std::uint64_t before = updates_of_payloads;
  Node::Nodes nodes;
  train(job, {0, 1, 2}, nodes);
  const simulation::ReferenceState reference = simulation::train_reference(job, 3, job.steps);
  for (const auto& node : nodes) EXPECT_EQ(simulation::difference(reference, node->replica), "");
  if (simulation::awkward_memory_asked_for())
    EXPECT_EQ(updates_of_payloads, before) << "a memory space that cannot read payloads gets planes";
  else
    EXPECT_GE(updates_of_payloads - before, nodes.size() * job.steps);
}

// The device of seat 1 dies at its `last`th call from the beginning on; false if it lived to the end. The forward pass
// does not use it: in a daemon that has a thread of its own.
bool dies(std::uint64_t last, std::size_t helpers) {
  schema::JobSpec job = job_of(schema::ExchangeKind::kSharded, GradientFormat::kTernary);
  job.steps = 3;
  Calls calls;
  Node::Nodes nodes;
  auto device = std::make_unique<simulation::AwkwardMemory>(counting_kernels());
  simulation::AwkwardMemory& fragile = *device;
  nodes.push_back(std::make_unique<Node>(job, Seat(0), 2, calls, nodes));
  nodes.push_back(std::make_unique<Node>(job, Seat(1), 2, calls, nodes, std::move(device)));
  const schema::Commit choice{job.exchange.value(), schema::Coding::kRaw, schema::kMinWindowBytes,
                              schema::kSmallChunkParameters};
  nodes[Seat(0)]->begin(choice, 0);
  nodes[Seat(1)]->begin(choice, helpers);
  fragile.die_after(last);
  const Member& member = *nodes[Seat(1)]->member;
  while (!member.failed() && !member.finished()) {
    bool worked = false;
    for (const auto& node : nodes) worked = node->work() || worked;
    const std::function<void()> call = calls.take(!worked && !member.failed() && !member.finished());
    if (call) call();
    if (!call && !worked && !member.failed() && !member.finished()) {
      ADD_FAILURE() << "nothing happens any more after call " << last;
      return true;
    }
  }
  for (const auto& node : nodes) node->workers.reset();  // none of them hangs
  if (!member.failed()) return false;
  EXPECT_EQ(member.failed()->node, "node-1");
  const std::string& said = member.failed()->message;
  EXPECT_TRUE(said.starts_with("node-1 step ")) << said;
  EXPECT_TRUE(said.ends_with(": the engine failed: awkwardLaunchKernel: device lost")) << said;
  return true;
}

TEST(WorkerPool, ADeviceThatDiesAtAnyCallEndsTheRunByName) {
  for (const std::size_t helpers : {0u, 2u}) {
    std::uint64_t calls = 0;
    while (dies(calls, helpers)) ++calls;
    EXPECT_GT(calls, 100u) << helpers << " helpers";
  }
}

TEST(WorkerPool, FinishesTasksUnderWayAndDropsWaitingOnes) {
  Calls calls;
  Node::Nodes nodes;
  nodes.push_back(std::make_unique<Node>(job_of(schema::ExchangeKind::kDirect, GradientFormat::kTernary), Seat(0), 1,
                                         calls, nodes));
  Node& node = *nodes[Seat(0)];
  node.begin({}, 0);
  while (const auto call = calls.take(false)) call();
  std::vector<std::unique_ptr<Worker>> helpers_made;
  helpers_made.push_back(node.member->make_worker());
  std::binary_semaphore begun{0}, may_end{0};
  std::atomic<int> done{0};
  auto workers =
      std::make_unique<WorkerPool>(std::move(helpers_made), std::make_shared<Timeline>(), [&](const StepEvent& event) {
        if (!std::holds_alternative<TaskDone>(event)) return;
        begun.release();
        may_end.acquire();
        ++done;
      });
  const auto give_statistics = [&] {  // for three buckets
    ASSERT_EQ(workers->idle_helper(), ThreadRole::kIdleThread);
    workers->submit(node.member->next_task(ThreadRole::kIdleThread).value(), node.member->origin());
  };
  give_statistics();
  begun.acquire();  // the helper reports the first one and does not continue
  give_statistics();
  workers->stop();
  EXPECT_FALSE(workers->idle_helper());
  EXPECT_EQ(done, 0);
  may_end.release();
  workers.reset();
  EXPECT_EQ(done, 1) << "what waited is dropped";
}

}  // namespace
}  // namespace tg::daemon
