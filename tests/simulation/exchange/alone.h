// The exchange of one member in a step with small chunks; a test plays its peers and its threads.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "daemon/exchange/exchange.h"
#include "tests/simulation/exchange/measure_all.h"
#include "tests/simulation/training/tiny_training.h"

namespace tg::daemon {

inline constexpr std::size_t kWide = 1 << 20;  // a window that nothing fills here

inline constexpr std::size_t kPayload = 100;       // bytes of every chunk here
inline constexpr std::size_t kExpected = 512 / 6;  // what the exchange expects of one that is being made

struct Alone {
  Layout layout;
  Members members;
  Exchange exchange;
  std::size_t ready = 0;  // buckets

  // The first `open` buckets are announced by all, the next ones not even ready.
  explicit Alone(schema::ExchangeKind kind, std::size_t window = 2 * kPayload,
                 const Per<Seat, std::string>& names = {"node-a", "node-b"}, std::size_t open = schema::kMaxBuckets)
      : layout(make(kind, window, names.size())),
        members(Members::of(77, View::of_all(names.size()), Seat(0), names, simulation::tiny_segment_names())),
        exchange(members, simulation::tiny_segments(), CodeRule{}) {
    exchange.begin_round(layout, {});
    while (ready < std::min(open, layout.buckets.size())) bucket_ready();
    measure_all(exchange);
    for (std::size_t b = 0; b < ready; ++b) announced_by_peers(b);
    (void)exchange.take_actions();
  }
  void bucket_ready() { exchange.on_gradient_ready(ready++, 0); }
  void announced_by_peers(std::size_t bucket) {
    const std::vector<float> scalers(layout.buckets[bucket].coded_segments.size(), 1.0f);
    for (const Rank peer : members.others()) {
      if (bucket == 0)
        from(peer, schema::StepFrame{0, 0, 0, 0, {}, scalers});
      else
        from(peer, schema::Scalers{static_cast<std::uint32_t>(bucket), 0, 0, scalers});
    }
  }
  static Layout make(schema::ExchangeKind kind, std::size_t window, std::size_t members) {
    LayoutOptions options;
    options.members = members;
    options.exchange = kind;
    options.bucket_parameters = 1'000;
    options.chunk_parameters = 512;
    Layout layout = make_layout(simulation::tiny_segments(), options);
    layout.window_bytes = window;
    return layout;
  }
  void from(Rank peer, const schema::FrameBody& body) { exchange.on_frame(peer, {77, 1, 0}, body, nullptr); }
  void from_peer(const schema::FrameBody& body) { from(Rank(1), body); }
  // Sends as long as there is something that may be sent.
  std::size_t contribute_all() {
    std::size_t sent = 0;
    while (const auto work = exchange.next_task(ThreadRole::kOnlyThread)) {
      const auto* contribute = std::get_if<Contribute>(&*work);
      if (contribute == nullptr) break;
      exchange.on_contributed(*contribute, kPayload);
      ++sent;
    }
    return sent;
  }
  std::optional<schema::Fail> failure() {
    for (const ExchangeAction& action : exchange.take_actions())
      if (const auto* fail = std::get_if<FailRun>(&action)) return fail->cause;
    return std::nullopt;
  }
  void codes_from_peer(std::size_t chunk, std::size_t bytes) { codes_from(Rank(1), chunk, bytes); }
  void codes_from(Rank peer, std::size_t chunk, std::size_t bytes) {
    payload.resize(bytes);
    from(peer, schema::Chunk{static_cast<std::uint32_t>(chunk), schema::ChunkPhase::kContribution,
                             schema::PayloadFormat::kCodesRaw, payload});
  }
  void total_from_owner(std::size_t chunk, std::size_t bytes) {
    payload.resize(bytes);
    from(layout.chunks[chunk].owner, schema::Chunk{static_cast<std::uint32_t>(chunk), schema::ChunkPhase::kTotal,
                                                   schema::PayloadFormat::kSumsRaw, payload});
  }
  std::vector<std::byte> payload;
};

}  // namespace tg::daemon
