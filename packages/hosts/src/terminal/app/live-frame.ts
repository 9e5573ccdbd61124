import { firstLine, formatCost, plural } from "../../shared/format.ts";
import type { Frame } from "../screen/inline-screen.ts";
import { cutRow, emptyRow, type Row, rowWidth, span } from "../screen/row.ts";
import { bold, colours, dim, plain, type Style } from "../screen/style.ts";
import type { Status } from "../session/terminal-session.ts";
import { styledRow } from "../text/styled-row.ts";
import { workflowRows } from "../text/workflow-rows.ts";
import type { AppState } from "./app-state.ts";

const maxAgents = 6;
const maxQueued = 4;
const maxTodos = 8;
const maxDraftRows = 12;
const maxPhases = 8;
const maxWorkflows = 4;

/** The live part below the finished text: what continues, agents, questions, messages that wait, the draft, and the footer. */
export function liveFrame(state: AppState, columns: number, rows: number): Frame {
  const width = Math.max(10, columns - 1);
  const room = Math.max(3, rows - 1);
  // In a small window the open question takes all of it; the draft is there again afterwards.
  const isTight = state.questionController.isOpen && room < 16;
  const prompt = state.box.view(width, Math.min(maxDraftRows, Math.max(1, Math.floor(room / 3))));
  const asking = state.questionController.asking();
  const agents = state.board.rows({ width, now: state.now(), asking, maxRows: agentRoom(room) });
  const panel = isTight
    ? state.questionController.view(width, room)
    : state.questionController.view(
        width,
        Math.max(4, Math.floor(room / 2)),
        Math.max(4, room - prompt.rows.length - 6),
      );
  const footer = footerRow(
    {
      status: state.status,
      agents: state.board.running().length,
      questions: state.questionController.count,
      isBusy: state.conversation.isBusy,
      hint: state.hint,
      questionHint: state.questionController.hint,
      isAgentSelected: state.board.selected !== undefined,
      vimMode: state.box.vimMode,
    },
    width,
  );
  const board = [...todoRows(state, width), ...workflowBoard(state, width, room), ...agents];
  const gap = board.length > 0 && !state.conversation.isBusy ? [emptyRow] : [];
  const fixed = [...gap, ...board, ...queuedRows(state, width)];
  const rule = room < 6 ? [] : ruleRows(width);
  const own = state.isOnce
    ? [emptyRow, footer]
    : [...rule, ...prompt.rows, footer, ...statusRows(state, width, room)];
  const tail = isTight ? [] : own;
  const before = isTight ? [] : [emptyRow];
  const middle = panel.rows.length > 0 ? [...before, ...panel.rows] : [];
  const used = fixed.length + middle.length + tail.length;
  const live = state.conversation.live(Math.max(1, room - used), {
    agents: state.board.running().length,
    isAsking: state.questionController.isMainAsking,
  });
  const above = fitAbove([...live, ...fixed], room - middle.length - tail.length);
  const all = [...above, ...middle, ...tail];
  return {
    rows: all,
    cursor: cursorOf({
      above,
      lead: before.length,
      middle: [...middle, ...rule],
      panel,
      prompt,
      isPanel: state.questionController.hasFocus || isTight || state.isOnce,
    }),
  };
}

/** Where there is little room, each run has one row. */
function workflowBoard({ workflows, now }: AppState, width: number, room: number): readonly Row[] {
  const maxRows = Math.max(
    1,
    Math.min(maxPhases + 1, Math.floor(room / (3 * Math.max(1, workflows.length)))),
  );
  const shown = workflows.slice(0, maxWorkflows);
  const left = workflows.length - shown.length;
  return [
    ...shown.flatMap((run) => workflowRows(run, { width, now: now(), maxRows }).slice(0, maxRows)),
    ...(left > 0 ? [[span(`    and ${plural(left, "more workflow")} (/workflows shows all)`, dim)]] : []),
  ];
}

function agentRoom(room: number): number {
  return Math.max(1, Math.min(maxAgents, Math.floor(room / 4)));
}

/** Where there is no room for all of it, the older rows go. */
function fitAbove(rows: readonly Row[], room: number): readonly Row[] {
  return rows.slice(Math.max(0, rows.length - Math.max(0, room)));
}

interface CursorParts {
  readonly above: readonly Row[];
  /** Empty rows before the question. */
  readonly lead: number;
  /** Everything between what is above and the draft. */
  readonly middle: readonly Row[];
  readonly panel: { readonly cursor?: Frame["cursor"] };
  readonly prompt: { readonly cursor: NonNullable<Frame["cursor"]> };
  readonly isPanel: boolean;
}

/** In the text of a question while one is written there; hidden while one is only chosen from; else in the draft. */
function cursorOf({ above, lead, middle, panel, prompt, isPanel }: CursorParts): Frame["cursor"] {
  if (!isPanel) {
    const { row, column } = prompt.cursor;
    return { row: above.length + middle.length + row, column };
  }
  if (panel.cursor === undefined) return undefined;
  return { row: above.length + lead + panel.cursor.row, column: panel.cursor.column };
}

