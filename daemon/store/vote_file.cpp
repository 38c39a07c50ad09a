#include "daemon/store/vote_file.h"

#include <filesystem>
#include <span>
#include <system_error>

#include "engine/storage/atomic_file.h"
#include "engine/storage/sha256.h"
#include "kernels/base/regular_file.h"
#include "schema/described/json_form.h"

namespace tg::daemon {
namespace {

constexpr std::uint64_t kMaxBytes = 256 * 1024;  // two views of kMaxMembers each, with their reasons
constexpr std::size_t kRoomBytes =
    16 * 1024;  // votes are padded to a multiple, so that the next one needs no more space

std::string hash_of(std::string_view text) {
  Sha256 hash;
  hash.add(std::as_bytes(std::span(text)));
  return hash.hex();
}

Result<VoterState> vote_from(const std::string& content) {
  const std::size_t end = content.find('\n');
  if (end == std::string::npos || content.substr(end + 1) != hash_of(content.substr(0, end)) + "\n")
    return Error{ErrorKind::kCorrupt, "its hash does not match"};
  return schema::parse_kept<VoterState>(content.substr(0, end), schema::JsonReader::Missing::kError);
}

}  // namespace

Status write_vote(const std::string& run_directory, const VoterState& vote) {
  std::error_code ignored;  // the next call reports a failure
  std::filesystem::create_directory(run_directory, ignored);
  std::string line = schema::to_json(vote, schema::JsonView::kKept)
                         .dump(-1, ' ', false, schema::OrderedJson::error_handler_t::replace);
  const std::size_t bytes = line.size() + 1 + hash_of("").size() + 1,
                    short_of = kRoomBytes - 1 - (bytes - 1) % kRoomBytes;
  line.append(short_of, ' ');
  return engine::exchange_file(run_directory + "/" + kVoteFile, line + "\n" + hash_of(line) + "\n");
}

Result<VoterState> read_vote(const std::string& run_directory) {
  const std::string path = run_directory + "/" + kVoteFile;
  const Result<RegularFile> file = RegularFile::open(path, RegularFile::Links::kRefuse);
  if (!file) return Error{file.error().kind, "cannot read " + path + ": " + file.error().message};
  if (file->bytes() > kMaxBytes) return Error{ErrorKind::kCorrupt, path + " is damaged: it is too large"};
  std::string content(file->bytes(), '\0');
  const Result<std::size_t> got = file->read(0, std::as_writable_bytes(std::span(content)));
  if (!got) return Error{ErrorKind::kIo, "cannot read " + path + ": " + got.error().message};
  content.resize(*got);
  Result<VoterState> vote = vote_from(content);
  if (!vote.ok())
    return Error{ErrorKind::kCorrupt, path + " is damaged: " + vote.error().message + "; this node does not vote"};
  return vote;
}

}  // namespace tg::daemon
