#include "client/cli/completion_scripts.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace opmill {
namespace {

bool TakesFile(const Flag& flag) { return flag.value == "FILE"; }

// In single quotes. Help texts of several lines are joined.
std::string Quoted(absl::string_view text) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  return absl::StrCat("'", absl::StrReplaceAll(absl::StrJoin(words, " "), {{"'", "'\\''"}}), "'");
}

std::string Spaced(const std::vector<std::string>& words) { return absl::StrJoin(words, " "); }

std::string NamesOf(absl::Span<const Verb> verbs) {
  return absl::StrJoin(verbs, " ",
                       [](std::string* out, const Verb& verb) { out->append(verb.name); });
}

std::string BashVerb(absl::string_view name, absl::string_view words,
                     absl::Span<const Flag> flags) {
  const std::string dashed = absl::StrJoin(flags, " ", [](std::string* out, const Flag& flag) {
    absl::StrAppend(out, "--", flag.name);
  });
  return absl::StrCat("    '", name, "') words=", Quoted(words), " flags=", Quoted(dashed),
                      " ;;\n");
}

std::string BashFlags(absl::string_view verb, absl::Span<const Flag> flags) {
  std::string cases;
  for (const Flag& flag : flags) {
    if (flag.value.empty()) continue;
    absl::StrAppend(&cases, "    '", verb, " --", flag.name, "') kind=",
                    TakesFile(flag)        ? "'file'"
                    : flag.choices.empty() ? "'free'"
                                           : "'choices' values=" + Quoted(Spaced(flag.choices)),
                    " ;;\n");
  }
  return cases;
}

// Bash passes --flag=value as three words if COMP_WORDBREAKS contains '='.
constexpr char kBashEnd[] = R"sh(  esac
}

_opmill() {
  local current='' flag='' verb='' argument='' prefix='' kind values words flags word i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ $word == '=' ]]; then
      continue
    elif [[ -n $flag ]]; then
      flag=''
    elif [[ $word == --* ]]; then
      _opmill_flag "$verb $word"
      [[ -z $kind ]] || flag=$word
    elif [[ -z $verb ]]; then
      verb=$word
    else
      argument=$word
    fi
  done
  current=${COMP_WORDS[COMP_CWORD]}
  [[ $current != '=' ]] || current=''
  if [[ -z $flag && $current == --*=* ]]; then
    flag=${current%%=*}
    prefix=$flag=
    current=${current#*=}
  fi
  COMPREPLY=()
  if [[ -n $flag ]]; then
    _opmill_flag "$verb $flag"
    case $kind in
      file)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -P "$prefix" -f -- "$current")
        ;;
      choices) mapfile -t COMPREPLY < <(compgen -P "$prefix" -W "$values" -- "$current") ;;
    esac
    return
  fi
  _opmill_verb "$verb"
  if [[ $current == -* || -z $words || -n $argument ]]; then words=$flags; fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -F _opmill opmill
)sh";

// Escapes a description or message of a specification for _arguments.
std::string ZshText(absl::string_view text) {
  return absl::StrReplaceAll(text, {{":", "\\:"}, {"[", "\\["}, {"]", "\\]"}});
}

std::string ZshFlags(absl::Span<const Flag> flags) {
  std::string specifications;
  for (const Flag& flag : flags) {
    std::string text =
        absl::StrCat("--", flag.name, flag.value.empty() ? "" : "=", "[", ZshText(flag.help), "]");
    if (!flag.value.empty()) {
      absl::StrAppend(&text, ":", ZshText(flag.value), ":",
                      TakesFile(flag)        ? "_files"
                      : flag.choices.empty() ? " "
                                             : absl::StrCat("(", Spaced(flag.choices), ")"));
    }
    absl::StrAppend(&specifications, " \\\n        ", Quoted(text));
  }
  return specifications;
}

