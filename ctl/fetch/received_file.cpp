#include "ctl/fetch/received_file.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "engine/storage/sha256.h"
#include "kernels/base/hex.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

constexpr std::size_t kBufferBytes = 1024 * 1024;
constexpr std::uint64_t kMaxHeaderBytes = std::uint64_t{1} << 24;  // a safetensors header

Error damaged(std::string what) { return {ErrorKind::kCorrupt, std::move(what)}; }

Result<FileMark> mark_of_rest(std::ifstream& file, const std::string& path) {
  Sha256 hash;
  FileMark mark;
  std::vector<char> buffer(kBufferBytes);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())), file.gcount() > 0) {
    hash.add(std::as_bytes(std::span(buffer).first(static_cast<std::size_t>(file.gcount()))));
    mark.bytes += static_cast<std::uint64_t>(file.gcount());
  }
  if (file.bad()) return Error{ErrorKind::kIo, path + " cannot be read again"};
  mark.sha256 = hash.hex();
  return mark;
}

// Leaves the file at the beginning of the values.
Result<nlohmann::json> read_header(std::ifstream& file) {
  std::uint64_t header_bytes = 0;
  if (!file.read(reinterpret_cast<char*>(&header_bytes), sizeof header_bytes) || header_bytes > kMaxHeaderBytes)
    return damaged("it has no header");
  std::string header(header_bytes, '\0');
  if (!file.read(header.data(), static_cast<std::streamsize>(header_bytes))) return damaged("it has no header");
  try {
    return nlohmann::json::parse(header);
  } catch (const nlohmann::json::exception& error) {
    return damaged(std::string("its header is not valid: ") + error.what());
  }
}

Status check_metadata(const nlohmann::json& about, const ModelState& state, const std::string& values_sha256) {
  const auto differs = [&](const char* key, const std::string& wanted) -> Status {
    const std::string found = about.at(key).get<std::string>();
    if (found == wanted) return {};
    return damaged(std::string("it has ") + key + " " + found + " instead of " + wanted);
  };
  if (const auto run = about.at("run").get<std::string>(); !schema::is_set_aside(state.run, run))
    if (Status status = differs("run", state.run); !status) return status;
  if (Status status = differs("step", std::to_string(state.step)); !status) return status;
  if (Status status = differs("digest", hex_digest(state.digest)); !status) return status;
  if (!about.contains("values-sha256")) return {};  // an older tgd wrote it
  const std::string recorded = about.at("values-sha256").get<std::string>();
  if (recorded == values_sha256) return {};
  return damaged("the SHA-256 of its values is " + values_sha256 + ", its header has " + recorded);
}

}  // namespace

Result<FileMark> mark_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ErrorKind::kIo, path + " cannot be read again"};
  return mark_of_rest(file, path);
}

Status check_mark(const FileMark& received, const FileMark& recorded) {
  if (received.bytes != recorded.bytes)
    return damaged("it has " + std::to_string(received.bytes) + " bytes instead of " + std::to_string(recorded.bytes));
  if (received.sha256 != recorded.sha256)
    return damaged("its SHA-256 is " + received.sha256 + " instead of " + recorded.sha256);
  return {};
}

Status check_model(const std::string& path, const ModelState& state) {
  std::ifstream file(path, std::ios::binary);
  const Result<nlohmann::json> header = read_header(file);
  if (!header) return header.error();
  const Result<FileMark> values = mark_of_rest(file, path);
  if (!values) return values.error();
  try {
    return check_metadata(header->at("__metadata__"), state, values->sha256);
  } catch (const nlohmann::json::exception& error) {
    return damaged(std::string("its header is not valid: ") + error.what());
  }
}

Result<std::string> metadata_value(const std::string& path, const char* name) {
  std::ifstream file(path, std::ios::binary);
  const Result<nlohmann::json> header = read_header(file);
  if (!header) return header.error();
  try {
    return header->at("__metadata__").value(name, "");
  } catch (const nlohmann::json::exception& error) {
    return damaged(std::string("its header is not valid: ") + error.what());
  }
}

}  // namespace tg::ctl
