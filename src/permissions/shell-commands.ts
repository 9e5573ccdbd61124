import { judgeTar } from "./shell-archives.ts";
import { judgeAwk } from "./shell-awk.ts";
import { judgeBuiltin } from "./shell-builtins.ts";
import { type CommandSpec, commandJudge } from "./shell-command-spec.ts";
import { judgeFind } from "./shell-find.ts";
import { judgeGit } from "./shell-git.ts";
import { type JudgeCommand, type Judgement, judgement, used } from "./shell-judgement.ts";
import { networkCommands } from "./shell-network-commands.ts";
import { readingCommands } from "./shell-reading-commands.ts";
import { judgeSed } from "./shell-sed.ts";
import type { Word } from "./shell-word.ts";
import { writingCommands } from "./shell-writing-commands.ts";

/** What a command does with these arguments; undefined for one that no table knows. */
export function judgeCommand(words: readonly Word[], here: boolean): Judgement | undefined {
  const name = words[0]?.text ?? "";
  return judgeBuiltin(words) ?? judges.get(name)?.(words, here) ?? judgeInterpreter(words);
}

const specs: ReadonlyMap<string, CommandSpec> = new Map([
  ...readingCommands,
  ...writingCommands,
  ...networkCommands,
]);

const judges: ReadonlyMap<string, JudgeCommand> = new Map<string, JudgeCommand>([
  ...[...specs].map(([name, spec]): [string, JudgeCommand] => [name, commandJudge(spec)]),
  ["git", judgeGit],
  ["find", judgeFind],
  ["sed", judgeSed],
  ["gsed", judgeSed],
  ...["awk", "gawk", "mawk", "nawk"].map((name): [string, JudgeCommand] => [name, judgeAwk]),
  ["tar", judgeTar],
  ["gtar", judgeTar],
  ["bsdtar", judgeTar],
  ["dd", judgeDd],
]);

/** Asks a program only for its version or its help. */
function isQuestion(words: readonly Word[]): boolean {
  return words.length === 2 && words[1]?.literal === true && /^--(?:version|help)$/.test(words[1].text);
}

function judgeDd(words: readonly Word[]): Judgement {
  const files = (prefix: string): Word[] =>
    words
      .filter(({ text }) => text.startsWith(prefix))
      .map((word) => ({ ...word, text: word.text.slice(3), path: word.path.slice(3) }));
  const loose = words.slice(1).some((word) => word.loose);
  return judgement(
    false,
    [...used(files("if="), "read"), ...used(files("of="), "write")],
    [loose ? "an argument of dd is only known when it runs" : undefined],
  );
}

const interpreter =
  /^(?:python[\d.]*|pypy[\d.]*|node|nodejs|deno|bun|tsx|ts-node|ruby[\d.]*|perl[\d.]*|php[\d.]*|lua[\d.]*|Rscript|osascript|tclsh|expect|guile|ghci?|runghc|erl|elixir|julia|groovy|scala|jshell|irb|psql|mysql|sqlite3|gdb|lldb|emacs|vim?|vim|nvim|nano|ed|ex|npx|bunx|pnpx|uvx|pipx)$/;

/** A wildcard that names an interpreter grants any code, and says so; one that only begins with a star does not. */
function judgeInterpreter(words: readonly Word[]): Judgement | undefined {
  const name = words[0]?.text ?? "";
  if (!interpreter.test(name)) return undefined;
  if (isQuestion(words)) return judgement(true, []);
  return {
    readOnly: false,
    exactOnly: `${name} runs any program it is given`,
    wildcardHead: name,
    paths: [],
  };
}
