import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { plural } from "../../shared/format.ts";
import {
  findSlashCommand,
  readLoginWords,
  readMergeWords,
  readSlashCommand,
  slashCommands,
  type TerminalCommand,
} from "../../shared/slash-commands.ts";
import { colours, dim } from "../screen/style.ts";
import {
  type CommandSummary,
  type ManagedTopic,
  type ReportTopic,
  themes,
} from "../session/terminal-session.ts";
import type { AppActions, AppState } from "./app-state.ts";
import { openManager, openSetting } from "./open-managers.ts";
import {
  openAgents,
  openApprovals,
  openHelp,
  openModels,
  openModes,
  openPage,
  openRewind,
  openSessions,
  openThemes,
  themeNotes,
} from "./open-views.ts";

type Run = (state: AppState, actions: AppActions, words: string) => Promise<void> | void;

/** What each command of the terminal does. */
const runs: Readonly<Record<TerminalCommand, Run>> = {
  help: (state, actions) => openHelp(state, actions),
  agents: manager("agents"),
  approvals(state, actions, words) {
    if (words === "" || words === "all") return openApprovals(state, actions, words === "all");
    throw new Error(`/approvals takes nothing but "all", not "${words}".`);
  },
  async tasks(state, actions, words) {
    if (words === "") openAgents(state, actions);
    else if (words !== "all") throw new Error(`/tasks takes nothing but "all", not "${words}".`);
    else openPage(actions, "Tasks", await state.session.library.report("tasks", []));
  },
  async model(state, actions, words) {
    if (words === "") return openModels(state, actions);
    await state.session.setModel(words);
    state.conversation.note(`The model is ${words} from now on.`);
  },
  mode(state, actions, words) {
    const { modes = [] } = state.status;
    if (modes.includes(words)) state.session.setMode(words);
    else if (words === "") openModes(state, actions);
    else state.conversation.note(`Unknown mode ${words}; expected one of ${modes.join(", ")}.`);
  },
  permissions: manager("permissions"),
  hooks: manager("hooks"),
  skills: manager("skills"),
  async mcp(state, actions, words) {
    const server = readLoginWords(words);
    if (server !== undefined) return state.session.logIn(server);
    if (words !== "") throw new Error(`/mcp takes nothing but "login NAME", not "${words}".`);
    return openManager("mcp", state, actions);
  },
  config: manager("config"),
  "output-style": (state, actions) => openSetting("outputStyle", state, actions),
  theme(state, actions, words) {
    if (words === "") return openThemes(state, actions);
    const theme = themes.find((one) => one === words);
    if (theme === undefined) throw new Error(`Unknown theme ${words}; expected one of ${themes.join(", ")}.`);
    state.session.prefer({ theme });
    state.conversation.note(themeNotes[theme]);
  },
  vim({ session, box, conversation }) {
    const hasVimKeys = box.vimMode === undefined;
    session.prefer({ hasVimKeys });
    conversation.note(
      hasVimKeys
        ? "vi keys are on: esc leaves insert mode, i enters it. /vim turns them off."
        : "vi keys are off.",
    );
  },
  memory: page("memory"),
  context: page("context"),
  cost: page("cost"),
  compact: ({ session }, _, words) => session.compact(words),
  clear: ({ session }) => session.switchTo(undefined),
  resume: (state, actions) => openSessions(state, actions),
  fork: ({ session, sessionId }) => session.switchTo(sessionId, { fork: true }),
  rewind: (state, actions) => openRewind(state, actions),
  inspect: page("inspect"),
  async rename({ session, conversation }, _, words) {
    if (words === "") throw new Error("Write the title after /rename.");
    await session.rename(words);
    conversation.note(`The conversation is called ${words}.`);
  },
  async copy({ session }, actions) {
    const entries = await session.library.transcript();
    const answer = entries.findLast((entry) => entry.type === "text");
    if (answer === undefined) throw new Error("There is no answer to copy yet.");
    actions.copy(answer.text);
    actions.hint(
      `copied ${plural(answer.text.split("\n").length, "line")}, where the terminal allows it`,
      4000,
    );
  },
  init: ({ session }) => session.submit(initPrompt),
  async export({ session, conversation, sessionId, context }, _, words) {
    const file = await session.library.exportTo(
      words === "" ? `conversation-${sessionId.slice(0, 8)}.md` : words,
    );
    conversation.note(`Written to ${context().fileName(file)}.`, dim);
  },
  async merge({ session }, _, words) {
    const ask = readMergeWords(words);
    if (ask === undefined)
      throw new Error(`/merge takes "plan", "apply", "check COMMAND" or "discard AGENT", not "${words}".`);
    await session.merge(ask);
  },
  doctor: page("doctor"),
  workflows: page("workflows"),
  login: ({ session }) => session.chooseAccess(),
  logout: ({ session }) => session.forgetKey(),
  trust: ({ session }) => session.reviewTrust(),
  quit: (_, actions) => actions.exit(),
};

const initPrompt = `Look at this project and write CLAUDE.md in its folder, for agents that will work on it.
Say in at most 60 lines: what the project is; the commands that build, test (also one test alone) and lint it; how the folders hang together; the
conventions that a reader of a single file would not see. Take commands from the files that define them, and write nothing that you have not seen there.
Where CLAUDE.md exists, improve it and keep what is right. Use other instruction files of the folder as sources.`;

function manager(topic: ManagedTopic): Run {
  return (state, actions) => openManager(topic, state, actions);
}

const pageTitles = {
  memory: "Instructions and memory",
  context: "What fills the context window",
  cost: "What this conversation has cost",
  inspect: "This conversation in figures",
  doctor: "Setup check",
  workflows: "Workflows",
} as const satisfies Partial<Record<ReportTopic, string>>;

function page(topic: keyof typeof pageTitles): Run {
  return async ({ session }, actions, words) => {
    const text = await session.library.report(topic, words === "" ? [] : words.split(/\s+/));
    openPage(actions, pageTitles[topic], text);
  };
}

/** The names of the commands and what they do. */
export const commandHelp: readonly CommandSummary[] = slashCommands.filter(
  (command) => "description" in command,
);

/** Runs a command of the terminal; false when it is none, so that it may be a skill. */
export function runCommand(text: string, state: AppState, actions: AppActions): boolean {
  const { name, words } = readSlashCommand(text) ?? { name: "", words: "" };
  // Others are paths, or skills of plugins.
  if (!/^[\w-]+$/.test(name)) return false;
  const command = findSlashCommand(name);
  const run = new Map<string, Run>(Object.entries(runs)).get(command?.name ?? "");
  if (command === undefined || run === undefined) {
    // True when there is no such skill either; what is not known yet is decided when the message is read.
    const { isOpen, skills, conversation, session } = state;
    if (!isOpen || !session.takesCommands || skills.some((skill) => skill.name === name)) return false;
    const near = nearestName(
      name,
      [...commandHelp, ...skills].map((one) => one.name),
    );
    const advice = near === undefined ? "/help lists the commands." : `Did you mean /${near}?`;
    conversation.note(`There is no command or skill /${name}. ${advice}`, colours.error);
    return true;
  }
  // Another word for a command gives way to a skill of that name.
  if (command.name !== name && state.skills.some((skill) => skill.name === name)) return false;
  actions.attempt(async () => {
    if (words !== "" && command.argumentHint === undefined)
      throw new Error(`/${name} takes nothing after its name; "${words}" was not sent.`);
    await run(state, actions, words);
    actions.changed();
  });
  return true;
}
