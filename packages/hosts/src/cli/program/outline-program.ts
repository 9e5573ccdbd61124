import type { Command, Option } from "commander";
import { namesOf } from "../../shared/option-entry.ts";

/** One option as help, completion and the man page show it. */
export interface OutlinedOption {
  /** As it is written in help, such as `-c, --continue` or `--model <model>`. */
  readonly flags: string;
  /** Every way to write it, without its value. */
  readonly names: readonly string[];
  readonly takesValue: boolean;
  /** The values it takes, where they are known. */
  readonly values: readonly string[];
  readonly description: string;
  /** The heading it belongs under, where it has one. */
  readonly group?: string;
}

/** One command with everything that can be written after it. */
export interface OutlinedCommand {
  /** From the program on, such as `agents show`; empty for the program. */
  readonly path: string;
  readonly usage: string;
  readonly description: string;
  readonly options: readonly OutlinedOption[];
  readonly commands: readonly OutlinedCommand[];
}

/** The commands and options of the program, read from where they are parsed. */
export function outlineProgram(program: Command): OutlinedCommand {
  return outline(program, "");
}

function outline(command: Command, path: string): OutlinedCommand {
  const words = command.registeredArguments.map((argument) => {
    const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
    return argument.required ? `<${name}>` : `[${name}]`;
  });
  return {
    path,
    usage: ["retinue", path, ...words].filter((part) => part !== "").join(" "),
    description: command.description(),
    options: command.options.filter(({ hidden }) => !hidden).map(outlineOption),
    commands: command.commands.map((child) => outline(child, `${path} ${child.name()}`.trim())),
  };
}

function outlineOption({ flags, description, argChoices, helpGroupHeading }: Option): OutlinedOption {
  return {
    flags,
    names: namesOf(flags),
    takesValue: /[<[]/.test(flags),
    values: argChoices ?? [],
    description,
    group: helpGroupHeading,
  };
}
