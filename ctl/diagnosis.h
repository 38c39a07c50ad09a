// Why nobody answers at an address: whether its name resolves, whether anything listens there, and what that says.
// Tried over plain sockets after an ask has failed; ends within kDiagnosisMs, whatever the resolver or the network
// does.
#pragma once

#include <string>

namespace tg::ctl {

inline constexpr int kDiagnosisMs = 1000;

// address: host:port as Client takes it. A sentence that ends with the next action.
std::string why_silent(const std::string& address);

}  // namespace tg::ctl
