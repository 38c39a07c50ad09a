# Completes the commands, options and job keys of tgctl and tgd in bash and, through _tgctl, in zsh. They come from the
# programs' own help; no node is asked. Where nothing of it fits, the shell completes files.
_tgd_options() { "$@" 2>/dev/null | grep -oE '^ +(-[a-z], )?--[a-z-]+' | grep -oE -e '--[a-z-]+'; }

_tgd_complete() {
  local program=$1 word=$2 previous=$3 verbs verb="" words="" i
  if [[ ${program##*/} == tgd ]]; then
    case ${COMP_WORDS[1]} in recompute | simulate) verb=${COMP_WORDS[1]} ;; esac
    [[ $word != -* ]] || words=$(_tgd_options "$program" $verb --help)
  else
    verbs=" $("$program" --help 2>/dev/null | grep -oE '^  [a-z]+ ' | sort -u | tr -s ' \n' ' ')"
    for ((i = 1; i < COMP_CWORD; i++)); do
      [[ -n $verb || $verbs != *" ${COMP_WORDS[i]} "* ]] || verb=${COMP_WORDS[i]}
    done
    case $previous:$verb:$word in
      --set:*) words=$("$program" help job | grep -oE '^#?[a-z0-9-]+ =' | tr -d '# ') ;;
      *::-*) words="--address --key --help --version" ;;
      *::*) [[ $previous == --* ]] || words=$verbs ;;
      *:-*) words=$(_tgd_options "$program" help "$verb") ;;
      help:*) words="$verbs job node" ;;
      *:@*) words=@last ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
  return 0
}
complete -o default -F _tgd_complete tgctl tgd
