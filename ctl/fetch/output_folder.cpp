#include "ctl/fetch/output_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace tg::ctl {
namespace {

namespace fs = std::filesystem;

// If permission is denied, the error has the owner and mode of the folder, or of the nearest existing one above it.
Error refused_folder(const std::string& what, const std::string& folder, std::error_code cause) {
  Error error{ErrorKind::kIo, folder + " cannot be " + what + ": " + cause.message()};
  std::error_code code;
  fs::path there = fs::absolute(folder, code);
  while (!fs::exists(there, code) && there.has_relative_path()) there = there.parent_path();
  struct stat about {};
  if (cause != std::errc::permission_denied || ::stat(there.c_str(), &about) != 0) return error;
  char mode[8];
  std::snprintf(mode, sizeof mode, "%o", about.st_mode & 07777u);
  error.message += "; " + there.string() + " belongs to user " + std::to_string(about.st_uid) + " and has mode " +
                   mode + ", tgctl runs as user " + std::to_string(::geteuid()) +
                   ": make it writable, or give another folder with -o";
  return error;
}

}  // namespace

Status prepare_folder(const std::string& folder) {
  std::error_code code;
  if (fs::exists(folder, code) && !fs::is_directory(folder, code))
    return Error{ErrorKind::kUsage, folder + " is a file; -o takes a folder"};
  fs::create_directories(folder, code);
  if (code) return refused_folder("created", folder, code);
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return refused_folder("written to", folder, {errno, std::generic_category()});
  return {};
}

}  // namespace tg::ctl
