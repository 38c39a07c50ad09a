// The flow of frames between exchanges: several of them wired together, buckets that become ready at any time, tasks
// that are carried out in any order, payloads of any size, windows of a few chunks. No kernels: only which member
// may send what and when, which one is waited for, and that no member waits for ever.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "daemon/exchange/exchange.h"
#include "tests/seeds.h"
#include "tests/simulation/exchange/measure_all.h"
#include "tests/simulation/exchange/plain_segments.h"
#include "tests/simulation/exchange/plain_waiting.h"
#include "tests/simulation/simulator/cluster.h"
#include "tests/simulation/simulator/random.h"

namespace tg::daemon {
namespace {

using simulation::Random;

constexpr std::size_t kMaxPayload = 200;  // bytes

// Three buckets, one of them with many more chunks than there may be open frames.
const engine::SegmentTable& segments() {
  static const engine::SegmentTable table = simulation::plain_segments({700, 90 * 512, 3 * 512});
  return table;
}

struct Mesh {
  struct Letter {
    schema::FrameHeader header;
    schema::FrameBody body;
  };
  Layout layout;
  Random random;
  std::vector<std::unique_ptr<const Members>> members;
  Per<Rank, std::unique_ptr<Exchange>> exchanges;
  Per<Rank, Per<Rank, std::deque<Letter>>> links;  // [from][to], in order
  Per<Rank, std::vector<Task>> in_flight;
  Per<Rank, std::size_t> ready, committed;  // buckets, steps
  std::vector<std::byte> bytes = std::vector<std::byte>(kMaxPayload);
  std::size_t most_on_their_way = 0;  // on one link
  std::size_t most_sent = 0;          // frames of one member that a peer has not taken, each counted once
  std::optional<Rank> deaf;           // it takes nothing

