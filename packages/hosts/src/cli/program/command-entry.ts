import { commandRights } from "@retinue/base/foundation/command-rights.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { Command, type OptionValues } from "commander";
import { addOptions } from "../../shared/add-options.ts";
import type { CliHost } from "../../shared/cli-host.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { refuseAgents } from "../../shared/misuse.ts";
import type { OptionEntry } from "../../shared/option-entry.ts";

/** One command: how it is written, what it takes, and what it runs. A command with others below it is a group. */
export interface CommandEntry {
  /** Its path and its arguments, as in help: `agents show <name>`. */
  readonly usage: string;
  readonly description: string;
  readonly options?: readonly OptionEntry[];
  /** What help shows above everything else. */
  readonly note?: string;
  /** In place of the usage that follows from arguments and options. */
  readonly shownUsage?: string;
  readonly alias?: string;
  /** Known, but not shown. */
  readonly isHidden?: true;
  /** It is about agents in a store, whose own rights decide. */
  readonly isForStores?: boolean;
  /** Its code is loaded when it is used. The options include those of the program. */
  readonly run: (context: CommandContext, options: OptionValues, words: Words) => Promise<number>;
}

/** The arguments of a command in their order: a text, or a list where it ends in dots. */
export type Words = Command["processedArgs"];

/** A command that exists elsewhere and cannot work here. */
export interface RefusedCommand {
  readonly path: string;
  readonly reason: string;
}

/** Runs what a command means and keeps its exit code. */
export type Invoke = (run: (context: CommandContext) => Promise<number>) => Promise<void>;

/** The program that words are read by; errors are left to its caller. */
export function createCommand({ stdout, stderr }: Pick<CliHost, "stdout" | "stderr">): Command {
  return new Command("retinue")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      outputError: () => {},
      writeErr: (text) => stderr.write(text),
      getOutHelpWidth: () => Math.min(stdout.columns ?? 80, 100),
    })
    .helpCommand(false)
    .argument("[prompt...]");
}

export function addCommands(program: Command, entries: readonly CommandEntry[], invoke: Invoke): void {
  for (const entry of entries) {
    const { path, rest } = splitUsage(entry.usage);
    const name = path.at(-1) ?? "";
    const parent = findParent(program, path);
    const command = parent.command(rest === "" ? name : `${name} ${rest}`, {
      hidden: entry.isHidden === true,
    });
    addOptions(describe(command, entry.description), entry.options ?? []);
    if (entry.alias !== undefined) command.alias(entry.alias);
    if (entry.note !== undefined) command.addHelpText("before", `${entry.note}\n`);
    if (entry.shownUsage !== undefined) command.usage(entry.shownUsage);
    if (isGroup(entry, entries)) command.argument("[command]").allowExcessArguments();
    command.action(() => {
      if (command.commands.length > 0 && command.args[0] !== undefined)
        throw unknownCommand(command, command.args[0]);
      return invoke((context) => {
        if (entry.isForStores !== true && commandRights[path.join(" ")] !== "anyone")
          refuseAgents(context.host);
        return entry.run(context, command.optsWithGlobals(), command.processedArgs);
      });
    });
  }
  // The usage of a group names what is below it.
  for (const group of program.commands.filter(({ commands }) => commands.length > 0))
    group.usage(`[${visibleNames(group).join("|")}] [options]`);
}

/** `agents show <name>`: the words before the first argument are the path. */
export function splitUsage(usage: string): { readonly path: readonly string[]; readonly rest: string } {
  const at = usage.search(/ [<[]/);
  return {
    path: (at === -1 ? usage : usage.slice(0, at)).split(" "),
    rest: at === -1 ? "" : usage.slice(at + 1),
  };
}

function findParent(program: Command, path: readonly string[]): Command {
  return path.slice(0, -1).reduce((parent, word) => {
    const found = parent.commands.find((command) => command.name() === word);
    if (found === undefined) throw new Error(`The command ${path.join(" ")} comes before its group.`);
    return found;
  }, program);
}

function isGroup({ usage }: CommandEntry, entries: readonly CommandEntry[]): boolean {
  return entries.some((other) => other.usage.startsWith(`${usage} `));
}

function visibleNames(parent: Command): readonly string[] {
  return parent
    .createHelp()
    .visibleCommands(parent)
    .map((command) => command.name());
}

/** What all commands have in common. */
export function describe(command: Command, description: string): Command {
  return (
    command
      .description(description)
      .helpCommand(false)
      .allowExcessArguments(false)
      // Descriptions name the values themselves.
      .configureHelp({ optionDescription: ({ description: text }) => text })
      .addHelpText("after", "\n`retinue --help all` shows the options of every command.")
  );
}

/** A word that is no command; `words` are all that were written, as a prompt would have them. */
export function unknownCommand(
  parent: Command,
  name: string,
  words: readonly string[] = [name],
): RetinueError {
  const known = visibleNames(parent);
  const nearest = nearestName(name, known);
  const path = parent.parent === null ? "" : `${parent.name()} `;
  const asPrompt = path === "" ? ` As a prompt: \`retinue -p ${quoteWord(words.join(" "))}\`.` : "";
  const advice =
    nearest === undefined
      ? `The commands are ${known.map((command) => `${path}${command}`).join(", ")}.${asPrompt}`
      : `Did you mean \`retinue ${path}${nearest}\`?${asPrompt}`;
  return new RetinueError("unknown-command", `There is no command \`${path}${name}\`.`, { advice });
}

/** In quotes that a shell takes as they are. */
function quoteWord(word: string): string {
  return /["$`\\!]/.test(word) ? `'${word.replaceAll("'", "'\\''")}'` : `"${word}"`;
}

export function addRefusedCommands(program: Command, refused: readonly RefusedCommand[]): void {
  for (const { path, reason } of refused) {
    const words = path.split(" ");
    findParent(program, words)
      .command(words.at(-1) ?? "", { hidden: true })
      .helpCommand(false)
      .argument("[words...]")
      .allowUnknownOption()
      .action(() => {
        throw new RetinueError("not-supported", `\`${path}\` is not supported: ${reason}.`);
      });
  }
}
