#include "kernels/base/check.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace tg {

void abort_with(const std::string& text) {
  constexpr unsigned kPatienceSeconds = 5;
  ::alarm(kPatienceSeconds);  // SIGALRM kills the process if the next line blocks
  std::fprintf(stderr, "%s\n", text.c_str());
  std::abort();
}

}  // namespace tg
