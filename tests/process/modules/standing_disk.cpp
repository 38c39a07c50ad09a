// Preloaded into a tgd: its disk stands still while the file named by STANDING_DISK is there. What changes a disk waits
// until it is gone, as on a frozen file system; reading, sockets and the standard streams go on.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>

namespace {

void wait() {
  static const char* const flag = std::getenv("STANDING_DISK");
  while (flag != nullptr && ::access(flag, F_OK) == 0) ::usleep(10'000);
}

void wait_for(int descriptor) {
  struct stat file = {};
  if (descriptor > STDERR_FILENO && ::fstat(descriptor, &file) == 0 && S_ISREG(file.st_mode)) wait();
}

template <class Function>
Function* next(const char* name, Function* /*its type*/) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

using Open = int(const char*, int, ...);

int opened(const char* name, const char* path, int flags, va_list more) {
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  if ((flags & (O_CREAT | O_TRUNC)) != 0) wait();
  return next(name, static_cast<Open*>(nullptr))(path, flags, mode);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const int descriptor = opened("open", path, flags, more);
  va_end(more);
  return descriptor;
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const int descriptor = opened("open64", path, flags, more);
  va_end(more);
  return descriptor;
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  wait_for(descriptor);
  return next("write", &write)(descriptor, bytes, count);
}

ssize_t pwrite(int descriptor, const void* bytes, size_t count, off_t offset) {
  wait_for(descriptor);
  return next("pwrite", &pwrite)(descriptor, bytes, count, offset);
}

ssize_t pwrite64(int descriptor, const void* bytes, size_t count, off64_t offset) {
  wait_for(descriptor);
  return next("pwrite64", &pwrite64)(descriptor, bytes, count, offset);
}

int fsync(int descriptor) {
  wait();
  return next("fsync", &fsync)(descriptor);
}

int rename(const char* from, const char* to) noexcept {
  wait();
  return next("rename", &rename)(from, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  wait();
  return next("renameat2", &renameat2)(from_folder, from, to_folder, to, flags);
}

int mkdir(const char* path, mode_t mode) noexcept {
  wait();
  return next("mkdir", &mkdir)(path, mode);
}

int unlink(const char* path) noexcept {
  wait();
  return next("unlink", &unlink)(path);
}
}
