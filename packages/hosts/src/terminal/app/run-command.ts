import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { colours, dim } from "../screen/style.ts";
import type { CommandSummary, ReportTopic } from "../session/terminal-session.ts";
import type { AppActions, AppState } from "./app-state.ts";
import {
  openAgents,
  openApprovals,
  openHelp,
  openModels,
  openPage,
  openRewind,
  openSessions,
} from "./open-views.ts";

interface SlashCommand extends CommandSummary {
  readonly run: (state: AppState, actions: AppActions, words: string) => Promise<void> | void;
}

/** Commands of the terminal itself, in the order of the list. */
const commands: readonly SlashCommand[] = [
  { name: "help", description: "keys and commands", run: (state, actions) => openHelp(state, actions) },
  page("agents", "the agents there are"),
  {
    name: "approvals",
    description: "questions that wait for an answer, and grants that hold; /approvals all: of all folders",
    argumentHint: "[all]",
    run(state, actions, words) {
      if (words === "" || words === "all") return openApprovals(state, actions, words === "all");
      throw new Error(`/approvals takes nothing but "all", not "${words}".`);
    },
  },
  {
    name: "tasks",
    description: "agents of this conversation: open, stop; /tasks all: those of the folder",
    argumentHint: "[all]",
    async run(state, actions, words) {
      if (words === "") openAgents(state, actions);
      else if (words !== "all") throw new Error(`/tasks takes nothing but "all", not "${words}".`);
      else openPage(actions, "Tasks", await state.session.library.report("tasks", []));
    },
  },
  {
    name: "model",
    description: "choose the model, or name it",
    argumentHint: "[model]",
    async run(state, actions, words) {
      if (words === "") return openModels(state, actions);
      await state.session.setModel(words);
      state.conversation.note(`The model is ${words} from now on.`);
    },
  },
  {
    name: "mode",
    description: "the permission mode: default, acceptEdits, plan",
    argumentHint: "[mode]",
    run(state, actions, words) {
      const { mode, modes = [] } = state.status;
      if (modes.includes(words)) state.session.setMode(words);
      else if (words === "") actions.hint(`the mode is ${mode ?? ""}; shift+tab changes it`, 4000);
      else state.conversation.note(`There is no mode ${words} here; write one of ${modes.join(", ")}.`);
    },
  },
  page("permissions", "the rules in force and where they are"),
  page("mcp", "MCP servers and how they are doing"),
  page("memory", "instructions and memory in the prompt"),
  page("context", "what fills the model's window"),
  page("cost", "what the conversation took", "[session or agent]"),
  {
    name: "compact",
    description: "replace the older part of the conversation by a summary",
    argumentHint: "[what to keep]",
    run: ({ session }, _, words) => session.compact(words),
  },
  {
    name: "clear",
    description: "begin a new conversation",
    run: ({ session }) => session.switchTo(undefined),
  },
  {
    name: "resume",
    description: "continue with an earlier conversation",
    run: (state, actions) => openSessions(state, actions),
  },
  {
    name: "fork",
    description: "continue in a copy of this conversation",
    run: ({ session, sessionId }) => session.switchTo(sessionId, { fork: true }),
  },
  {
    name: "rewind",
    description: "go back to before an earlier prompt",
    run: (state, actions) => openRewind(state, actions),
  },
  page("inspect", "what the conversation did: tree, time, tokens, refusals", "[session or agent]"),
  {
    name: "export",
    description: "write the conversation to a file",
    argumentHint: "[file]",
    async run({ session, conversation, sessionId }, _, words) {
      const file = await session.library.exportTo(
        words === "" ? `conversation-${sessionId.slice(0, 8)}.md` : words,
      );
      conversation.note(`Written to ${file}.`, dim);
    },
  },
  page("doctor", "check the set-up"),
  { name: "quit", description: "end the session", run: (_, actions) => actions.exit() },
];

const aliases: ReadonlyMap<string, string> = new Map([
  ["exit", "quit"],
  ["new", "clear"],
  ["sessions", "resume"],
]);

function page(topic: ReportTopic, description: string, argumentHint?: string): SlashCommand {
  return {
    name: topic,
    description,
    argumentHint,
    async run({ session }, actions, words) {
      const text = await session.library.report(topic, words === "" ? [] : words.split(/\s+/));
      openPage(actions, `/${topic}`, text);
    },
  };
}

/** Their names and what they do. */
export const commandHelp: readonly CommandSummary[] = commands;

/** Runs a command of the terminal; false when it is none, so that it may be a skill. */
export function runCommand(text: string, state: AppState, actions: AppActions): boolean {
  const [, name = "", words = ""] = /^\/([\w-]+)(?:\s+([\s\S]*))?$/.exec(text.trim()) ?? [];
  const command = commands.find((one) => one.name === (aliases.get(name) ?? name));
  if (command === undefined) return name !== "" && refuseUnknown(name, state);
  actions.attempt(async () => {
    if (words.trim() !== "" && command.argumentHint === undefined)
      throw new Error(`/${name} takes nothing after its name; "${words.trim()}" was not sent.`);
    await command.run(state, actions, words.trim());
    actions.changed();
  });
  return true;
}

/** True when there is no such skill either; what is not known yet is decided when the message is read. */
function refuseUnknown(name: string, { isOpen, skills, conversation, session }: AppState): boolean {
  if (!isOpen || !session.takesCommands || skills.some((skill) => skill.name === name)) return false;
  const near = nearestName(
    name,
    [...commands, ...skills].map((one) => one.name),
  );
  const advice = near === undefined ? "/help lists the commands." : `Did you mean /${near}?`;
  conversation.note(`There is no command or skill /${name}. ${advice}`, colours.error);
  return true;
}
