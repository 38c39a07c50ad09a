// DisconnectGrace delays the loss of a peer whose connection broke during a run: its last frames (a goodbye, a report,
// the cause of its failure) may arrive just afterwards. Pure; node's thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "schema/place.h"

namespace tg::daemon {

class DisconnectGrace {
 public:
  static constexpr std::uint64_t kGraceMs = 300;
  static constexpr std::uint64_t kRekeyMs = 3'000;  // if it comes back with another cluster key

  struct Disconnect {
    Seat peer;
    std::string message;    // the cause, for people
    bool up_again = false;  // reconnected, without the frames that were in flight
  };
  void on_disconnected(Seat peer, std::string message, std::uint64_t now_ms, bool rekeys = false) {
    disconnects_[peer] = {{peer, std::move(message)}, now_ms, rekeys ? kRekeyMs : kGraceMs};
  }
  std::vector<Seat> disconnected() const;  // within their grace
  // False if the peer had no disconnect.
  bool on_reconnected(Seat peer);
  // Those whose grace is over.
  std::vector<Disconnect> take_due(std::uint64_t now_ms);
  std::vector<Disconnect> take_all();

 private:
  struct Broken {
    Disconnect disconnect;
    std::uint64_t since_ms = 0, grace_ms = kGraceMs;
  };
  std::map<Seat, Broken> disconnects_;
};

}  // namespace tg::daemon
