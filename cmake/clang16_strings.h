// Included before every source that clang 16 sees (tests/fuzz/run; tests/style/check has the same): Cap'n Proto's
// headers compare a literal with a StringPtr by C++20's reversed operators, which clang 16 does not find.
#pragma once

#include <kj/string.h>

namespace kj {
inline bool operator==(const char* a, const StringPtr& b) { return b == StringPtr(a); }
inline bool operator!=(const char* a, const StringPtr& b) { return b != StringPtr(a); }
}  // namespace kj