/** What the person's own command says; the first that goes where there is no room. */
function statusRows({ status: { statusLine = "" } }: AppState, width: number, room: number): readonly Row[] {
  return statusLine === "" || room < 8 ? [] : [cutRow([span(" "), ...styledRow(statusLine, dim)], width)];
}

function ruleRows(width: number): readonly Row[] {
  return [emptyRow, [span("─".repeat(width), dim)]];
}

function queuedRows({ queue }: AppState, width: number): readonly Row[] {
  if (queue.length === 0) return [];
  const shown = queue.slice(-maxQueued);
  const hidden = queue.length - shown.length;
  return [
    emptyRow,
    ...(hidden > 0 ? [[span(`  ${plural(hidden, "more message")} queued`, dim)]] : []),
    ...shown.map(({ text }, at) =>
      cutRow(
        [
          span("› ", colours.accent),
          span(firstLine(text), dim),
          span(at === shown.length - 1 ? "  (queued; up takes it back)" : "  (queued)", dim),
        ],
        width,
      ),
    ),
  ];
}

function todoRows({ todos, showsTodos }: AppState, width: number): readonly Row[] {
  const open = todos.filter(({ state }) => state !== "done");
  if (todos.length === 0 || open.length === 0) return [];
  const active = todos.find(({ state }) => state === "active") ?? open[0];
  const done = todos.length - open.length;
  if (!showsTodos)
    return [
      cutRow(
        [
          span("  ☐ ", dim),
          span(active?.text ?? ""),
          span(`  step ${done + 1} of ${todos.length} · ctrl+t shows all`, dim),
        ],
        width,
      ),
    ];
  return todos.slice(0, maxTodos).map(({ text, state }) => {
    const mark = state === "done" ? "☒" : "☐";
    return cutRow([span(`  ${mark} `, dim), span(text, todoStyles[state])], width);
  });
}

const todoStyles = { pending: plain, active: bold, done: dim } as const;

interface FooterFacts {
  readonly status: Partial<Status>;
  readonly agents: number;
  readonly questions: number;
  readonly isBusy: boolean;
  /** Said instead of the keys, such as what a second Ctrl+C would do. */
  readonly hint: string;
  /** What keys do in the question that is open. */
  readonly questionHint: string;
  readonly isAgentSelected: boolean;
  readonly vimMode: "insert" | "normal" | undefined;
}

/** Model, mode, window, cost, agents; what is least missed goes first where there is no room. */
function footerRow(
  { status, agents, questions, isBusy, hint, questionHint, isAgentSelected, vimMode }: FooterFacts,
  width: number,
): Row {
  const { model, mode, contextFill, costUsd } = status;
  const ownHint = isAgentSelected ? "enter opens · x stops · b background · esc" : questionHint;
  const keys: readonly (readonly [text: string, rank: number])[] =
    ownHint === "" ? keyHints(agents, isBusy) : [[ownHint, 1]];
  const parts: (readonly [text: string, rank: number, style?: Style])[] = [
    ...(vimMode === undefined ? [] : [[vimMode, 1, vimMode === "normal" ? bold : dim] as const]),
    ...(model === undefined || model === "" ? [] : [[model, 2] as const]),
    ...(mode === undefined ? [] : [[mode, 1, modeStyles.get(mode) ?? dim] as const]),
    ...(contextFill === undefined || contextFill === 0
      ? []
      : [
          [
            `context ${Math.round(contextFill * 100)} %`,
            3,
            contextFill > 0.8 ? colours.warning : dim,
          ] as const,
        ]),
    ...(costUsd === undefined || costUsd === 0 ? [] : [[formatCost(costUsd), 4] as const]),
    ...(agents === 0 ? [] : [[plural(agents, "agent"), 3] as const]),
    ...(questions === 0 ? [] : [[plural(questions, "question"), 0, colours.warning] as const]),
    ...(hint === "" ? keys : [[hint, 0, colours.warning] as const]),
  ];
  for (let rank = 6; rank >= 0; rank -= 1) {
    const row = parts
      .filter(([, own]) => own <= rank)
      .flatMap(([text, , style = dim], at) => [span(at === 0 ? " " : " · ", dim), span(text, style)]);
    if (rowWidth(row) <= width) return row;
  }
  return [];
}

function keyHints(agents: number, isBusy: boolean): readonly (readonly [text: string, rank: number])[] {
  return [...(agents > 0 || isBusy ? [["ctrl+b background", 6] as const] : []), ["? keys", 5] as const];
}

const modeStyles: ReadonlyMap<string, Style> = new Map([
  ["acceptEdits", colours.good],
  ["plan", colours.link],
  ["bypassPermissions", colours.error],
]);
