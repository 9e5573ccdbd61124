import {
  firstLine,
  formatAge,
  formatCost,
  formatDuration,
  formatTokens,
  plural,
} from "../../shared/format.ts";
import { draftOf } from "../input/draft.ts";
import { emptyRow, padRow, type Row, rowWidth, span } from "../screen/row.ts";
import { bold, dim } from "../screen/style.ts";
import { wrapRow } from "../screen/wrap-row.ts";
import {
  type AgentSnapshot,
  type ChangedFiles,
  type CommandSummary,
  type ParkedQuestion,
  type RewindTarget,
  type Theme,
  themes,
} from "../session/terminal-session.ts";
import { isRunning } from "../text/agent-rows.ts";
import { AgentView } from "../views/agent-view.ts";
import { ApprovalView } from "../views/approval-view.ts";
import { entryRows } from "../views/entry-rows.ts";
import { Pager, textRows } from "../views/pager.ts";
import { Picker, type PickerItem } from "../views/picker.ts";
import type { View } from "../views/view.ts";
import type { AppActions, AppState } from "./app-state.ts";
import { modeTexts } from "./conversation.ts";

export function openHelp({ commands }: AppState, actions: AppActions): void {
  actions.openView(new Pager({ title: "Keys and commands", rows: (width) => helpRows(commands, width) }));
}

/** Below this, what a key does is written under it. */
const minHelpColumns = 60;
const helpColumn = 26;

function helpRows(commands: readonly CommandSummary[], width: number): readonly Row[] {
  const line = (name: string, text: string): readonly Row[] => {
    if (width < minHelpColumns)
      return [
        ...wrapRow([span(name, bold)], width),
        ...wrapRow([span(text)], width, { first: [span("  ")], rest: [span("  ")] }),
      ];
    const margin = [span(" ".repeat(helpColumn))];
    const title = [span(`  ${name}  `, bold)];
    // A long name has a row of its own, so that all texts are below each other.
    if (rowWidth(title) > helpColumn) return [title, ...wrapRow([span(text)], width, { first: margin })];
    return wrapRow([span(text)], width, { first: padRow(title, helpColumn), rest: margin });
  };
  return [
    ...keyHelp.flatMap(({ keys, does }) => line(keys, does)),
    emptyRow,
    ...commands.flatMap(({ name, description }) => line(`/${name}`, description)),
  ];
}

export function openPage(actions: AppActions, title: string, text: string): void {
  actions.openView(new Pager({ title, rows: (width) => textRows(text, width) }));
}

/** The whole conversation, with all calls and their results. */
export function openTranscript({ session, context, conversation }: AppState, actions: AppActions): void {
  actions.attempt(async () => {
    const entries = [...(await session.library.transcript()), ...conversation.running()];
    await context().code.load();
    actions.openView(
      new Pager({
        title: "Conversation",
        rows: (width) => entryRows(entries, { ...context(), width }),
        follow: true,
      }),
    );
  });
}

export function openAgent(id: string, { session, board, now, context }: AppState, actions: AppActions): void {
  void context().code.load().then(actions.changed);
  actions.openView(
    new AgentView({
      agent: () => board.get(id),
      watch: (listener) => session.watchAgent(id, listener),
      send: (text) => session.messageAgent(id, text),
      stop: () => actions.attempt(() => session.stopAgent(id)),
      moveToBackground: () => void session.moveToBackground(id),
      changed: actions.changed,
      context,
      now,
    }),
  );
}

/** All agents of the conversation, those that have ended too. */
export function openAgents(state: AppState, actions: AppActions): void {
  const items = (): readonly PickerItem[] =>
    state.board.all().map((agent) => ({
      id: agent.id,
      label: `${agent.name}  ${agent.description}`,
      detail: isRunning(agent) ? agent.activity : endedDetail(agent),
    }));
  actions.openView(
    new Picker({
      title: "Agents of this conversation",
      items: items(),
      empty: "No agent has been started in this conversation.",
      choose: ({ id }) => openAgent(id, state, actions),
      changed: actions.changed,
      keys: [
        {
          key: "ctrl+x",
          label: "stop",
          async run({ id }) {
            await state.session.stopAgent(id);
            return "reload";
          },
        },
      ],
      reload: async () => items(),
    }),
  );
}

/** How it ended, and what it took. */
function endedDetail({ state, tokens, costUsd = 0, startedAt, endedAt }: AgentSnapshot): string {
  const parts = [
    state,
    ...(tokens === 0 ? [] : [formatTokens(tokens)]),
    ...(costUsd === 0 ? [] : [formatCost(costUsd)]),
    ...(endedAt === undefined ? [] : [formatDuration(endedAt - startedAt)]),
  ];
  return parts.join(" · ");
}

