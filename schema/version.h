// The identity of this build: nodes compare it in their hello, both programs print it with --version. Nodes of
// different builds share no run, even if they understand each other: their replicas would have to agree bit for bit.
// Whether they understand each other is decided by kProtocolVersion (limits.h).
#pragma once

#include <string>

namespace tg::schema {

// The version and a hash over the sources: "0.1.0+3f2a9c1b2d4e" (cmake/TgdBuildId.cmake).
std::string build_id();

}  // namespace tg::schema
