import { formatDuration, plural } from "../../shared/format.ts";
import { answeredRow, unaskedRow } from "../questions/answered-row.ts";
import { cutRow, emptyRow, padRow, type Row, rowWidth, span } from "../screen/row.ts";
import { bold, colours, dim, plain, type Style } from "../screen/style.ts";
import { wrapRow } from "../screen/wrap-row.ts";
import type {
  AgentEntry,
  AgentSnapshot,
  Question,
  QuestionAnswer,
  SessionEvent,
  StartFacts,
  ToolCall,
  TurnOutcome,
} from "../session/terminal-session.ts";
import { earlierAgentRow, endedAgentRows } from "../text/agent-rows.ts";
import {
  callSubject,
  endedCommandRow,
  finishedCallRows,
  liveOutputRows,
  runningCallRow,
  shellRows,
} from "../text/finished-call-rows.ts";
import { MarkdownStream } from "../text/markdown-stream.ts";
import type { RowContext } from "../text/row-context.ts";
import { endedWorkflowRows } from "../text/workflow-rows.ts";

export interface ConversationOptions {
  readonly context: () => RowContext;
  readonly now: () => number;
  /** The last line of the first start: where to look for keys and commands. */
  readonly startHint: string;
}

interface RunningCall {
  readonly call: ToolCall;
  readonly startedAt: number;
  progress: string;
}

/** A request that is made again at a time. */
interface RetryWait {
  readonly text: string;
  readonly reason: string;
  readonly until: number;
}

/** What a turn waits for besides the model. */
export interface WaitsFor {
  /** So many agents. */
  readonly agents: number;
  /** The person, for an answer of the main agent's. */
  readonly isAsking: boolean;
}

type Kind = "none" | "person" | "text" | "calls" | "note";

const maxShownPrompt = 12;
const maxRunningCalls = 6;

/** The content of the conversation: rows that are finished, and those that still change. */
export class Conversation {
  readonly #options: ConversationOptions;
  readonly #markdown: MarkdownStream;
  readonly #running = new Map<string, RunningCall>();
  readonly #deferred: { readonly kind: Kind; readonly rows: readonly Row[] }[] = [];
  readonly #agentCalls = new Set<string>();
  /** Calls that the person refused. */
  readonly #refused = new Set<string>();
  /** Forms of the main agent that the person closed; their calls end next. */
  #closedForms = 0;
  #finished: Row[] = [];
  #last: Kind = "none";
  #busySince: number | undefined;
  #waiting: RetryWait | undefined;
  #isThinking = false;
  #isCompacting = false;

  constructor(options: ConversationOptions) {
    this.#options = options;
    this.#markdown = new MarkdownStream(options.context);
  }

  get isBusy(): boolean {
    return this.#busySince !== undefined;
  }

  get hasRunningCalls(): boolean {
    return this.#running.size > 0;
  }

  /** Whether something ends by itself, such as a count of seconds. */
  get isMoving(): boolean {
    return this.isBusy || this.#isCompacting || this.#shell !== undefined;
  }

