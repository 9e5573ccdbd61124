import type { Command } from "commander";
import { nearestName } from "../../../foundation/nearest-name.ts";
import type { PrintOptions } from "../print/print-options.ts";
import { misuse } from "../session-options.ts";
import { describe } from "./command-entry.ts";
import { type OutlinedOption, outlineProgram } from "./outline-program.ts";

export interface HelpParts {
  readonly write: (text: string) => void;
  readonly version: () => string;
  readonly columns: number;
  /** Runs a prompt as `-p` does. */
  readonly runPrompt: (words: readonly string[], options: PrintOptions) => Promise<void> | void;
}

/** `run`, whose help describes every option of a run, `help`, and `completion`. */
export function addHelpCommands(program: Command, parts: HelpParts): void {
  const run = describe(
    program.command("run [prompt...]"),
    "Runs a prompt and prints the answer, as -p does. Its help has every option.",
  );
  run.helpInformation = () => runHelp(program, run, parts.columns);
  run.action((words: readonly string[], _, command: Command) =>
    parts.runPrompt(words, { ...command.optsWithGlobals<PrintOptions>(), print: true }),
  );
  describe(program.command("help [command...]"), "Shows help, of the program or of a command.")
    .option("--man", "print the man page: retinue help --man | man -l -")
    .action(async (words: readonly string[], { man = false }: { man?: boolean }) => {
      if (!man) return parts.write(findCommand(program, words).helpInformation());
      const { renderManual } = await import("../views/render-manual.ts");
      parts.write(renderManual(outlineProgram(program), { version: parts.version() }));
    });
  describe(
    program.command("completion <shell>"),
    "Prints a script that completes commands and options in a shell.",
  )
    .usage("bash|zsh|fish")
    .action(async (shell: string) => {
      const { completionShells, renderCompletion } = await import("../views/render-completion.ts");
      const known = completionShells.find((one) => one === shell);
      if (known === undefined)
        throw misuse(
          `There is no completion for ${JSON.stringify(shell)}.`,
          `Write one of: ${completionShells.join(", ")}.`,
        );
      parts.write(renderCompletion(known, outlineProgram(program)));
    });
}

function findCommand(program: Command, words: readonly string[]): Command {
  return words.reduce((parent, word) => {
    const found = parent.commands.find((command) => command.name() === word);
    if (found !== undefined) return found;
    const nearest = nearestName(
      word,
      parent.commands.map((command) => command.name()),
    );
    throw misuse(
      `There is no command \`${word}\`.`,
      nearest === undefined ? "`retinue help` lists the commands." : `Did you mean \`${nearest}\`?`,
    );
  }, program);
}

/** Every option that a run takes, with what it does, under the headings of the table. */
function runHelp(program: Command, run: Command, columns: number): string {
  const { options } = outlineProgram(program);
  const width = Math.min(38, Math.max(...options.map(({ flags }) => flags.length)) + 2);
  const rowOf = ({ flags, description }: OutlinedOption): string => {
    const head = `  ${flags}`.padEnd(width + 2);
    const indent = " ".repeat(width + 2);
    const text = wrapWords(description, Math.max(20, columns - width - 2));
    const first = flags.length + 2 > width ? [head, ...text.map((line) => `${indent}${line}`)] : undefined;
    return (first ?? text.map((line, at) => `${at === 0 ? head : indent}${line}`)).join("\n");
  };
  const groups = Map.groupBy(options, ({ group }) => group ?? "Options:");
  const blocks = [...groups].map(([heading, members]) => [heading, ...members.map(rowOf)].join("\n"));
  return `Usage: retinue run [options] "prompt"\n\n${run.description()}\n\n${blocks.join("\n\n")}\n`;
}

function wrapWords(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