  Mesh(std::size_t count, schema::ExchangeKind kind, std::size_t window, std::uint64_t seed)
      : layout(make(count, kind, window)),
        random(seed),
        links(count, Per<Rank, std::deque<Letter>>(count)),
        in_flight(count),
        ready(count),
        committed(count) {
    Per<Seat, std::string> names;
    for (std::size_t r = 0; r < count; ++r) names.push_back("node-" + std::to_string(r));
    for (const Seat seat : places<Seat>(count)) {
      members.push_back(
          std::make_unique<const Members>(Members::of(77, View::of_all(count), seat, names, {"one", "two", "three"})));
      exchanges.push_back(std::make_unique<Exchange>(*members.back(), segments(), CodeRule{}));
    }
    for (const auto& exchange : exchanges) exchange->begin_round(layout, {});
  }
  auto ranks() const { return exchanges.places(); }
  static Layout make(std::size_t count, schema::ExchangeKind kind, std::size_t window) {
    LayoutOptions options;
    options.members = count;
    options.exchange = kind;
    options.bucket_parameters = 600;
    options.chunk_parameters = 512;
    Layout layout = make_layout(segments(), options);
    layout.window_bytes = window;
    return layout;
  }
  void apply_actions(Rank self) {
    for (auto actions = exchanges[self]->take_actions(); !actions.empty(); actions = exchanges[self]->take_actions())
      for (const ExchangeAction& action : actions) {
        if (const auto* send = std::get_if<Send>(&action)) {
          for (const Rank to : send->to) links[self][to].push_back({send->header, send->body});
        } else if (std::holds_alternative<CommitRound>(action)) {
          ++committed[self];
        } else if (std::holds_alternative<FailRun>(action)) {
          ADD_FAILURE() << std::get<FailRun>(action).cause.message;
        }
      }
  }
  std::size_t send_chunk(Rank self, std::size_t chunk, const std::vector<Rank>& to) {
    const bool total = layout.sharded() && layout.chunks[chunk].owner == self;
    const auto payload = std::span<const std::byte>(bytes).first(random.between(1, kMaxPayload));
    for (const Rank rank : to) {
      links[self][rank].push_back(
          {{77, 1, 0},
           schema::Chunk{static_cast<std::uint32_t>(chunk),
                         total ? schema::ChunkPhase::kTotal : schema::ChunkPhase::kContribution,
                         total ? schema::PayloadFormat::kSumsRaw : schema::PayloadFormat::kCodesRaw, payload}});
    }
    count(self);
    return payload.size();
  }
  void count(Rank self) {
    std::size_t contributions = 0;
    std::map<std::uint32_t, std::size_t> totals;
    for (const std::deque<Letter>& link : links[self]) {
      std::size_t on_link = 0;
      for (const Letter& letter : link) {
        const auto* one = std::get_if<schema::Chunk>(&letter.body);
        if (one == nullptr) continue;
        on_link += one->payload.size();
        if (one->phase == schema::ChunkPhase::kTotal)
          totals[one->chunk] = one->payload.size();
        else
          contributions += one->payload.size();
      }
      most_on_their_way = std::max(most_on_their_way, on_link);
    }
    std::size_t sent = contributions;
    for (const auto& total : totals) sent += total.second;
    most_sent = std::max(most_sent, sent);
  }
  void finish(Rank self, const Task& task) {
    Exchange& exchange = *exchanges[self];
    if (const auto* slices = std::get_if<Measure>(&task)) {
      measure(exchange, *slices);
    } else if (const auto* contribute = std::get_if<Contribute>(&task)) {
      exchange.on_contributed(*contribute, send_chunk(self, contribute->chunk, contribute->to));
    } else if (const auto* reduce = std::get_if<Reduce>(&task)) {
      if (!reduce->to.empty())
        exchange.on_total_sent(reduce->chunk, reduce->to, send_chunk(self, reduce->chunk, reduce->to));
      exchange.on_applied(reduce->chunk);
    } else {
      exchange.on_applied(std::get<Apply>(task).chunk);
    }
    apply_actions(self);
  }
  void next_bucket(Rank self) {
    exchanges[self]->on_gradient_ready(ready[self]++, 0);
    apply_actions(self);
  }
  void deliver(Rank from, Rank to) {
    const Letter letter = std::move(links[from][to].front());
    links[from][to].pop_front();
    exchanges[to]->on_frame(from, letter.header, letter.body, nullptr);
    apply_actions(to);
  }
  // Half of several threads have a waiting task.
  std::optional<Task> next_task(Rank self, std::size_t most_in_flight) {
    Exchange& exchange = *exchanges[self];
    const bool idle = 2 * in_flight[self].size() < most_in_flight;
    const ThreadRole role = most_in_flight == 1 ? ThreadRole::kOnlyThread
                            : idle              ? ThreadRole::kIdleThread
                                                : ThreadRole::kBusyThread;
    std::optional<Task> task = exchange.next_task(role);
    apply_actions(self);
    if (role != ThreadRole::kOnlyThread && task && std::holds_alternative<Measure>(*task)) {
      EXPECT_TRUE(idle) << "statistics wait behind a task";
      EXPECT_FALSE(exchange.next_task(ThreadRole::kBusyThread)) << "statistics go before what could run";
    }
    return task;
  }
  // Something that can happen, drawn among all of it; false if nothing can.
  bool step(std::size_t most_in_flight) {
    struct Choice {
      Rank self, from;
      char what;
    };
    std::vector<Choice> choices;
    for (const Rank r : ranks()) {
      if (ready[r] < layout.buckets.size()) choices.push_back({r, r, 'b'});
      if (!in_flight[r].empty()) choices.push_back({r, r, 'f'});
      if (in_flight[r].size() < most_in_flight) choices.push_back({r, r, 'w'});
      for (const Rank from : ranks())
        if (!links[from][r].empty() && r != deaf) choices.push_back({r, from, 'd'});
    }
    while (!choices.empty()) {
      const std::size_t index = random.between(0, choices.size() - 1);
      const Choice one = choices[index];
      choices.erase(choices.begin() + static_cast<std::ptrdiff_t>(index));
      if (one.what == 'b') {
        next_bucket(one.self);
        return true;
      }
      if (one.what == 'd') {
        deliver(one.from, one.self);
        return true;
      }
      if (one.what == 'f') {
        auto& works = in_flight[one.self];
        const std::size_t which = random.between(0, works.size() - 1);
        const Task work = std::move(works[which]);
        works.erase(works.begin() + static_cast<std::ptrdiff_t>(which));
        finish(one.self, work);
        return true;
      }
      if (std::optional<Task> work = next_task(one.self, most_in_flight)) {
        in_flight[one.self].push_back(*std::move(work));
        return true;
      }
    }
    return false;
  }
  void expect_waiting_as_plain(Rank self) const {
    const Waiting waiting = exchanges[self]->waiting();
    const PlainWaiting plain(*exchanges[self]);
    EXPECT_STREQ(to_word(waiting.phase), to_word(plain.phase)) << "node " << self.index();
    EXPECT_EQ(waiting.ranks, std::vector<Rank>(plain.ranks.begin(), plain.ranks.end())) << "node " << self.index();
  }
  // What exchange_bytes() counts, with a payload beyond for each task that was being made.
  void expect_within_windows(std::size_t most_in_flight) const {
    const std::size_t peers = layout.members - 1, beyond = most_in_flight * kMaxPayload;
    const std::size_t of_totals = layout.sharded() ? schema::kMaxWindowsOfTotals : 0;
    EXPECT_LE(most_on_their_way, std::max<std::size_t>(of_totals, 1) * layout.window_bytes + beyond);
    EXPECT_LE(most_sent, (peers + of_totals) * layout.window_bytes + (peers + 1) * beyond);
  }
  std::string stuck() const {
    std::string text;
    for (const Rank r : ranks()) {
      text += "node " + std::to_string(r.index()) + (committed[r] ? " committed;" : " waits for");
      if (committed[r] == 0)
        for (const Rank rank : exchanges[r]->waiting().ranks) text += " " + std::to_string(rank.index());
      text += "; ";
    }
    return text;
  }
};

TEST(ExchangeFlow, NoMemberWaitsForEver) {
  for (const std::uint64_t seed : seeds(300)) {
    Random random(seed);
    const std::size_t count = random.between(2, 9), most_in_flight = random.between(1, 5);
    const auto kind = random.one_in(3) ? schema::ExchangeKind::kDirect : schema::ExchangeKind::kSharded;
    const std::size_t window = random.between(1, 3 * kMaxPayload);
    TG_SEED(seed);
    Mesh mesh(count, kind, window, seed);
    while (mesh.step(most_in_flight))
      if (random.one_in(4)) mesh.expect_waiting_as_plain(Rank(random.between(0, count - 1)));
    EXPECT_EQ(mesh.committed, (Per<Rank, std::size_t>(count, 1))) << mesh.stuck();
    mesh.expect_within_windows(most_in_flight);
    if (testing::Test::HasFailure()) return;
  }
}

// The others come as far as the windows let them, wait for it, and continue with it.
TEST(ExchangeFlow, APeerThatTakesNothingGetsNoMoreThanItsWindows) {
  std::size_t past_a_window = 0;
  for (const std::uint64_t seed : seeds(60)) {
    Random random(seed);
    const std::size_t count = random.between(3, 8), most_in_flight = random.between(1, 5), window = 3 * kMaxPayload;
    const auto kind = random.one_in(4) ? schema::ExchangeKind::kDirect : schema::ExchangeKind::kSharded;
    TG_SEED(seed);
    Mesh mesh(count, kind, window, seed);
    for (std::size_t i = random.between(100 * count, 300 * count); i > 0; --i) mesh.step(most_in_flight);
    mesh.deaf = Rank(random.between(0, count - 1));
    while (mesh.step(most_in_flight)) continue;
    for (const Rank r : mesh.ranks()) {
      if (r == mesh.deaf || mesh.committed[r] > 0) continue;
      mesh.expect_waiting_as_plain(r);
      EXPECT_FALSE(mesh.exchanges[r]->waiting().ranks.empty());
    }
    past_a_window += mesh.most_on_their_way > window + most_in_flight * kMaxPayload;
    mesh.deaf.reset();
    while (mesh.step(most_in_flight)) continue;
    EXPECT_EQ(mesh.committed, (Per<Rank, std::size_t>(count, 1))) << mesh.stuck();
    mesh.expect_within_windows(most_in_flight);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(past_a_window, 5u) << "totals pass a member that is behind";
}

// In every turn each member has an owner of its own: no link carries what all send at once.
TEST(ExchangeFlow, NoTwoMembersBeginWithTheSameOwner) {
  for (std::size_t count = 2; count <= 9; ++count) {
    Mesh mesh(count, schema::ExchangeKind::kSharded, 1 << 20, 1);
    for (const Rank r : mesh.ranks()) {
      for (std::size_t b = 0; b < mesh.layout.buckets.size(); ++b) mesh.next_bucket(r);
      measure_all(*mesh.exchanges[r]);
      mesh.apply_actions(r);
    }
    for (const Rank from : mesh.ranks())
      for (const Rank to : mesh.ranks())
        while (!mesh.links[from][to].empty()) mesh.deliver(from, to);
    Per<Rank, std::vector<Rank>> owners(count);  // to which a member sends chunks of the large bucket, in order
    for (const Rank r : mesh.ranks()) {
      while (const auto task = mesh.exchanges[r]->next_task(ThreadRole::kOnlyThread)) {
        const ChunkLayout& chunk = mesh.layout.chunks[std::get<Contribute>(*task).chunk];
        if (chunk.bucket == 1) owners[r].push_back(chunk.owner);
      }
    }
    const std::size_t turns = 90 / count * (count - 1);  // the last chunks may have fewer owners
    for (std::size_t turn = 0; turn < turns; ++turn) {
      std::set<Rank> met;
      for (const Rank r : mesh.ranks()) met.insert(owners[r].at(turn));
      EXPECT_EQ(met.size(), count) << "turn " << turn << " of " << count << " members";
    }
  }
}

}  // namespace
}  // namespace tg::daemon
