#include "daemon/simulate/simulated_view.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <optional>
#include <utility>

#include "daemon/step/job_layout.h"
#include "daemon/step/worker.h"
#include "kernels/base/check.h"

namespace tg::daemon {

class SimulatedView::SimulatedMember : public Member::Delegate {
 public:
  SimulatedMember(SimulatedView& of, Rank rank, SimulatedNode& node)
      : of_(of),
        rank_(rank),
        node_(node),
        member_({.run_key = 1,
                 .view = of.options_.view,
                 .self = of.options_.view.seat(rank),
                 .names = of.options_.names,
                 .job = of.options_.job,
                 .has_test_data = of.options_.has_test_data,
                 .global_batch = of.options_.global_batch,
                 .first_round = Round(of.options_.first.value()),
                 .evaluates_first = of.options_.evaluates_first},
                of.environment_.model, static_cast<Member::Delegate&>(*this)) {}

  void begin() {
    const Environment& environment = of_.environment_;
    member_.begin(of_.options_.choice, {environment.space, environment.codec, *node_.replica,
                                        std::as_const(node_.gradient).floats(), environment.pool, of_.options_.best});
  }

  // One thing that this member can do now; false if there is none.
  bool act() {
    if (order_ && !order_->given) {
      order_->given = true;
      of_.give(rank_, [order = order_.get()] { order->execute(); });
    } else if (!inbox_.empty()) {
      take_frame();
    } else if (std::optional<Task> task = member_.next_task(ThreadRole::kOnlyThread)) {
      member_.execute(*std::move(task));
    } else {
      return member_.use_idle_time();
    }
    return true;
  }

  // What was given is done.
  void order_done() {
    const std::unique_ptr<Order> done = std::move(order_);
    for (StepEvent& event : done->told) std::visit([this](auto& one) { member_.on_event(one); }, event);
  }

  const Member& member() const { return member_; }
  void put(Seat from, schema::SharedFrame frame) { inbox_.emplace_back(from, std::move(frame)); }

 private:
  void take_frame() {
    const auto [from, frame] = std::move(inbox_.front());
    inbox_.pop_front();
    const Result<schema::Frame> decoded = schema::decode_frame(frame->bytes());
    TG_CHECK(decoded.ok(), decoded.error().message);
    member_.on_frame(from, decoded->header, decoded->body, frame);
  }
  // The engine's work is done when this member's turn comes, outside of what asked for it, perhaps by another thread.
  // What comes of it is told when it is done.
  struct Order {
    Origin of;
    std::function<void(std::vector<StepEvent>& told)> work;
    bool given = false;
    std::vector<StepEvent> told = {};
    void execute() {
      try {
        work(told);
      } catch (const std::exception& error) {
        told.emplace_back(EngineFailed{of, error.what()});
      }
    }
  };
  void later(Order order) {
    TG_CHECK(!order_);
    order_ = std::make_unique<Order>(std::move(order));
  }

  // Member::Delegate
  void send(const std::vector<Seat>& to, const schema::SharedFrame& frame) override { of_.deliver(rank_, to, frame); }
  void train(Step step, const Layout& layout, kernels::ConstFloats parameters, bool early) override {
    TG_CHECK(!early && node_.replica->committed_rounds() == Round(step.value()), step.value());
    const Origin origin{of_.options_.view.number(), step};
    later({origin, [this, origin, &layout, parameters](std::vector<StepEvent>& told) {
             of_.environment_.learning.train(rank_, origin, layout, parameters, node_.gradient.floats(),
                                             [&told](GradientReady&& ready) { told.emplace_back(std::move(ready)); });
           }});
  }
  void segment_ready(std::size_t) override {}
  void evaluate(Step step) override {
    const Origin origin{of_.options_.view.number(), step};
    later({origin, [this, origin](std::vector<StepEvent>& told) {
             told.emplace_back(Evaluated{origin, of_.environment_.learning.evaluate(rank_, *node_.replica)});
           }});
  }
  // The view ends with `last`, where all members hold, with its evaluation if that is due: they ask for it in their
  // frames of the step that leads there.
  void step_begins(Step step) override {
    if (step.next() == of_.options_.last && step.next().value() < of_.options_.job.steps) member_.request_quiesce();
  }
  bool may_start_early(Step) override { return false; }
  void committed(const Member::Committed& committed) override {
    if (rank_ == Rank(0)) of_.listeners_.committed(committed);
  }
  void reported(const std::optional<Member::Evaluation>& evaluation) override {
    if (rank_ == Rank(0) && evaluation) of_.listeners_.evaluated(*evaluation);
  }

