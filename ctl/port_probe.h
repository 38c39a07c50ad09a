// Plain connections: which node and which of its addresses to ask, and the cause where an address has not answered: its
// name, the machine, the port, or the program there. Each ends within kPortProbeMs, whatever the resolver or the
// network does.
#pragma once

#include <string>

#include "kernels/base/status.h"

namespace tg::ctl {

inline constexpr int kPortProbeMs = 1000;
inline constexpr const char* kDefaultAddress = "127.0.0.1:7701";
inline constexpr const char* kPortHint = "is this its control port (the mesh port + 1)?";

struct PortProbe {
  std::string problem;  // ends with the next action
  bool is_zeromq = false;
  bool wants_key = false;  // a ZeroMQ program that accepts only clients with a key
};

// The address of this machine's node: kDefaultAddress, or the local socket of the one tgd where nothing listens there.
// An error names the sockets of several, or of one that belongs to another user.
Result<std::string> own_node();

// The address of a name that accepts connections, in digits; the first one where none does. An address stays as it is.
std::string place_that_accepts(const std::string& address);

// address: host:port as Client takes it; all addresses of a name are tried.
PortProbe probe_port(const std::string& address);

}  // namespace tg::ctl
