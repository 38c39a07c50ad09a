// What a list of checks found, one line each on stdout as soon as it is known, for tests/gpu/run to read:
//
//   begin kernels.digest                  (a check that ends the process is the last one that began)
//   ok kernels.digest: 40 ranges, 0.2 s
//   FAIL kernels.digest: 1536 floats from 4096: 0x.. instead of 0x..
//   none bandwidth.digest: 84 us; not judged: ..   (neither right nor wrong: not run, or not judged)
#pragma once

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace tg::gpu {

// What a check found wrong; the text says where.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Why a check can say neither.
struct NotJudged : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void expect(bool right, const std::string& what) {
  if (!right) throw Wrong(what);
}

std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));

struct ReportOptions {
  std::vector<std::string> only;  // names, or their beginnings; empty: all
  std::vector<std::string> skip;  // names
  double seconds = 1e9;           // after that long no check is begun
  bool list = false;              // the names alone
};

class Report {
 public:
  static constexpr int kLost = 4;
  explicit Report(ReportOptions options) : options_(std::move(options)) {}
  // What is printed behind a check that failed.
  void explain(std::function<std::string()> explain) { explain_ = std::move(explain); }
  // check returns its numbers, or throws. One that failed for a device that is lost ends the process with kLost.
  void run(const std::string& name, const std::function<std::string()>& check);
  // 0 all passed, 1 one failed or there was none, 3 none failed and one was not run or not judged.
  int status() const { return failed_ || ran_ == 0 ? 1 : judged_ ? 0 : 3; }
  bool lists() const { return options_.list; }

 private:
  bool wanted(const std::string& name) const;
  double seconds() const;

  const ReportOptions options_;
  std::function<std::string()> explain_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  bool failed_ = false, judged_ = true;  // judged: each of them
  int ran_ = 0;
};

}  // namespace tg::gpu