  SimulatedView& of_;
  const Rank rank_;
  SimulatedNode& node_;
  Member member_;
  std::unique_ptr<Order> order_;
  std::deque<std::pair<Seat, schema::SharedFrame>> inbox_;
};

Result<SimulatedNode> copy_of(const SimulatedNode& holder, kernels::MemorySpace& space, const engine::Model& model,
                              std::uint64_t seed) {
  SimulatedNode node;
  node.replica =
      std::make_shared<Replica>(space, model, holder.replica->slot_count(), seed, holder.replica->keeps_average());
  node.gradient = kernels::MemoryArray(space, model.segments.padded_count());
  if (Status copied = node.replica->restore(arrays_of(*holder.replica), holder.replica->committed_rounds()); !copied)
    return copied.error();
  return node;
}

SimulatedNode follower_of(const SimulatedNode& keeper, kernels::MemorySpace& space, const engine::Model& model) {
  return {std::make_shared<Replica>(keeper.replica), kernels::MemoryArray(space, model.segments.padded_count())};
}

SimulatedView::SimulatedView(Options options, const Environment& environment, Per<Rank, SimulatedNode*> nodes,
                             Listeners listeners)
    : options_(std::move(options)), environment_(environment), listeners_(std::move(listeners)) {
  TG_CHECK(nodes.size() == options_.view.size(), nodes.size());
  TG_CHECK(options_.first < options_.last && options_.last.value() <= options_.job.steps, options_.last.value());
  for (const Rank rank : nodes.places())
    members_.push_back(std::make_unique<SimulatedMember>(*this, rank, *nodes[rank]));
}

SimulatedView::~SimulatedView() {
  while (in_flight_ > 0) in_flight_ -= environment_.learning.take_done(true).size();
}

void SimulatedView::give(Rank member, const SimulatedLearning::Work& work) {
  ++in_flight_;
  environment_.learning.give(member, work);
}

bool SimulatedView::take_done(bool waits) {
  const std::vector<Rank> done = environment_.learning.take_done(waits);
  in_flight_ -= done.size();
  for (const Rank member : done) members_[member]->order_done();
  return !done.empty();
}

// Rank 0, which may keep the state of all, goes first, in all that it can do: so it commits a round, and confirms a
// state, before any other member does. A member that commits has the frames of all, and they were delivered to rank 0
// as well.
void SimulatedView::deliver(Rank from, const std::vector<Seat>& to, const schema::SharedFrame& frame) {
  if (from == Rank(0)) sent_bytes_ += frame->bytes().size() * to.size();
  for (const Seat seat : to) members_[*options_.view.rank(seat)]->put(options_.view.seat(from), frame);
  if (from != Rank(0)) first_goes_on();
}

bool SimulatedView::first_goes_on() {
  bool any = false;
  while (members_.front()->act()) any = true;
  return any;
}

Status SimulatedView::run() {
  for (const auto& member : members_) member->begin();
  while (true) {
    bool any = take_done(false);
    any = first_goes_on() || any;
    for (const auto& one : members_) {
      any = one->act() || any;
      if (const std::optional<schema::Fail>& failed = one->member().failed())
        return Error{ErrorKind::kRunFailed, failed->message};
      if (!one->member().unfit().empty()) return Error{ErrorKind::kRunFailed, one->member().unfit()};
    }
    const auto is_over = [](const auto& one) {
      return one->member().finished().has_value() || one->member().quiesced();
    };
    if (std::ranges::all_of(members_, is_over)) return {};
    if (!any && in_flight_ > 0) any = take_done(true);
    TG_CHECK(any, "no member can make progress", members_.front()->member().step().value());
  }
}

const std::string& SimulatedView::why_completed() const { return members_.front()->member().finish_reason(); }

std::uint64_t SimulatedView::bytes_of_member(const schema::JobSpec& job, const engine::Model& model,
                                             std::size_t members, const schema::Commit& choice) {
  const Layouts layouts = layouts_of(job, model.segments, members, choice);
  const auto bytes = [&](const Layout& layout) {
    // A frame is one block for all receivers: of this step and the next, what it contributes, and what it sums.
    std::size_t frames = 0;
    for (const ChunkLayout& chunk : layout.chunks)
      frames += 2 * (chunk.coded() ? kernels::codes_bound(chunk.size()) + chunk.size() / layout.members
                                   : 2 * chunk.size() * sizeof(float));
    return SharedStep::bytes(model.segments, layout) + Worker::bytes(layout) + schema::kMaxBlockPerFrame * frames;
  };
  return std::max<std::uint64_t>(bytes(layouts.layout), layouts.of_float_steps ? bytes(*layouts.of_float_steps) : 0);
}

}  // namespace tg::daemon
