// tgctl's exit codes, and the code for each kind of error. Scripts depend on them; append only.
#pragma once

#include "kernels/base/status.h"

namespace tg::ctl {

enum ExitCode : int {
  kOk = 0,
  kError = 1,
  kUsage = 2,  // or an invalid job
  kUnreachable = 3,
  kNoSuchRun = 4,
  kRunFailed = 5,
  kNotSaved = 6,         // the run ended, but not every member has saved its state
  kForbidden = 7,        // a wrong key, or one without the right
  kMeshIncomplete = 8,   // status --check: not every node is up
  kChecksFailed = 9,     // doctor: a check failed
  kRunInterrupted = 10,  // the run is INTERRUPTED; tgctl resume continues it
  kTimedOut = 124,
  kInterrupted = 130,
};

struct ExitMeaning {
  ExitCode code;
  const char* meaning;
};
inline constexpr ExitMeaning kExitMeanings[] = {{kOk, "ok"},
                                                {kError, "error"},
                                                {kUsage, "usage or invalid job"},
                                                {kUnreachable, "daemon unreachable"},
                                                {kNoSuchRun, "no such run"},
                                                {kRunFailed, "run failed"},
                                                {kNotSaved, "not saved"},
                                                {kForbidden, "wrong key"},
                                                {kMeshIncomplete, "mesh incomplete (status --check)"},
                                                {kChecksFailed, "a check failed (doctor)"},
                                                {kRunInterrupted, "run INTERRUPTED (resume)"},
                                                {kTimedOut, "timed out (wait, stop, leave)"},
                                                {kInterrupted, "interrupted"}};

inline ExitCode exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kInvalidJob:
      return kUsage;
    case ErrorKind::kUnreachable:
      return kUnreachable;
    case ErrorKind::kNotFound:
      return kNoSuchRun;
    case ErrorKind::kRunFailed:
      return kRunFailed;
    case ErrorKind::kForbidden:
      return kForbidden;
    case ErrorKind::kFailed:
    case ErrorKind::kRefused:
    case ErrorKind::kCorrupt:
    case ErrorKind::kIo:
    case ErrorKind::kTimeout:  // a node's deadline; 124 is only for tgctl's own wait
      return kError;
  }
  return kError;
}

}  // namespace tg::ctl
