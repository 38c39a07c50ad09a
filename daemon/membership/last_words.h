// Connections that broke in a run. A peer's last words (a goodbye, a report, the cause of its failure) may arrive just
// after its connection broke, so it is given up a moment later. Pure; node's thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "schema/place.h"

namespace tg::daemon {

class LastWords {
 public:
  static constexpr std::uint64_t kPatienceMs = 300;
  static constexpr std::uint64_t kRekeyMs = 3'000;  // for a connection that comes back with another cluster key

  struct Gone {
    Seat peer;
    std::string message;    // what is said of it
    bool up_again = false;  // back already, without the frames that were on their way
  };
  void broke(Seat peer, std::string message, std::uint64_t now_ms, bool rekeys = false) {
    broken_[peer] = {{peer, std::move(message)}, now_ms, rekeys ? kRekeyMs : kPatienceMs};
  }
  std::vector<Seat> broken() const;  // whose time has not passed
  // False if that connection had not broken.
  bool came_back(Seat peer);
  // The connections whose time has passed.
  std::vector<Gone> take_due(std::uint64_t now_ms);
  std::vector<Gone> take_all();

 private:
  struct Broken {
    Gone gone;
    std::uint64_t since_ms = 0, patience_ms = kPatienceMs;
  };
  std::map<Seat, Broken> broken_;
};

}  // namespace tg::daemon
