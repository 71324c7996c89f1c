"""`hprofiler completion SHELL`: scripts made from the same table of verbs and options as the help."""

from __future__ import annotations

import argparse

from hprofiler.cli.options.parser import VERBS, choices, option_strings
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.model.event_names import OWN
from hprofiler.resolve.kubernetes.asked import KINDS

FILE_OPTIONS = (
    "--hosts-file",
    "--host-map",
    "--identity",
    "--ssh-config",
    "--async-profiler",
    "--selectors",
    "--yarn-ca",
    "--kubeconfig",
    "--audit",
    "-o",
    "--output",
)

# `k8s:` is a word of its own to bash, for which a colon ends words.
PODS = "k8s:"
WORKLOADS = " ".join(f"{kind}/" for kind in dict.fromkeys(KINDS.values()))


def command(options: argparse.Namespace) -> int:
    by_verb = {verb: " ".join(option_strings(verb)) for verb in VERBS}
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell](by_verb), end="")
    return Exit.OK


def _values() -> dict[tuple[str, ...], list[str]]:
    """What stands behind options whose values are known, the same for all verbs that have the option."""
    from hprofiler._flamegraph import READ_FORMATS, WRITE_FORMATS

    fixed = {options: values for verb in VERBS for options, values in choices(verb).items() if options}
    return {**fixed, ("--from",): list(READ_FORMATS), ("--to",): list(WRITE_FORMATS)}


def _words() -> dict[str, str]:
    """The words, not options, that a verb takes, where these are known."""
    return {verb: " ".join(choices(verb)[()]) for verb in VERBS if () in choices(verb)}


def _bash(by_verb: dict[str, str]) -> str:
    values = "\n".join(
        f'    {"|".join(options)}) COMPREPLY=($(compgen -W "{" ".join(known)}" -- "$word")); return ;;'
        for options, known in _values().items()
    )
    words = _words()
    cases = "\n".join(
        f"    {verb}) options='{options}' words='{words.get(verb, '')}' ;;"
        for verb, options in by_verb.items()
    )
    return f"""\
_hprofiler() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options words
  if [[ $before = k8s || "${{COMP_WORDS[COMP_CWORD-2]}}$before" = k8s: ]]; then
    COMPREPLY=($(compgen -W "{WORKLOADS}" -- "${{word#:}}"))
    compopt -o nospace 2>/dev/null
    return
  fi
  case $before in
    -j|--selector|--match)
      COMPREPLY=($(compgen -W "$(hprofiler selectors 2>/dev/null | cut -d' ' -f1)" -- "$word"))
      if [ "$before" != --match ] && [[ {PODS} == "$word"* ]]; then COMPREPLY+=({PODS}); fi
      return ;;
    -e|--event)
      local first=${{word%"${{word##*,}}"}}
      COMPREPLY=($(compgen -P "$first" -W "{" ".join(OWN)}" -- "${{word##*,}}"))
      return ;;
{values}
    {"|".join(FILE_OPTIONS)}) COMPREPLY=($(compgen -f -- "$word")); return ;;
  esac
  case ${{COMP_WORDS[1]}} in
{cases}
    *) options='{by_verb["run"]}' ;;
  esac
  if [ "$COMP_CWORD" = 1 ]; then options="{" ".join(by_verb)} --version $options"; fi
  if [ "$COMP_CWORD" = 1 ] || [ "${{word#-}}" != "$word" ]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _hprofiler hprofiler
"""


def _zsh(by_verb: dict[str, str]) -> str:
    return "autoload -U +X bashcompinit && bashcompinit\n" + _bash(by_verb)


def _fish(by_verb: dict[str, str]) -> str:
    lines = ["complete -c hprofiler -f -n __fish_use_subcommand -a '" + " ".join(by_verb) + "'"]
    for verb, options in by_verb.items():
        condition = "__fish_use_subcommand" if verb == "run" else f"__fish_seen_subcommand_from {verb}"
        for option in options.split():
            flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            files = " -r -F" if option in FILE_OPTIONS else ""
            lines.append(f"complete -c hprofiler -n '{condition}' {flag}{files}")
    names = "(hprofiler selectors 2>/dev/null | string split -f1 ' ')"
    pods = " ".join(PODS + kind for kind in WORKLOADS.split())
    lines.append(f'complete -c hprofiler -s j -l selector -x -a "{names} {pods}"')
    lines.append(f'complete -c hprofiler -l match -x -a "{names}"')
    lines.append(f"complete -c hprofiler -s e -l event -x -a '{' '.join(OWN)}'")
    for known_options, known in _values().items():
        flags = " ".join(f"-l {option[2:]}" for option in known_options)
        lines.append(f"complete -c hprofiler {flags} -x -a '{' '.join(known)}'")
    for verb, words in _words().items():
        lines.append(f"complete -c hprofiler -n '__fish_seen_subcommand_from {verb}' -f -a '{words}'")
    return "\n".join(lines) + "\n"
