// A node with a valid key lies: at every moment of a start, of the training, of view changes, joins and the end it
// sends frames that are made up, or are those of others with other fields. What it sends ends no process. As long as it
// is no member it changes no view either, and the promises of DESIGN.md, section 6b, hold for the others.
#include <algorithm>
#include <concepts>
#include <csignal>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tests/simulation/training/training_cluster.h"

namespace tg::simulation {
namespace {

constexpr std::size_t kSeeds = 25, kFrames = 400;  // each seed's
constexpr std::uint64_t kQuietMs = 300'000;

// Bytes that need no pool.
class OwnBytes : public schema::FrameBuffer {
 public:
  explicit OwnBytes(std::span<const std::byte> bytes) : words_((bytes.size() + 7) / 8), size_(bytes.size()) {
    std::ranges::copy(bytes, data());
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(words_.data()); }
  std::span<const std::byte> bytes() const override {
    return {reinterpret_cast<const std::byte*>(words_.data()), size_};
  }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t size_;
};

bool is_of_the_steps(const schema::FrameBody& body) {
  return std::holds_alternative<schema::StepFrame>(body) || std::holds_alternative<schema::Scalers>(body) ||
         std::holds_alternative<schema::Chunk>(body) || std::holds_alternative<schema::Credit>(body) ||
         std::holds_alternative<schema::Report>(body) || std::holds_alternative<schema::Reached>(body) ||
         std::holds_alternative<schema::SnapshotChunk>(body);
}

// Draws frames from what it has seen.
class Lies {
 public:
  explicit Lies(std::uint64_t seed) : random_(seed ^ 0x11a5) {}

  void learn(const Message& message) {
    if (message.bytes != nullptr) {
      keep(bytes_, message.bytes);
      return;
    }
    keep(seen_[message.body.index()], message);
    numbers_.push_back(message.header.run);
    if (numbers_.size() > 200) numbers_.erase(numbers_.begin() + random_.between(0, 150));
    std::visit([this](const auto& body) { learn_body(body); }, message.body);
  }
  // Null: decoding refuses it.
  SharedMessage draw() {
    if (!bytes_.empty() && random_.one_in(8)) return decoded(garbled(*bytes_[random_.between(0, bytes_.size() - 1)]));
    schema::FrameHeader header;
    schema::FrameBody body;
    const std::size_t kind = kinds_[random_.between(0, kinds_.size() - 1)];
    const std::vector<Message>& of_kind = seen_[kind];
    const bool from_seen = !of_kind.empty() && !random_.one_in(4);
    if (from_seen) {
      const Message& one = of_kind[random_.between(0, of_kind.size() - 1)];
      header = one.header;
      body = one.body;
    } else {
      body = made(kind);
      header = {number(), static_cast<std::uint32_t>(random_.between(0, 4)), 0};
      if (!seen_.empty()) {
        const auto& any = std::next(seen_.begin(), static_cast<std::ptrdiff_t>(random_.between(0, seen_.size() - 1)));
        if (!any->second.empty()) header = any->second.back().header;
      }
    }
    one_in_ = from_seen ? random_.between(1, 20) : 2;
    std::visit([this](auto& one) { change(one); }, body);
    if (random_.one_in(6)) change(header.run);
    if (random_.one_in(4)) header.view = static_cast<std::uint32_t>(header.view + random_.between(0, 4) - 1);
    if (random_.one_in(30)) change(header.view);
    if (auto* const decide = std::get_if<schema::Decide>(&body); decide != nullptr && !random_.one_in(5))
      header.view = decide->view.number - 1;
    schema::SharedFrame frame = schema::encode_frame(header, body, pool_);
    if (random_.one_in(6)) frame = garbled(*frame);
    return decoded(frame);
  }
  schema::Heartbeat beat(const std::string& node) {
    schema::Heartbeat beat;
    beat.node = node;
    beat.run_id = random_.one_in(3) ? "another" : text();
    beat.view = static_cast<std::uint32_t>(random_.between(0, 6));
    beat.lineage = static_cast<std::uint32_t>(random_.between(1, 3));
    return beat;
  }
  Random& random() { return random_; }