std::string FishFlags(absl::string_view condition, absl::Span<const Flag> flags) {
  std::string lines;
  for (const Flag& flag : flags) {
    absl::StrAppend(&lines, "complete -c opmill -n ", Quoted(condition), " -l ", flag.name);
    if (TakesFile(flag)) {
      absl::StrAppend(&lines, " -r -F");
    } else if (!flag.value.empty()) {
      absl::StrAppend(&lines, " -x");
      if (!flag.choices.empty()) absl::StrAppend(&lines, " -a ", Quoted(Spaced(flag.choices)));
    }
    absl::StrAppend(&lines, " -d ", Quoted(flag.help), "\n");
  }
  return lines;
}

}  // namespace

std::string BashCompletion(absl::Span<const Verb> verbs, absl::Span<const Flag> leading) {
  std::string cases = BashVerb("", NamesOf(verbs), leading);
  std::string flag_cases = BashFlags("", leading);
  for (const Verb& verb : verbs) {
    absl::StrAppend(&cases, BashVerb(verb.name, Spaced(verb.argument_choices), verb.flags));
    absl::StrAppend(&flag_cases, BashFlags(verb.name, verb.flags));
  }
  return absl::StrCat(
      "# Completion of opmill for bash 4 and later:  source <(opmill completion bash)\n"
      "# shellcheck shell=bash disable=SC2034\n"
      "_opmill_verb() {  # VERB\n  words='' flags=''\n  case $1 in\n",
      cases,
      "  esac\n}\n\n_opmill_flag() {  # \"VERB --FLAG\"\n  kind='' values=''\n  case $1 in\n",
      flag_cases, kBashEnd);
}

std::string ZshCompletion(absl::Span<const Verb> verbs, absl::Span<const Flag> leading) {
  std::string names;
  std::string cases;
  for (const Verb& verb : verbs) {
    absl::StrAppend(&names, " \\\n    ", Quoted(absl::StrCat(verb.name, ":", verb.summary)));
    absl::StrAppend(&cases, "    ", verb.name, ")\n      _arguments", ZshFlags(verb.flags));
    if (!verb.argument_choices.empty()) {
      absl::StrAppend(&cases, " \\\n        ",
                      Quoted(absl::StrCat("1:argument:(", Spaced(verb.argument_choices), ")")));
    }
    absl::StrAppend(&cases, "\n      ;;\n");
  }
  return absl::StrCat(
      "#compdef opmill\n"
      "# Completion of opmill for zsh:  source <(opmill completion zsh), after compinit, or\n"
      "# `opmill completion zsh >DIR/_opmill` for a DIR of fpath.\n"
      "_opmill() {\n  local state line verbs\n  verbs=(",
      names, ")\n  _arguments -C", ZshFlags(leading),
      " \\\n        '1:verb:->verb' '*::argument:->rest'\n"
      "  case $state in\n    verb) _describe verb verbs ;;\n    rest) _opmill_verb ;;\n  "
      "esac\n}\n\n"
      "_opmill_verb() {\n  case $line[1] in\n",
      cases,
      "  esac\n}\n\n"
      "if [[ $funcstack[1] == _opmill ]]; then _opmill \"$@\"; else compdef _opmill opmill; fi\n");
}

std::string FishCompletion(absl::Span<const Verb> verbs, absl::Span<const Flag> leading) {
  const std::string no_verb = absl::StrCat("not __fish_seen_subcommand_from ", NamesOf(verbs));
  std::string lines = FishFlags(no_verb, leading);
  for (const Verb& verb : verbs) {
    absl::StrAppend(&lines, "complete -c opmill -n ", Quoted(no_verb), " -a ", verb.name, " -d ",
                    Quoted(verb.summary), "\n");
    const std::string in_verb = absl::StrCat("__fish_seen_subcommand_from ", verb.name);
    absl::StrAppend(&lines, FishFlags(in_verb, verb.flags));
    if (verb.argument_choices.empty()) continue;
    absl::StrAppend(&lines, "complete -c opmill -n ", Quoted(in_verb), " -a ",
                    Quoted(Spaced(verb.argument_choices)), "\n");
  }
  return absl::StrCat(
      "# Completion of opmill for fish:  opmill completion fish | source\n"
      "complete -c opmill -f\n",
      lines);
}

}  // namespace opmill
