// One member's files of a run that may go on, as the asked node hands them out. Main thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ctl/client.h"
#include "ctl/report/curves.h"

namespace tg::ctl {

class RunSource {
 public:
  // The client outlives it.
  RunSource(Client& client, std::string run, std::string node)
      : client_(client), run_(std::move(run)), node_(std::move(node)) {}
  // Whose files are read of the run that was asked for: the asked node's, if it is a member; else the first member's.
  static std::string node_of(const std::string& asked, const schema::RunStatus& run);

  const std::string& node() const { return node_; }
  // A whole file; one of more than so many bytes is refused.
  Result<std::string> text(const char* file, std::uint64_t most);
  // Reads the lines that have been added since the last call; refuses a file of more bytes.
  static constexpr std::uint64_t kMaxMetricsBytes = std::uint64_t{1} << 34;
  Status read_metrics(std::uint64_t most = kMaxMetricsBytes);
  const Curves& curves() const { return curves_; }

 private:
  Status read_on(const char* file, std::uint64_t offset, std::uint64_t most,
                 const std::function<void(const std::string&)>& take);
  Status take_lines();

  Client& client_;
  const std::string run_, node_;
  std::uint64_t offset_ = 0;
  std::string rest_;
  Curves curves_;
};

}  // namespace tg::ctl
