// The identity of this build: nodes compare it in their hello, both programs print it with --version. Nodes with
// different builds never share a run, because replicas have to agree bit for bit. kProtocolVersion (limits.h) decides
// whether they can talk to each other at all.
#pragma once

#include <string>

namespace tg::schema {

// The version and a hash over the sources: "0.1.0+3f2a9c1b2d4e" (cmake/TgdBuildId.cmake).
std::string build_id();

}  // namespace tg::schema
