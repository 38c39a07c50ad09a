// Reads one member's files of a run, which may be active, through the asked node. Main thread only.
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
  // The node with the files to read: the asked node if it is a member, else the first member.
  static std::string choose_node(const std::string& asked, const schema::RunStatus& run);

  const std::string& node() const { return node_; }
  // Reads a whole file; one with more than `max` bytes is refused.
  Result<std::string> text(const char* file, std::uint64_t max);
  // Reads the lines that were added since the last call; a file with more than `max` bytes is refused.
  static constexpr std::uint64_t kMaxMetricsBytes = std::uint64_t{1} << 34;
  Status read_metrics(std::uint64_t max = kMaxMetricsBytes);
  const Curves& curves() const { return curves_; }

 private:
  Status read_from(const char* file, std::uint64_t offset, std::uint64_t max,
                   const std::function<void(const std::string&)>& take);
  Status parse_lines();

  Client& client_;
  const std::string run_, node_;
  std::uint64_t offset_ = 0;
  std::string rest_;
  Curves curves_;
};

}  // namespace tg::ctl
