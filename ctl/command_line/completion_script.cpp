// The shells' side of completion: hands the words over, and lets the shell itself find files.
#include "ctl/command_line/completion.h"

namespace tg::ctl {
namespace {

// What `tgctl complete` prints: a line that names the place (complete.cpp), then a candidate on each line.

// bash takes COMP_WORDS apart at = and :, so the line is read again. What completes behind a = is the value alone.
constexpr const char* kBash = R"sh(# bash completion for tgctl and tgd; printed by: tgctl completion bash
_tgctl() {
  local tgctl=tgctl line=${COMP_LINE:0:COMP_POINT} words answer value
  [[ ${1##*/} != tgctl ]] || tgctl=$1
  read -ra words <<<"$line"
  [[ $line != *[[:space:]] ]] || words+=('')
  mapfile -t answer < <("$tgctl" complete "${1##*/}" "${words[@]:1}" 2>/dev/null)
  value=${words[-1]##*=}
  COMPREPLY=("${answer[@]:1}")
  case ${answer[0]-} in
    :file) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$value") ;;
    :folder) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$value") ;;
    :job) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$value"; compgen -f -X '!*.job' -- "$value") ;;
    *) [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
       return 0 ;;
  esac
  compopt -o filenames 2>/dev/null
  return 0
}
complete -F _tgctl tgctl tgd
)sh";

constexpr const char* kZsh = R"sh(#compdef tgctl tgd
# zsh completion for tgctl and tgd; printed by: tgctl completion zsh
_tgctl() {
  local tgctl=tgctl program=${words[1]:t} place
  local -a answer typed
  [[ $program != tgctl ]] || tgctl=${(Q)words[1]}
  typed=("${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}")
  answer=("${(@f)$("$tgctl" complete "$program" "${(@)typed}" 2>/dev/null)}")
  place=$answer[1]
  answer=("${(@)answer[2,-1]}")
  compset -P '*='
  compadd -- ${answer:#*=}
  compadd -S '' -- ${(M)answer:#*=}
  case $place in
    :file) _files ;;
    :folder) _files -/ ;;
    :job) _files -g '*.job' ;;
  esac
}
if [[ $funcstack[1] == _tgctl ]]; then _tgctl "$@"; else compdef _tgctl tgctl tgd; fi
)sh";

}  // namespace

const std::vector<std::string>& shells() {
  static const std::vector<std::string> names{"bash", "zsh"};
  return names;
}

std::string completion_script(const std::string& shell) { return shell == "bash" ? kBash : kZsh; }

}  // namespace tg::ctl
