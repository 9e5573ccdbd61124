import type { OutlinedCommand, OutlinedOption } from "./outline-program.ts";

export const completionShells = ["bash", "zsh", "fish"] as const;
export type CompletionShell = (typeof completionShells)[number];

/** A script that makes a shell complete commands, options and their values. */
export function renderCompletion(shell: CompletionShell, program: OutlinedCommand): string {
  return { bash, zsh, fish }[shell](program);
}

function all(command: OutlinedCommand): readonly OutlinedCommand[] {
  return [command, ...command.commands.flatMap(all)];
}

/** Its own options and those of every command. */
function optionsOf(command: OutlinedCommand, program: OutlinedCommand): readonly OutlinedOption[] {
  return command === program ? program.options : [...command.options, ...program.options];
}

function namesOf(options: readonly OutlinedOption[]): readonly string[] {
  return [...new Set([...options.flatMap(({ names }) => names), "--help"])];
}

/** Which command the words so far name, in a variable `at` of the shell. */
function findPath(program: OutlinedCommand, words: string): string {
  const paths = all(program).flatMap(({ path }) => (path === "" ? [] : [`"${path}"`]));
  return `  local at="" word
  for word in ${words}; do
    case "\${at:+$at }$word" in
      ${paths.join("|")}) at="\${at:+$at }$word" ;;
    esac
  done`;
}

function valueCases(
  program: OutlinedCommand,
  line: (values: readonly string[]) => string,
): readonly string[] {
  const options = all(program).flatMap((command) => command.options);
  const known = new Map(
    options
      .filter(({ values }) => values.length > 0)
      .map((option) => [option.names.join("|"), option.values]),
  );
  return [...known].map(([names, values]) => `    ${names}) ${line(values)} ;;`);
}

function bash(program: OutlinedCommand): string {
  const values = valueCases(
    program,
    (list) => `COMPREPLY=($(compgen -W "${list.join(" ")}" -- "$current")); return`,
  );
  const takers = all(program)
    .flatMap((command) => command.options)
    .filter(({ takesValue, values: known }) => takesValue && known.length === 0)
    .flatMap(({ names }) => names);
  const cases = all(program).map((command) => {
    const words = command.commands.map(({ path }) => path.split(" ").at(-1) ?? "");
    return `    "${command.path}") words="${words.join(" ")}" options="${namesOf(optionsOf(command, program)).join(" ")}" ;;`;
  });
  return `# bash completion for retinue. Add to ~/.bashrc: eval "$(retinue completion bash)"
_retinue() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" words="" options=""
${findPath(program, `"\${COMP_WORDS[@]:1:COMP_CWORD-1}"`)}
  case "$previous" in
${values.join("\n")}
    ${[...new Set(takers)].join("|")}) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  case "$at" in
${cases.join("\n")}
  esac
  [[ "$current" == -* ]] && words="$options"
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _retinue retinue
`;
}

function zsh(program: OutlinedCommand): string {
  const quoted = (name: string, text: string): string =>
    `'${name.replaceAll(":", "\\:")}:${text.replaceAll("'", "’").replaceAll(":", "\\:")}'`;
  const cases = all(program).map((command) => {
    const commands = command.commands.map(({ path, description }) =>
      quoted(path.split(" ").at(-1) ?? "", description),
    );
    const options = optionsOf(command, program).flatMap(({ names, description }) =>
      names.map((name) => quoted(name, description)),
    );
    return `    "${command.path}") commands=(${commands.join(" ")}); options=(${[...new Set(options)].join(" ")}) ;;`;
  });
  return `#compdef retinue
# zsh completion for retinue. Save as _retinue in a folder of $fpath, or: source <(retinue completion zsh)
_retinue() {
  local -a commands options
  case "\${words[CURRENT-1]}" in
${valueCases(program, (list) => `compadd -- ${list.join(" ")}; return`).join("\n")}
  esac
${findPath(program, `"\${(@)words[2,CURRENT-1]}"`)}
  case "$at" in
${cases.join("\n")}
  esac
  if [[ "\${words[CURRENT]}" == -* ]]; then
    _describe option options
  else
    _describe command commands
    _files
  fi
}
if [[ "$funcstack[1]" == "_retinue" ]]; then _retinue "$@"; else compdef _retinue retinue; fi
`;
}

function fish(program: OutlinedCommand): string {
  const quote = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const conditionOf = (path: string): string => {
    if (path === "") return "";
    const words = path.split(" ").map((word) => `__fish_seen_subcommand_from ${word}`);
    return ` -n ${quote(words.join("; and "))}`;
  };
  const commands = all(program).flatMap((parent) =>
    parent.commands.map(({ path, description }) => {
      const condition = parent.path === "" ? " -n __fish_use_subcommand" : conditionOf(parent.path);
      return `complete -c retinue${condition} -a ${path.split(" ").at(-1)} -d ${quote(description)}`;
    }),
  );
  const options = all(program).flatMap((command) =>
    command.options.map(({ names, takesValue, values, description }) => {
      const flags = names.map((name) =>
        name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`,
      );
      const value = values.length > 0 ? ` -x -a ${quote(values.join(" "))}` : " -r";
      return `complete -c retinue${conditionOf(command.path)} ${flags.join(" ")}${takesValue ? value : ""} -d ${quote(description)}`;
    }),
  );
  return `# fish completion for retinue. Save as ~/.config/fish/completions/retinue.fish\n${[...commands, ...options].join("\n")}\n`;
}