/** Questions that wait on disk, of all sessions of the folder, and grants that hold. */
export async function openApprovals(
  { session: { library }, now, context }: AppState,
  actions: AppActions,
  everywhere: boolean,
): Promise<void> {
  let parked: readonly ParkedQuestion[] = [];
  const items = async (): Promise<readonly PickerItem[]> => {
    parked = await library.parked({ everywhere });
    return parked.map(({ id, isWaiting, tool, subject, agents, at }) => ({
      id,
      label: `${isWaiting ? "▲" : "✓"} ${tool}  ${firstLine(subject)}`,
      detail: `${isWaiting ? agents : "allowed"} · ${formatAge(now() - at)}`,
    }));
  };
  const picker = new Picker({
    title: "Questions that wait, and what was allowed",
    items: await items(),
    empty: "Nothing waits for an answer, and no grant holds.",
    enter: "open",
    staysOpen: true,
    changed: actions.changed,
    reload: items,
    choose({ id }) {
      const found = parked.find((one) => one.id === id);
      if (found === undefined) return;
      if (found.isWaiting) actions.openView(answerView(found));
      else openPage(actions, "A grant", found.text);
    },
    keys: [
      {
        key: "ctrl+x",
        label: "revoke a grant",
        async run({ id }) {
          await library.revokeGrant(id);
          return "reload";
        },
      },
    ],
  });
  const answerView = (question: ParkedQuestion): View =>
    new ApprovalView({
      parked: question,
      context,
      changed: actions.changed,
      answer: (answer) => library.answerParked(question.id, answer),
      done(view) {
        actions.closeView(view);
        void picker.reload();
      },
    });
  actions.openView(picker);
}

/** Goes back to an earlier prompt: it becomes the draft, and the conversation continues in a copy that ends before it. */
export async function openRewind(
  { session, box, now, context }: AppState,
  actions: AppActions,
): Promise<void> {
  const prompts = await session.library.prompts();
  actions.openView(
    new Picker({
      title: "Go back to before a prompt, and edit it",
      items: prompts.map(({ id, text, at, files = 0 }) => ({
        id,
        label: firstLine(text),
        detail: [
          ...(files === 0 ? [] : [plural(files, "file")]),
          ...(at === undefined ? [] : [formatAge(now() - at)]),
        ].join(" · "),
      })),
      atEnd: true,
      empty: "Nothing was asked in this conversation yet.",
      changed: actions.changed,
      choose: ({ id }) =>
        actions.attempt(async () => {
          const text = prompts.find((prompt) => prompt.id === id)?.text ?? "";
          const rewind = (restores: RewindTarget): void =>
            actions.attempt(async () => {
              // Immediately, so that nothing typed meanwhile is lost; what is sent before the copy is there waits for it.
              if (restores !== "files") box.set(draftOf(text));
              await session.rewind(id, restores);
              actions.changed();
            });
          const changed = await session.library.changedSince(id);
          if (changed.files.length === 0) rewind("conversation");
          else openRewindTargets(changed, { actions, fileName: context().fileName, rewind });
        }),
    }),
  );
}

/** Files were changed since the prompt: what goes back? */
function openRewindTargets(
  { files, insertions, deletions }: ChangedFiles,
  {
    actions,
    fileName,
    rewind,
  }: {
    readonly actions: AppActions;
    readonly fileName: (file: string) => string;
    readonly rewind: (restores: RewindTarget) => void;
  },
): void {
  const names = files.length > 3 ? plural(files.length, "file") : files.map(fileName).join(", ");
  actions.openView(
    new Picker({
      title: "What goes back",
      items: [
        {
          id: "both",
          label: `the conversation, and the files: ${names}`,
          detail: `+${insertions} −${deletions}`,
        },
        { id: "conversation", label: "the conversation; files stay as they are" },
        { id: "files", label: "the files; the conversation continues" },
      ],
      changed: actions.changed,
      choose: ({ id }) => rewind(id as RewindTarget),
    }),
  );
}

export async function openSessions({ session, now }: AppState, actions: AppActions): Promise<void> {
  const items = async (): Promise<readonly PickerItem[]> =>
    (await session.library.sessions()).map(({ id, title, modified, messages, isOpenElsewhere }) => ({
      id,
      label: title,
      detail: `${isOpenElsewhere === true ? "open · " : ""}${plural(messages, "message")} · ${formatAge(now() - modified)}`,
    }));
  actions.openView(
    new Picker({
      title: "Conversations of this folder",
      items: await items(),
      empty: "There is no earlier conversation in this folder.",
      changed: actions.changed,
      reload: items,
      choose: ({ id }) => actions.attempt(() => session.switchTo(id)),
      keys: [
        {
          key: "ctrl+f",
          label: "fork",
          async run({ id }) {
            actions.attempt(() => session.switchTo(id, { fork: true }));
            return undefined;
          },
        },
        {
          key: "ctrl+x",
          label: "delete",
          async run({ id }) {
            await session.library.deleteSession(id);
            return "reload";
          },
        },
      ],
    }),
  );
}