 private:
  template <class T>
  void keep(std::vector<T>& all, const T& one) {
    if (all.size() < 12)
      all.push_back(one);
    else
      all[random_.between(0, 11)] = one;
  }
  static constexpr std::size_t kKinds = std::variant_size_v<schema::FrameBody>;
  template <std::size_t... Index>
  static schema::FrameBody made(std::size_t kind, std::index_sequence<Index...>) {
    schema::FrameBody body;
    ((kind == Index ? void(body.emplace<Index>()) : void()), ...);
    return body;
  }
  static schema::FrameBody made(std::size_t kind) { return made(kind, std::make_index_sequence<kKinds>()); }
  // Those of membership.
  static std::vector<std::size_t> kinds() {
    std::vector<std::size_t> kinds;
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      const schema::FrameBody body = made(kind);
      const bool of_links =
          std::holds_alternative<schema::Hello>(body) || std::holds_alternative<schema::Probe>(body) ||
          std::holds_alternative<schema::ProbeReply>(body) || std::holds_alternative<schema::Refusal>(body) ||
          std::holds_alternative<schema::Chunk>(body);
      if (!of_links) kinds.push_back(kind);
    }
    return kinds;
  }

  SharedMessage decoded(const schema::SharedFrame& frame) const {
    const Result<schema::Frame> read = schema::decode_frame(frame->bytes());
    if (!read.ok()) return nullptr;
    if (is_of_the_steps(read->body)) return std::make_shared<const Message>(Message{{}, {}, frame});
    if (std::ranges::find(kinds_, read->body.index()) == kinds_.end()) return nullptr;
    return std::make_shared<const Message>(Message{read->header, read->body, nullptr});
  }
  schema::SharedFrame garbled(const schema::FrameBuffer& frame) {
    const auto bytes = std::make_shared<OwnBytes>(frame.bytes());
    for (std::uint64_t left = random_.between(1, 3); left > 0; --left)
      bytes->data()[random_.between(8, frame.bytes().size() - 1)] = static_cast<std::byte>(random_.word());
    return bytes;
  }

  // --- what is in a frame ---
  template <schema::Described Body>
  void learn_body(const Body& body) {
    fields(body, [this](const char*, const auto& value, const schema::Rule& = {}) { learn_value(value); });
  }
  void learn_body(const auto&) {}
  void learn_value(const std::uint64_t& value) { keep(numbers_, value); }
  void learn_value(const std::string& value) { keep(texts_, value); }
  template <schema::Described T>
  void learn_value(const T& value) {
    if constexpr (std::same_as<T, schema::ViewMember>) keep(members_, value);
    if constexpr (std::same_as<T, schema::Vote>) voters_seen(value);
    learn_body(value);
  }
  template <class T>
  void learn_value(const std::vector<T>& values) {
    for (const T& one : values) learn_value(one);
  }
  void learn_value(const auto&) {}
  void voters_seen(const schema::Vote& vote) {
    keep(members_, schema::ViewMember{.seat = static_cast<std::uint32_t>(random_.between(0, 6)),
                                      .incarnation = vote.incarnation,
                                      .directory = vote.directory});
  }

  std::uint64_t number() {
    return numbers_.empty() ? random_.word() : numbers_[random_.between(0, numbers_.size() - 1)];
  }
  std::string text() { return texts_.empty() ? "run-1" : texts_[random_.between(0, texts_.size() - 1)]; }

