// An exchange on real threads: members in one process, each with its helpers, against the plain reference, bit for bit.
#include "daemon/step/threads/crew.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <semaphore>

#include "daemon/step/member.h"
#include "kernels/home_array.h"
#include "tests/simulation/simulator/awkward_home.h"
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

std::atomic<std::uint64_t> updates_of_payloads{0};  // of all other members' codes

const kernels::Kernels& counting_kernels() {
  static const kernels::Kernels counting = [] {
    kernels::Kernels table = *kernels::available().front();
    table.apply_codes = [](const kernels::Update& update, const kernels::Received& received,
                           kernels::ConstStateSpan from, kernels::StateSpan to) {
      if (received.planes.size() == 1 && !received.payloads.empty()) ++updates_of_payloads;
      return kernels::available().front()->apply_codes(update, received, from, to);
    };
    return table;
  }();
  return counting;
}

struct Node {
  Node(const schema::JobSpec& job, Rank self, std::size_t members, Calls& calls,
       std::vector<std::unique_ptr<Node>>& all)
      : home(simulation::home_under_test(counting_kernels())),
        tensors(home->make_kernels()),
        replica(*home, tiny_segments(), engine::slot_count(optimizer_of(job).kind), job.seed, keeps_average(job)),
        drawn(tiny_segments().padded_count()),
        gradient(*home, tiny_segments().padded_count()) {
    Member::Options options;
    for (std::size_t r = 0; r < members; ++r) options.names.push_back("node-" + std::to_string(r));
    options.self = self;
    options.run_key = kRun;
    options.job = job;
    options.segment_names = tiny_segment_names();
    Member::Hooks hooks;
    hooks.send = [self, &calls, &all](const std::vector<Rank>& to, const schema::SharedFrame& frame) {
      for (const Rank rank : to)
        calls.post([self, rank, frame, &all] {
          const schema::Frame decoded = schema::decode_frame(frame->bytes()).value();
          all[rank]->member->frame(self, decoded.header, decoded.body, frame);
        });
    };
    // An early forward pass reads each segment as it becomes final, while helpers write others.
    hooks.train = [this, self, job, &calls](std::uint64_t step, const Plan& plan, kernels::ConstFloats from,
                                            bool early) {
      parameters = from;
      segments_missing = early ? tiny_segments().size() : 0;
      early_steps += early ? 1 : 0;
      compute = [this, self, job, step, buckets = plan.buckets.size(), &calls] {
        simulation::draw_gradient(job.seed, self, step, drawn.span());
        tensors->copy_in(std::as_bytes(drawn.span()), gradient.floats());
        for (std::size_t b = 0; b < buckets; ++b) calls.post([this, step, b] { member->bucket_ready(step, b, 0); });
      };
      if (!early) compute();
    };
    hooks.segment_ready = [this](std::size_t segment) {
      const engine::Segment& one = tiny_segments()[segment];
      std::vector<float> values(one.element_count);
      tensors->copy_out(parameters.subspan(one.offset, values.size()), std::as_writable_bytes(std::span(values)));
      for (const float value : values) read += static_cast<double>(value);
      if (--segments_missing == 0) compute();
    };
    hooks.evaluate = [](std::uint64_t) {};
    hooks.reached = [](schema::Phase, std::uint64_t) {};
    hooks.before_step = [](std::uint64_t) {};
    hooks.may_start_early = [](std::uint64_t) { return true; };
    hooks.committed = [](const Member::Committed&) {};
    hooks.reported = [](const auto&) {};
    hooks.state_digests = [](const auto&) {};
    member = std::make_unique<Member>(std::move(options), std::move(hooks));
  }
  void begin(const schema::Commit& choice, std::size_t helpers, Calls& calls) {
    member->begin(choice, *home, counting_kernels(), tiny_segments(), replica, gradient.floats(), pool);
    std::vector<std::unique_ptr<Worker>> workers;
    for (std::size_t i = 0; i < helpers; ++i) workers.push_back(member->make_worker());
    crew = std::make_unique<Crew>(
        std::move(workers), std::make_shared<Timeline>(),
        Crew::Hooks{
            [this, &calls](MadeFrame total) { calls.post([this, total = std::move(total)] { member->made(total); }); },
            [this, &calls](Piece piece, PieceResult result) {
              const auto given = std::make_shared<Piece>(std::move(piece));
              calls.post([this, given, result = std::move(result)] { member->done(*given, result); });
              ++helped;
            }});
  }
  bool work() {
    const std::optional<Piece> own = member->next_piece();
    if (!own) return false;
    while (crew->has_room()) {
      std::optional<Piece> piece = member->next_piece();
      if (!piece) break;
      const std::size_t bucket = member->bucket_of(*piece);
      crew->give(*std::move(piece), member->step(), bucket);
    }
    member->carry_out(*own);
    return true;
  }