  /** The calls that run, with what is known of their output so far. */
  running(): readonly AgentEntry[] {
    return [...this.#running.values()].flatMap(({ call, progress, startedAt }): AgentEntry[] => {
      const durationMs = this.#options.now() - startedAt;
      return [
        { type: "call", call },
        { type: "result", callId: call.id, result: { text: progress, isError: false, durationMs } },
      ];
    });
  }

  /** A step of the agent's list that is done. */
  stepDone(text: string): void {
    this.add([cutRow([span("☒ ", colours.good), span(text, dim)], this.#width())], "calls");
  }

  takeFinished(): readonly Row[] {
    const rows = this.#finished;
    this.#finished = [];
    return rows;
  }

  onEvent(event: SessionEvent): void {
    switch (event.type) {
      case "started":
        this.add(startRows(event.facts, { width: this.#width(), hint: this.#options.startHint }));
        break;
      case "turn-started":
        this.#busySince = this.#options.now();
        break;
      case "turn-ended":
        this.#endTurn(event.outcome);
        break;
      case "message-read":
        this.#showPrompt(event.text);
        break;
      case "text":
        this.#showText(event.text);
        break;
      case "thinking":
        this.#waiting = undefined;
        this.#isThinking = true;
        break;
      case "retry":
        this.#retry(event);
        break;
      case "call-started":
        if (event.call.isPerson !== true) this.#endText();
        this.#running.set(event.call.id, { call: event.call, startedAt: this.#options.now(), progress: "" });
        break;
      case "call-progressed": {
        const running = this.#running.get(event.callId);
        if (running !== undefined) running.progress = event.text;
        break;
      }
      case "call-finished":
        this.#endCall(event);
        break;
      case "command-ended":
        this.add([endedCommandRow(event.command, this.#width())], "calls");
        break;
      case "workflow-changed":
        if (event.change.type === "started")
          this.note(`Workflow ${event.run.name} runs (${event.run.runId}).`, dim);
        if (event.change.type === "ended") this.add(endedWorkflowRows(event.run, this.#width()), "calls");
        break;
      case "compaction":
        this.#compact(event);
        break;
      case "notice":
        this.note(event.text, noticeStyles[event.level]);
        break;
      default:
        break;
    }
  }

  /** A line beside the conversation. */
  note(text: string, style: Style = dim): void {
    this.add(text.split("\n").flatMap((line) => wrapRow([span(line, style)], this.#width())));
  }

  /**
   * Rows that were made elsewhere, such as a page that was asked for. Text that is being said is not torn apart by them; an
   * answer that is only watched may have broken off without a sign, so they do not wait for its end.
   */
  add(rows: readonly Row[], kind: Kind = "note"): void {
    if (this.#markdown.isMidBlock && this.isBusy) this.#deferred.push({ kind, rows });
    else this.#finish(kind, rows);
  }

  /** What a person did at the prompt that is no message to the agent. */
  addPrompt(text: string): void {
    this.#showPrompt(text);
  }

  /** What the person answered. A call that they refused has no other line: its result only repeats it to the model. */
  answered(question: Question, answer: QuestionAnswer): void {
    const isOwn = question.kind === "form" && question.isChoice === true;
    this.add([answeredRow(question, answer, this.#options.context())], isOwn ? "note" : "calls");
    if (answer.type !== "deny" || isOwn) return;
    if (question.kind === "permission") this.#refused.add(question.call.id);
    if (question.kind === "form" && question.path.length === 1) this.#closedForms += 1;
  }

  /** A question of an agent that was moved to the background, where nobody is asked. */
  unasked(question: Question): void {
    this.add([unaskedRow(question, this.#options.context())], "calls");
  }

  /** A text that is complete, such as a plan. */
  addMarkdown(text: string): void {
    this.#endText();
    this.#showText(`${text}\n`);
    this.#endText();
  }

  /** Everything that was kept back is finished as it is. */
  close(): void {
    this.#endText();
  }

  /** An agent works for a call; its own line shows how that went. */
  agentStarted({ callId }: AgentSnapshot): void {
    if (callId !== undefined) this.#agentCalls.add(callId);
  }

  agentEnded(agent: AgentSnapshot): void {
    this.add(endedAgentRows(agent, this.#width()), "calls");
  }

  /** The end of what was said before, when a conversation is taken up again. */
  replay(entries: readonly AgentEntry[]): void {
    const calls = new Map<string, ToolCall>();
    for (const entry of entries) {
      if (entry.type === "prompt") this.#showPrompt(entry.text);
      if (entry.type === "text" || entry.type === "ended") this.#showText(`${entry.text}\n`);
      if (entry.type === "text" || entry.type === "ended") this.#endText();
      if (entry.type === "call") calls.set(entry.call.id, entry.call);
      const call = entry.type === "result" ? calls.get(entry.callId) : undefined;
      if (entry.type !== "result" || call === undefined) continue;
      if (agentTools.has(call.tool))
        this.#finish("calls", [earlierAgentRow(call, entry.result, this.#width())]);
      else if (!hiddenTools.has(call.tool))
        this.#finish("calls", finishedCallRows(call, entry.result, this.#options.context()));
    }
  }

  /** Rows that still change, at most `height` of them: the newest text, running calls, and what continues. */
  live(height: number, waits: WaitsFor): readonly Row[] {
    const calls = [...this.#running.values()].filter(({ call }) => !hiddenTools.has(call.tool));
    const shown = calls
      .slice(-maxRunningCalls)
      .flatMap(({ call, progress }) => [
        runningCallRow(call, progress, this.#options.context()),
        ...liveOutputRows(call, progress, this.#options.context()),
      ]);
    const hidden = Math.max(0, calls.length - maxRunningCalls);
    const more = hidden > 0 ? [[span(`  and ${plural(hidden, "more call")}`, dim)]] : [];
    const working = this.#working(waits);
    const below = [...this.#gap("calls", shown.length), ...more, ...shown, ...working];
    const text = this.#markdown.live();
    const tail = text.length === 0 ? [] : [...this.#gap("text", 1), ...text];
    const room = Math.max(1, height - below.length);
    return [...tail.slice(Math.max(0, tail.length - room)), ...below].slice(-height);
  }

  /** The oldest command of the person that runs. */
  get #shell(): RunningCall | undefined {
    return [...this.#running.values()].find(({ call }) => call.isPerson === true);
  }

  #gap(kind: Kind, count: number): readonly Row[] {
    return count > 0 && this.#last !== "none" && this.#last !== kind ? [emptyRow] : [];
  }

  #working(waits: WaitsFor): readonly Row[] {
    const startedAt = this.#busySince ?? this.#shell?.startedAt;
    if (startedAt === undefined && !this.#isCompacting) return [];
    const now = this.#options.now();
    const since = formatDuration(now - (startedAt ?? now));
    const words = this.#waiting === undefined ? this.#activity(waits) : retryText(this.#waiting, now);
    const sign = spinner[Math.floor(now / spinnerMs) % spinner.length] ?? "";
    return [
      emptyRow,
      cutRow(
        [span(`${sign} `, colours.accent), span(words), span(`  ${since} · esc to interrupt`, dim)],
        this.#width(),
      ),
    ];
  }

  #activity({ agents: agentCount, isAsking }: WaitsFor): string {
    if (this.#isCompacting) return "Compacting the conversation";
    if (isAsking && this.isBusy) return "Waiting for your answer";
    const calls = [...this.#running.values()].map(({ call }) => call);
    const [first, ...others] = this.isBusy ? calls.filter(({ isPerson }) => isPerson !== true) : calls;
    if (agentCount > 0 && [first, ...others].every((call) => call === undefined || agentTools.has(call.tool)))
      return `Waiting for ${plural(agentCount, "agent")}`;
    if (first === undefined) return this.#isThinking ? "Thinking" : "Working";
    // What it is about is in the row of the call above.
    return others.length === 0 ? `Running ${first.tool}` : `Running ${plural(others.length + 1, "call")}`;
  }

  #showPrompt(text: string): void {
    this.#endText();
    const lines = text.trimEnd().split("\n");
    const shown = lines.slice(0, maxShownPrompt);
    const left = lines.length - shown.length;
    const rows = shown.flatMap((line, at) =>
      wrapRow([span(line, bold)], this.#width(), {
        first: [span(at === 0 ? "> " : "  ", colours.accent)],
        rest: [span("  ")],
      }),
    );
    this.#last = this.#last === "none" ? "none" : "note";
    this.#finish("person", left > 0 ? [...rows, [span(`  … ${plural(left, "more line")}`, dim)]] : rows);
  }

  #showText(text: string): void {
    this.#waiting = undefined;
    this.#isThinking = false;
    const rows = this.#markdown.push(text);
    if (rows.length > 0) this.#finish("text", rows);
    if (this.#deferred.length > 0 && !this.#markdown.isMidBlock) this.#finishDeferred();
  }

  #endText(): void {
    const rows = this.#markdown.end();
    if (rows.length > 0) this.#finish("text", rows);
    this.#finishDeferred();
  }

  #finishDeferred(): void {
    for (const { kind, rows } of this.#deferred.splice(0)) this.#finish(kind, rows);
  }

  #endCall({ call, result }: Extract<SessionEvent, { type: "call-finished" }>): void {
    this.#running.delete(call.id);
    // The line of the agent itself shows how it went, unless there is none.
    const isGood = !result.isError && result.refusal === undefined;
    if (this.#agentCalls.delete(call.id) || (hiddenTools.has(call.tool) && isGood)) return;
    if (call.isPerson === true) {
      if (!isGood && this.#refused.delete(call.id)) return;
      this.add(shellRows(call, result, this.#options.context()), "calls");
      return;
    }
    this.#endText();
    if (!isGood && this.#isAnswered(call)) return;
    this.#finish("calls", finishedCallRows(call, result, this.#options.context()));
  }

  /** Whether the person's no to it is shown already. */
  #isAnswered({ id, tool }: ToolCall): boolean {
    if (tool !== "AskUserQuestion" || this.#closedForms === 0) return this.#refused.delete(id);
    this.#closedForms -= 1;
    return true;
  }

  #retry({ attempt, maxAttempts, delayMs, reason }: Extract<SessionEvent, { type: "retry" }>): void {
    const rows = this.#markdown.end();
    if (rows.length > 0) {
      this.#finish("text", rows);
      this.note("The answer broke off here; it is requested again.", colours.warning);
    }
    this.#waiting = {
      text: `Attempt ${attempt + 1} of ${maxAttempts}`,
      reason,
      until: this.#options.now() + delayMs,
    };
  }

  #compact({ state, text }: Extract<SessionEvent, { type: "compaction" }>): void {
    this.#isCompacting = state === "started";
    if (state === "ended") this.note(text);
  }

  #endTurn({ status, error }: TurnOutcome): void {
    this.#endText();
    const took = this.#options.now() - (this.#busySince ?? this.#options.now());
    this.#busySince = undefined;
    this.#waiting = undefined;
    this.#isThinking = false;
    this.#isCompacting = false;
    const ended = [...this.#running.values()].filter(({ call }) => call.isPerson !== true);
    for (const { call } of ended) {
      this.#running.delete(call.id);
      if (!hiddenTools.has(call.tool))
        this.#finish("calls", [
          cutRow(
            [
              span("✗ ", dim),
              span(call.tool, bold),
              span(` ${this.#subject(call)}`),
              span("  interrupted", dim),
            ],
            this.#width(),
          ),
        ]);
    }
    if (error !== undefined) this.note(error, status === "failed" ? colours.error : colours.warning);
    else if (status === "stopped") this.note(`Interrupted after ${formatDuration(took)}.`, colours.warning);
  }

  #finish(kind: Kind, rows: readonly Row[]): void {
    this.#finished.push(...this.#gap(kind, rows.length), ...rows);
    this.#last = kind;
  }

  #width(): number {
    return this.#options.context().width;
  }

  #subject(call: ToolCall): string {
    return callSubject(call, this.#options.context().fileName);
  }
}

/** The cause first: it is what a narrow window keeps. */
function retryText({ text, reason, until }: RetryWait, now: number): string {
  const left = until - now;
  return `${reason.replace(/\.$/, "")} · ${text}${left > 500 ? ` in ${formatDuration(left)}` : ""}`;
}

/** The tree of agents shows these better. */
const agentTools: ReadonlySet<string> = new Set(["Agent", "Task"]);
const hiddenTools: ReadonlySet<string> = new Set([
  ...agentTools,
  "TodoWrite",
  "AskUserQuestion",
  "ExitPlanMode",
]);

const noticeStyles = { info: dim, warning: colours.warning, error: colours.error } as const;

/** Seldom enough that waiting costs next to nothing. */
export const spinnerMs = 320;
const spinner = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠇"];

const labelWidth = 9;

/** One screen at the first start, two lines at each later one. */
function startRows(
  facts: StartFacts,
  { width, hint }: { readonly width: number; readonly hint: string },
): readonly Row[] {
  const { isFirst, version, folder, model, access, trust, mode } = facts;
  const name: Row = [span("retinue", bold), span(` ${version}`, dim)];
  const styleOf = ({ isGood }: { readonly isGood: boolean }) => (isGood ? dim : colours.warning);
  if (!isFirst || width < 50) {
    const end: Row = [span(`  ${trust.short ?? trust.text}`, styleOf(trust))];
    // What the folder may do is what the line is for; of a long path the end is kept.
    const room = Math.max(20, width - rowWidth(end) - rowWidth(name) - 2);
    const short = folder.length <= room ? folder : `…${folder.slice(1 - room)}`;
    return [
      cutRow([...name, span(`  ${short}`), ...end], width),
      cutRow([span(model === "" ? "" : `${model}  `), span(access.text, styleOf(access))], width),
    ];
  }
  const fact = (label: string, text: Row): readonly Row[] =>
    wrapRow(text, width, {
      first: padRow([span(label, dim)], labelWidth),
      rest: [span(" ".repeat(labelWidth))],
    });
  const shade = (one: { readonly isGood: boolean }) => (one.isGood ? plain : colours.warning);
  return [
    name,
    emptyRow,
    ...fact("folder", [span(folder)]),
    ...fact("model", [span(model === "" ? "" : `${model}, `), span(access.text, shade(access))]),
    ...fact("trust", [span(trust.text, shade(trust))]),
    ...fact("mode", [span(`${mode}: ${modeTexts.get(mode) ?? "as you asked"} · shift+tab`)]),
    emptyRow,
    ...(model === "" ? offlineTries : modelTries).flatMap((text, at) =>
      fact(at === 0 ? "try" : "", [span(text, bold)]),
    ),
    ...fact("", [span("!git log -3", bold), span("  runs a command, and the agent reads it", dim)]),
    emptyRow,
    [span(hint, dim)],
  ];
}

const modelTries = [
  "what does this project do?",
  "have three agents look for bugs, missing tests and stale docs",
];

/** The offline demo answers only a few forms of prompt. */
const offlineTries = ["what is here", "read README.md"];

/** What each permission mode means, in a few words. */
export const modeTexts: ReadonlyMap<string, string> = new Map([
  ["default", "reads freely, asks before it edits or runs"],
  ["acceptEdits", "edits this folder freely, asks before it runs"],
  ["plan", "only reads, and ends with a plan"],
  ["dontAsk", "never asks; what no rule allows is refused"],
  ["bypassPermissions", "allows everything that no rule denies"],
]);