  struct Change {
    Lies& lies;
    template <class T>
    void operator()(const char*, T& value, const schema::Rule& = {}) const {
      if constexpr (schema::Described<T> || requires { value.push_back(value.front()); })
        lies.change(value);
      else if (lies.random_.one_in(lies.one_in_))
        lies.change(value);
    }
  };
  void change(bool& value) { value = !value; }
  template <std::integral T>
  void change(T& value) {
    constexpr T kMost = std::numeric_limits<T>::max();
    switch (random_.between(0, 6)) {
      case 0:
        value = 0;
        return;
      case 1:
        value = kMost;
        return;
      case 2:
        ++value;
        return;
      case 3:
        --value;
        return;
      case 4:
        value = static_cast<T>(number());
        return;
      case 5:
        value = static_cast<T>(random_.between(0, 8));
        return;
      default:
        value = static_cast<T>(random_.word());
    }
  }
  void change(double& value) {
    constexpr double kOdd[] = {
        0, -1, 1e-300, 1e300, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()};
    value = kOdd[random_.between(0, 5)];
  }
  void change(std::string& value) { value = random_.one_in(4) ? std::string(random_.between(0, 3'000), 'x') : text(); }
  template <class T>
  requires std::is_enum_v<T>
  void change(T& value) { value = static_cast<T>(random_.between(0, 12)); }
  template <class T>
  void change(std::vector<T>& values) {
    for (T& one : values) Change{*this}("", one);
    if (!random_.one_in(one_in_)) return;
    if (random_.one_in(3)) values.clear();
    if (!values.empty() && random_.one_in(3)) values.pop_back();
    for (std::uint64_t left = random_.between(0, 3); left > 0; --left) {
      if (values.size() >= schema::kMaxMembers) return;
      values.push_back(values.empty() ? T{} : values[random_.between(0, values.size() - 1)]);
      change(values.back());
    }
  }
  void change(std::vector<schema::ViewMember>& members) {
    for (schema::ViewMember& one : members) Change{*this}("", one);
    if (members_.empty() || !random_.one_in(one_in_)) return;
    std::map<std::uint32_t, schema::ViewMember> drawn;
    for (std::uint64_t left = random_.between(0, 6); left > 0; --left) {
      schema::ViewMember one = members_[random_.between(0, members_.size() - 1)];
      if (random_.one_in(8)) one.seat = static_cast<std::uint32_t>(random_.between(0, 6));
      drawn[one.seat] = one;
    }
    members.clear();
    for (const auto& [seat, one] : drawn) members.push_back(one);
  }
  template <schema::Described T>
  void change(T& value) {
    fields(value, Change{*this});
  }
  void change(schema::Propose& propose) {
    if (random_.one_in(one_in_)) change(propose.run_id);
    if (random_.one_in(one_in_)) change(propose.spec);
    if (random_.one_in(one_in_)) change(static_cast<std::vector<std::uint16_t>&>(propose.weights));
    if (random_.one_in(one_in_)) change(propose.members);
    if (random_.one_in(one_in_)) change(propose.names);
    if (propose.members.size() > 1) std::ranges::sort(propose.members);
    if (!random_.one_in(one_in_)) return;
    propose.resume.emplace();
    change(propose.resume->lineage);
    if (random_.one_in(2)) change(propose.resume->start.emplace());
  }
  void change(schema::SnapshotChunk& chunk) {
    static const std::vector<std::byte> bytes(schema::kMaxChunkPayloadBytes);
    change(chunk.at);
    chunk.payload = std::span(bytes).first(random_.one_in(2) ? random_.between(0, 4'000) : bytes.size());
  }
  void change(schema::StepFrame& step) {
    change(step.flags);
    step.flags &= schema::kKnownStepFlags;
    change(step.rate_bits);
    change(step.digests);
  }
  void change(schema::Scalers& scalers) { change(scalers.bucket); }
  void change(schema::Credit& credit) { change(credit.taken_bytes); }
  void change(schema::Chunk&) {}
  void change(schema::Probe&) {}

  Random random_;
  schema::FramePool pool_;
  const std::vector<std::size_t> kinds_ = kinds();
  std::map<std::size_t, std::vector<Message>> seen_;  // by kind
  std::vector<schema::SharedFrame> bytes_;            // frames that step frames and chunks come in
  std::vector<std::uint64_t> numbers_;
  std::vector<std::string> texts_;
  std::vector<schema::ViewMember> members_;
  std::uint64_t one_in_ = 2;  // a field is changed
};

struct Told {
  std::size_t frames = 0, refused = 0, changes = 0, joins = 0, hints = 0, completed = 0, liar_members = 0;
};

// Takes everything and does nothing.
class Silent : public Machine {
  void on_frame(Seat, const SharedMessage&) override {}
  void on_connection(Seat, bool) override {}
  void on_beat(Seat, const schema::Heartbeat&) override {}
  void on_tick() override {}
};

class LiarSchedule {
 public:
  LiarSchedule(std::uint64_t seed, bool is_member, Told& told)
      : seed_(seed),
        is_member_(is_member),
        told_(told),
        lies_(seed),
        cluster_({4 + seed % 3, seed}, Seat(0), slow(), options(), slow()),
        liar_(cluster_.any()) {
    job_ = tiny_job(seed, 8 + seed % 16, exchange_of(seed));
    job_.evaluate_every = 5;
    if (seed % 3 != 0) job_.join_limit_ms = 60'000;
    if (!is_member_) cluster_.network().attach(liar_, &silent_);
    cluster_.network().watch(
        [this](Seat from, Seat to, SharedMessage message) { return watched(from, to, std::move(message)); });
  }

  void run() {
    cluster_.network().connect_all();
    left_ = kFrames;
    lie();
    begin();
    for (std::uint64_t left = random().between(1, 4); left > 0 && !testing::Test::HasFailure(); --left) {
      strike();
      cluster_.network().run_for(random().between(0, 3'000));
    }
    cluster_.run_until([&] { return left_ == 0; }, 60'000);
    calm_down();
    if (is_member_) return (void)cluster_.network().run_for(20'000);
    const auto over = [&] { return std::ranges::all_of(honest(), [&](Seat seat) { return is_over(seat); }); };
    EXPECT_TRUE(cluster_.run_until(over, kQuietMs)) << "P5: a node hangs: " << words();
    for (const Seat seat : honest()) note(seat);
    told_.changes += views_.size();
    if (liar_came_in_) return void(++told_.liar_members);
    expect_one_end();
  }

 private:
  static Faults slow() {
    Faults made;
    made.extra_compute_us = 100'000;
    return made;
  }
  static NodeOptions options() {
    NodeOptions made;
    made.hears_lies = true;
    return made;
  }
  Random& random() { return cluster_.random(); }
  std::vector<Seat> honest() { return is_member_ ? cluster_.all_but({}) : cluster_.all_but({liar_}); }
  Seat any_honest() {
    const std::vector<Seat> all = honest();
    return all[random().between(0, all.size() - 1)];
  }

  SharedMessage watched(Seat from, Seat, SharedMessage message) {
    if (from != liar_ || is_member_) lies_.learn(*message);
    if (from == liar_ && is_member_ && lies_.random().one_in(12)) return lies_.draw();
    if (from == liar_) return message;
    if (const auto* accept = std::get_if<schema::Accept>(&message->body)) proposed_.push_back(accept->view);
    // A member that is alone in a view asks no other.
    if (const auto* decide = std::get_if<schema::Decide>(&message->body)) {
      const auto before = decided_.find(decide->view.number - 1);
      decided_.emplace(decide->view.number, decide->view);
      if (before != decided_.end() && daemon::View(before->second).seats() == std::vector<Seat>{from})
        proposed_.push_back(decide->view);
    }
    return message;
  }

  void lie() {
    if (left_ == 0) return;
    --left_;
    ++told_.frames;
    const SharedMessage message = lies_.draw();
    told_.refused += message == nullptr;
    const Seat to = any_honest();
    for (const Seat seat : honest())
      if (message != nullptr && seat != liar_ && (seat == to || lies_.random().one_in(4)))
        cluster_.network().send(liar_, seat, message);
    if (!is_member_ && lies_.random().one_in(3))
      cluster_.network().send_beat(liar_, to, lies_.beat(cluster_.name(liar_)));
    cluster_.network().at(cluster_.network().now_us() + random().between(1'000, 50'000), [this] { lie(); });
  }

  // A start may fail for what the liar says; without it one begins.
  void begin() {
    for (int attempt = 1; attempt <= 4; ++attempt) {
      if (attempt == 4) {
        left_ = 0;
        cluster_.network().run_for(30'000);
        for (const Seat seat : honest()) stop_others(seat);
        cluster_.network().run_for(30'000);
      }
      run_ = "run-" + std::to_string(attempt);
      const Seat at = honest().front();
      daemon::RunIdentity run{random().word(), run_, schema::canonical_job(job_), job_.start_timeout_ms};
      if (!is_member_) run.members = honest();
      key_ = run.run_key;
      cluster_.node(at).start(static_cast<std::uint64_t>(attempt), run);
      const auto all_run = [&] {
        return std::ranges::all_of(honest(), [&](Seat seat) { return cluster_.node(seat).running_key() == key_; });
      };
      if (cluster_.run_until(all_run, 20'000)) break;
      if (attempt == 4 && !is_member_) ADD_FAILURE() << "the run does not begin: " << words();
      for (const Seat seat : honest()) stop_others(seat);
      if (cluster_.node(at).membership().current() != nullptr) (void)cluster_.node(at).stop(run_);
      cluster_.network().run_for(1'000);
    }
    if (left_ == 0) {
      left_ = kFrames / 2;
      lie();
    }
  }
  void stop_others(Seat seat) {
    if (const daemon::RunIdentity* const run = cluster_.node(seat).membership().current(); run && run->run_key != key_)
      (void)cluster_.node(seat).stop(std::string(run->id));
  }

  void strike() {
    Network& network = cluster_.network();
    const Seat a = any_honest(), b = any_honest();
    switch (random().between(0, 6)) {
      case 0:
      case 1:
      case 2:
        if (network.dead(a) || a == liar_) return;
        note(a);
        cluster_.kill(a, random().one_in(3));
        return network.at(network.now_us() + random().between(1'000, 6'000'000), [this, a] { restart(a); });
      case 3:
        if (a != b) network.break_connection(a, b);
        return;
      case 4:
        if (network.dead(a)) return;
        network.pause(a, true);
        return network.at(network.now_us() + random().between(1'000, 15'000'000),
                          [this, a] { cluster_.network().pause(a, false); });
      case 5:
        if (!network.dead(a)) (void)cluster_.node(a).leave();
        return;
      default:
        if (!network.dead(a) && random().one_in(3)) (void)cluster_.node(a).stop(run_);
    }
  }
  void restart(Seat seat) {
    if (!cluster_.network().dead(seat)) return;
    cluster_.restart(seat);
  }
  void calm_down() {
    left_ = 0;
    for (const Seat seat : honest()) {
      if (cluster_.network().paused(seat)) cluster_.network().pause(seat, false);
      restart(seat);
      cluster_.node(seat).come_back();
    }
  }
  bool is_over(Seat seat) {
    daemon::Membership& membership = cluster_.node(seat).membership();
    if (!membership.idle() && membership.current()->id != run_)
      (void)cluster_.node(seat).stop(std::string(membership.current()->id));
    return membership.idle();
  }

  // What this process has seen.
  void note(Seat seat) {
    ExchangeNode& node = cluster_.trainer(seat);
    told_.joins += node.outcome(run_).joined;
    std::vector<schema::NextView> views = node.outcome(run_).views;
    const auto vote = cluster_.disk(seat).votes.find(key_);
    if (vote != cluster_.disk(seat).votes.end() && vote->second.view.number > 1) views.push_back(vote->second.view);
    for (const schema::NextView& next : views) {
      liar_came_in_ = liar_came_in_ || daemon::View(next).has(liar_);
      if (is_member_ || liar_came_in_) continue;
      const auto [found, is_new] = views_.emplace(next.number, next);
      EXPECT_EQ(found->second, next) << "P1: two views " << next.number << " at " << cluster_.name(seat);
      EXPECT_NE(std::ranges::find(proposed_, next), proposed_.end())
          << "view " << next.number << " at " << cluster_.name(seat) << " is nobody's but the liar's: " << next.why;
    }
    if (is_member_ || liar_came_in_ || !node.outcome(run_).began) return;
    for (const auto& [step, digest] : node.confirmed_digests()) {
      const auto [found, is_new] = confirmed_.emplace(step, digest);
      EXPECT_EQ(found->second, digest) << "P2, P3: two confirmed states " << step;
    }
  }

  void expect_one_end() {
    std::optional<schema::RunState> fact;
    for (const Seat seat : honest()) {
      const Outcome& outcome = cluster_.node(seat).outcome(run_);
      if (!outcome.end) continue;  // restarted
      EXPECT_NE(*outcome.end, schema::RunState::kFailed) << cluster_.name(seat) << ": " << outcome.reason;
      if (!schema::is_authoritative(*outcome.end)) continue;
      EXPECT_EQ(fact.value_or(*outcome.end), *outcome.end);
      fact = *outcome.end;
      if (*outcome.end != schema::RunState::kCompleted || !outcome.verdict) continue;
      EXPECT_EQ(outcome.verdict->truth.step, job_.steps) << cluster_.name(seat) << " believes an end that was none";
    }
    told_.completed += fact.has_value();
  }

  std::string words() {
    std::string text;
    for (const Seat seat : honest()) {
      daemon::Membership& membership = cluster_.node(seat).membership();
      if (membership.idle()) continue;
      text += cluster_.name(seat) + " " + std::string(to_word(membership.state().value())) + " of " +
              membership.current()->id + " in view " + std::to_string(membership.view().number()) + ": " +
              membership.pause_reason() + "; ";
    }
    return text;
  }

  const std::uint64_t seed_;
  const bool is_member_;
  Told& told_;
  Lies lies_;
  Silent silent_;
  TrainingCluster cluster_;
  const Seat liar_;
  schema::JobSpec job_;
  std::string run_;
  std::uint64_t key_ = 0;
  std::size_t left_ = 0;
  bool liar_came_in_ = false;
  std::vector<schema::NextView> proposed_;  // by others than the liar
  std::map<std::uint32_t, schema::NextView> decided_, views_;
  std::map<std::uint64_t, std::uint64_t> confirmed_;
};

std::uint64_t last_seed = 0;

void tell_with_liar(bool is_member) {
  Told told;
  std::signal(SIGABRT, [](int) { std::fprintf(stderr, "the liar ended a process: TGD_SEED=%lu\n", last_seed); });
  for (const std::uint64_t seed : seeds(kSeeds)) {
    TG_SEED(seed);
    last_seed = seed;
    LiarSchedule(seed, is_member, told).run();
    if (testing::Test::HasFailure()) break;
  }
  std::signal(SIGABRT, SIG_DFL);
  std::printf(
      "%zu lies, %zu of them refused at decoding; %zu views, %zu joins, %zu runs with an end, %zu with the liar\n",
      told.frames, told.refused, told.changes, told.joins, told.completed, told.liar_members);
}

TEST(Liar, OfNoViewEndsNoProcessAndChangesNoView) { tell_with_liar(false); }
TEST(Liar, AsAMemberEndsNoProcess) { tell_with_liar(true); }

}  // namespace
}  // namespace tg::simulation