  const std::unique_ptr<kernels::Home> home;
  const std::unique_ptr<kernels::TensorKernels> tensors;
  Replica replica;
  AlignedArray<float> drawn;
  kernels::HomeArray gradient;
  schema::FramePool pool;
  std::unique_ptr<Member> member;
  kernels::ConstFloats parameters;
  std::size_t segments_missing = 0;
  std::function<void()> compute;
  std::uint64_t early_steps = 0;
  double read = 0;
  std::atomic<std::uint64_t> helped{0};
  std::unique_ptr<Crew> crew;  // last: its threads use the others
};

schema::JobSpec job_of(const std::string& exchange, const std::string& gradients) {
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

std::vector<std::unique_ptr<Node>> train(const schema::JobSpec& job, const std::vector<std::size_t>& helpers) {
  Calls calls;
  std::vector<std::unique_ptr<Node>> nodes;
  for (Rank r = 0; r < helpers.size(); ++r)
    nodes.push_back(std::make_unique<Node>(job, r, helpers.size(), calls, nodes));
  const schema::Commit choice{job.exchange == "direct" ? schema::ExchangeKind::kDirect : schema::ExchangeKind::kSharded,
                              job.coding == "raw" ? schema::Coding::kRaw : schema::Coding::kEntropy,
                              schema::kLeastWindowBytes, schema::kSmallChunkParameters};
  for (Rank r = 0; r < helpers.size(); ++r) nodes[r]->begin(choice, helpers[r], calls);
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
    node->crew.reset();
  }
  return nodes;
}

TEST(Crew, HelpersLeaveTheBitsAsTheyAre) {
  for (const std::string exchange : {"direct", "sharded"})
    for (const std::string gradients : {"ternary", "float32"}) {
      SCOPED_TRACE(exchange + " " + gradients);
      const schema::JobSpec job = job_of(exchange, gradients);
      const simulation::ReferenceState reference = simulation::train_reference(job, 3, job.steps);
      const auto nodes = train(job, {0, 1, 3});
      for (const auto& node : nodes) EXPECT_EQ(simulation::difference(reference, node->replica), "");
      EXPECT_EQ(nodes[0]->helped, 0u);
      EXPECT_GT(nodes[1]->helped, 10u);
      EXPECT_GT(nodes[2]->helped, 10u);
      for (const auto& node : nodes) EXPECT_GT(node->early_steps, 10u);
    }
}

TEST(Crew, RawCodesAreReadByTheUpdateItself) {
  schema::JobSpec job = job_of("direct", "ternary");
  job.coding = "raw";
  const std::uint64_t before = updates_of_payloads;
  const auto nodes = train(job, {0, 1, 2});
  const simulation::ReferenceState reference = simulation::train_reference(job, 3, job.steps);
  for (const auto& node : nodes) EXPECT_EQ(simulation::difference(reference, node->replica), "");
  if (simulation::awkward_home_asked_for())
    EXPECT_EQ(updates_of_payloads, before) << "a home that cannot read payloads gets planes";
  else
    EXPECT_GE(updates_of_payloads - before, nodes.size() * job.steps);
}

TEST(Crew, EndsWithWhatIsUnderWayAndDropsWhatWaits) {
  Calls calls;
  std::vector<std::unique_ptr<Node>> nodes;
  nodes.push_back(std::make_unique<Node>(job_of("direct", "ternary"), 0, 1, calls, nodes));
  Node& node = *nodes[0];
  node.begin({}, 0, calls);
  while (const auto call = calls.take(false)) call();
  std::vector<std::unique_ptr<Worker>> workers;
  workers.push_back(node.member->make_worker());
  std::binary_semaphore begun{0}, may_end{0};
  std::atomic<int> done{0};
  auto crew = std::make_unique<Crew>(std::move(workers), std::make_shared<Timeline>(),
                                     Crew::Hooks{[](const MadeFrame&) {},
                                                 [&](const Piece&, const PieceResult&) {
                                                   begun.release();
                                                   may_end.acquire();
                                                   ++done;
                                                 }});
  for (int given = 0; given < 2; ++given) {  // three buckets are there to be measured
    ASSERT_TRUE(crew->has_room());
    crew->give(node.member->next_piece().value(), 0, 0);
  }
  begun.acquire();  // the helper is at the first one, the second one waits
  EXPECT_FALSE(crew->has_room());
  crew->end();
  EXPECT_FALSE(crew->has_room());
  EXPECT_EQ(done, 0);
  may_end.release();
  crew.reset();
  EXPECT_EQ(done, 1) << "what waited is dropped";
}

}  // namespace
}  // namespace tg::daemon
