import type { MergeAsk } from "@retinue/core/protocol/op.ts";

/** A command that people write into a conversation with a slash; a host takes those that it can carry out. */
export interface SlashCommand {
  readonly name: string;
  /** For the list of the terminal; absent where the terminal does not have it. */
  readonly description?: string;
  readonly argumentHint?: string;
  readonly aliases?: readonly string[];
  /** For programs and editors; absent where they have no use for it. */
  readonly forPrograms?: ProgramCommand;
  /** A program that sends it is answered that there is no terminal. */
  readonly needsTerminal?: true;
}

interface ProgramCommand {
  readonly description: string;
  readonly argumentHint: string;
  /** What the words after it are for. */
  readonly argument?: string;
}

/** Every command of a conversation, in the order of the terminal's list. */
export const slashCommands = [
  { name: "help", description: "keys and commands", needsTerminal: true },
  { name: "agents", description: "start, show, edit, make agents, switch them off" },
  {
    name: "approvals",
    description: "questions that wait for an answer, and grants that hold; /approvals all: of all folders",
    argumentHint: "[all]",
  },
  {
    name: "tasks",
    description: "agents of this conversation: open, stop; /tasks all: those of the folder",
    argumentHint: "[all]",
  },
  { name: "model", description: "choose the model, or name it", argumentHint: "[model]" },
  {
    name: "mode",
    description: "the permission mode: default, acceptEdits, plan",
    argumentHint: "[mode]",
  },
  { name: "permissions", description: "the rules in force: add, remove, edit", aliases: ["allowed-tools"] },
  { name: "hooks", description: "hooks of settings: show, edit, switch off" },
  { name: "skills", description: "use, show and edit skills, switch them off" },
  {
    name: "mcp",
    description: "MCP servers: log in, switch off, reconnect; /mcp login NAME: log in at one",
    argumentHint: "[login NAME]",
  },
  {
    name: "config",
    description: "your settings: show, change, take out",
    aliases: ["settings"],
    needsTerminal: true,
  },
  { name: "output-style", description: "how the main agent answers", needsTerminal: true },
  {
    name: "theme",
    description: "colours for a dark or a light terminal",
    argumentHint: "[dark | light | terminal]",
    needsTerminal: true,
  },
  { name: "vim", description: "keys of vi in the draft: on, off", needsTerminal: true },
  { name: "memory", description: "instructions and memory in the prompt" },
  {
    name: "context",
    description: "what fills the model's window",
    forPrograms: { description: "Shows how full the context window is.", argumentHint: "" },
  },
  {
    name: "cost",
    description: "tokens, time and cost of this conversation",
    argumentHint: "[session or agent]",
    aliases: ["usage"],
    forPrograms: { description: "Shows what the session has cost.", argumentHint: "" },
  },
  {
    name: "compact",
    description: "replace the older part of the conversation by a summary",
    argumentHint: "[what to keep]",
    forPrograms: {
      description: "Replaces the older part of the conversation by a summary.",
      argumentHint: "[instructions]",
      argument: "what the summary should dwell on",
    },
  },
  {
    name: "clear",
    description: "start a new conversation",
    aliases: ["new"],
    forPrograms: { description: "Starts a new conversation.", argumentHint: "" },
  },
  {
    name: "resume",
    description: "continue with an earlier conversation",
    aliases: ["sessions"],
    needsTerminal: true,
  },
  { name: "fork", description: "continue in a copy of this conversation" },
  {
    name: "rewind",
    description: "go back to before an earlier prompt, with the files",
    aliases: ["checkpoint", "undo"],
  },
  {
    name: "inspect",
    description: "what the conversation did: tree, time, tokens, refusals",
    argumentHint: "[session or agent]",
  },
  {
    name: "rename",
    description: "give this conversation a title",
    argumentHint: "<title>",
    needsTerminal: true,
  },
  { name: "copy", description: "copy the last answer to the clipboard", needsTerminal: true },
  { name: "init", description: "have CLAUDE.md written for this project", needsTerminal: true },
  {
    name: "export",
    description: "write the conversation to a file: Markdown, or a page with all agents for NAME.html",
    argumentHint: "[file]",
  },
  {
    name: "merge",
    description:
      "bring the changes of agents in worktrees back; apply: and this branch forward; plan: show the queue",
    argumentHint: "[plan | apply | check COMMAND | discard AGENT]",
  },
  {
    name: "workflows",
    description: "runs of workflows in this folder, and saved workflows",
    needsTerminal: true,
  },
  { name: "doctor", description: "check the set-up", aliases: ["status"] },
  {
    name: "login",
    description: "choose the model access: an API key, a server on this machine, the offline demo",
    needsTerminal: true,
  },
  { name: "logout", description: "forget the key that /login has kept", needsTerminal: true },
  { name: "trust", description: "what this folder would run and set; trust it", needsTerminal: true },
  { name: "quit", description: "end the session", aliases: ["exit"], needsTerminal: true },
] as const satisfies readonly SlashCommand[];

/** The names of the commands that the terminal has. */
export type TerminalCommand = Extract<
  (typeof slashCommands)[number],
  { readonly description: string }
>["name"];

const commands: readonly SlashCommand[] = slashCommands;

/** The name behind the slash, and the words after it; undefined for a prompt. */
export function readSlashCommand(
  text: string,
): { readonly name: string; readonly words: string } | undefined {
  const [, name, words = ""] = /^\/(\S+)(?:\s+([\s\S]*))?$/.exec(text.trim()) ?? [];
  return name === undefined ? undefined : { name, words: words.trim() };
}

/** The command that a name or another word for it means. */
export function findSlashCommand(name: string): SlashCommand | undefined {
  return commands.find((command) => command.name === name || command.aliases?.includes(name) === true);
}

/** What programs and editors can offer: commands of the conversation, by name. */
export const programCommands: readonly (ProgramCommand & { readonly name: string })[] = commands
  .flatMap(({ name, forPrograms }) => (forPrograms === undefined ? [] : [{ name, ...forPrograms }]))
  .sort((a, b) => (a.name < b.name ? -1 : 1));

interface Skill {
  readonly name: string;
  readonly description: string;
  readonly argumentHint?: string | undefined;
  readonly userInvocable: boolean;
}

/** The skills that people call with a slash. */
export function skillCommands(skills: readonly Skill[]): readonly Omit<Skill, "userInvocable">[] {
  return skills
    .filter(({ userInvocable }) => userInvocable)
    .map(({ name, description, argumentHint }) => ({ name, description, argumentHint }));
}

/** What `/merge` is asked for; undefined where the words mean nothing. */
export function readMergeWords(words: string): MergeAsk | undefined {
  const [, first = "", rest = ""] = /^(\S*)\s*([\s\S]*)$/.exec(words) ?? [];
  if (first === "") return {};
  if (first === "plan" && rest === "") return { dryRun: true };
  if (first === "discard" && rest !== "") return { discard: rest.split(/\s+/) };
  if (first === "check" && rest !== "") return { checks: [rest] };
  if (first !== "apply") return undefined;
  const more = readMergeWords(rest);
  return more === undefined || more.dryRun === true || more.discard !== undefined
    ? undefined
    : { ...more, apply: true };
}

/** The server of `/mcp login NAME`; undefined for all other words after `/mcp`. */
export function readLoginWords(words: string): string | undefined {
  return /^login\s+(\S.*)$/.exec(words)?.[1];
}
