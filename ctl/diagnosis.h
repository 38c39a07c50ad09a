// Finds out why an address does not answer: whether its name resolves, whether anything listens, and what it says.
// Tried over plain sockets after an ask has failed; ends within kDiagnosisMs, whatever the resolver or the network
// does.
#pragma once

#include <string>

namespace tg::ctl {

inline constexpr int kDiagnosisMs = 1000;
inline constexpr const char* kIsItThePort = "is this its control port (the mesh port + 1)?";

struct Silence {
  std::string why;  // a sentence that ends with the next action
  bool is_zeromq = false;
  bool wants_key = false;  // a ZeroMQ program that accepts only clients with a key
};

// address: host:port as Client takes it.
Silence why_silent(const std::string& address);

}  // namespace tg::ctl