export async function openModels({ session, conversation }: AppState, actions: AppActions): Promise<void> {
  const models = await session.library.models();
  actions.openView(
    new Picker({
      title: "Model",
      items: models.map(({ value, label, description }) => ({
        id: value,
        label,
        detail: description,
      })),
      changed: actions.changed,
      choose: ({ id }) =>
        actions.attempt(async () => {
          await session.setModel(id);
          conversation.note(`The model is ${id} from now on.`, dim);
          actions.changed();
        }),
      keys: [
        {
          key: "ctrl+s",
          label: "also for new conversations",
          async run({ id }) {
            actions.hint(await session.change({ type: "model", model: id }), 4000);
            await session.setModel(id);
            return undefined;
          },
        },
      ],
    }),
  );
}

/** The permission modes, and what each of them means. */
export function openModes({ session, status }: AppState, actions: AppActions): void {
  const { mode = "", modes = [] } = status;
  actions.openView(
    new Picker({
      title: "Permission mode",
      items: modes.map((one) => ({
        id: one,
        label: one,
        detail: `${modeTexts.get(one) ?? ""}${one === mode ? " · in use" : ""}`,
      })),
      selected: mode,
      changed: actions.changed,
      choose({ id }) {
        session.setMode(id);
        actions.changed();
      },
    }),
  );
}

export const themeNotes: Readonly<Record<Theme, string>> = {
  terminal: "Colours follow the terminal.",
  dark: "Colours are for a dark terminal from now on.",
  light: "Colours are for a light terminal from now on.",
};

const themeTexts: Readonly<Record<Theme, string>> = {
  terminal: "as set by the terminal (COLORFGBG), else dark",
  dark: "for light text on a dark background",
  light: "for dark text on a light background",
};

export function openThemes({ session, conversation }: AppState, actions: AppActions): void {
  actions.openView(
    new Picker({
      title: "Colours",
      items: themes.map((theme) => ({ id: theme, label: theme, detail: themeTexts[theme] })),
      changed: actions.changed,
      choose({ id }) {
        const theme = themes.find((one) => one === id);
        if (theme === undefined) return;
        session.prefer({ theme });
        conversation.note(themeNotes[theme]);
        actions.changed();
      },
    }),
  );
}

/** One key and what it does, for the help and for the docs. */
interface KeyHelp {
  readonly keys: string;
  readonly does: string;
}

/** Every key of the conversation, in the order people look for them. */
const keyHelp: readonly KeyHelp[] = [
  { keys: "enter", does: "send; while the agent works, queue the message" },
  { keys: "shift+enter, alt+enter, ctrl+j, \\ enter", does: "new line" },
  { keys: "esc", does: "interrupt the turn; the draft stays" },
  { keys: "esc esc", does: "go back to an earlier prompt and edit it" },
  { keys: "ctrl+c", does: "clear the draft; twice within 2 s: quit" },
  { keys: "ctrl+d", does: "quit, if the draft is empty" },
  { keys: "tab", does: "go to the pending question; tab again: back to the draft" },
  { keys: "shift+tab", does: "next permission mode" },
  { keys: "ctrl+b", does: "move the running agent or command to the background" },
  { keys: "ctrl+o", does: "show the whole conversation, with all calls and results" },
  { keys: "ctrl+t", does: "show the to-do list and all agents" },
  { keys: "ctrl+r", does: "search earlier prompts" },
  { keys: "ctrl+g", does: "edit the draft in $EDITOR" },
  { keys: "ctrl+v", does: "paste an image from the clipboard; image files can be dropped" },
  { keys: "ctrl+z", does: "suspend; fg resumes" },
  { keys: "ctrl+l", does: "redraw the input area" },
  { keys: "up, down", does: "earlier prompts; up takes a queued message back; down goes to the agents" },
  { keys: "down, then enter / x / b", does: "open, stop or move the chosen agent" },
  { keys: "/", does: "commands and skills" },
  { keys: "@", does: "a file of the project" },
  { keys: "!", does: "a shell command, through the same rules" },
  { keys: "#", does: "a note for the project's instructions" },
  { keys: "?", does: "this page" },
];
