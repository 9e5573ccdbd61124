import { randomUUID } from "node:crypto";
import type { UserMessage } from "../../../conversation/message.ts";
import type { RunEnding, RunEvent } from "../../../conversation/run-event.ts";
import { contextTokens } from "../../../conversation/usage.ts";
import { Fault, isFault } from "../../../foundation/fault.ts";
import type { PermissionMode } from "../../../permissions/permission-mode.ts";
import type { Runtime } from "../../../runtime/create-runtime.ts";
import type { RuntimeOptions, SessionOptions } from "../../../runtime/runtime-options.ts";
import type { Session } from "../../../runtime/session.ts";
import type { CommandContext } from "../../cli/session-options.ts";
import { AgentTracker } from "./agent-tracker.ts";
import { conversationEntries, lastEntries } from "./conversation-entries.ts";
import { MessageQueue } from "./message-queue.ts";
import { createPlanTool, planReminder } from "./plan-mode.ts";
import { RunEvents } from "./run-events.ts";
import type { SessionPages } from "./session-pages.ts";
import { SessionQuestions } from "./session-questions.ts";
import type { SessionRecords } from "./session-records.ts";
import type {
  AgentEntry,
  Choice,
  CommandSummary,
  EarlierPrompt,
  QuestionAnswer,
  ReportTopic,
  SessionEvent,
  SessionSummary,
  TerminalSession,
} from "./terminal-session.ts";

export interface RuntimeSessionOptions {
  /** Makes the runtime that the options of the command line ask for; called once, with the first conversation. */
  readonly createRuntime: (more: RuntimeOptions) => Promise<Runtime>;
  readonly session: SessionOptions;
  readonly context: CommandContext;
}

const shownPrompts = 3;

/** The one way from the terminal to the runtime: conversations, their turns, their agents and questions. */
export class RuntimeSession implements TerminalSession {
  readonly #options: RuntimeSessionOptions;
  readonly #listeners = new Set<(event: SessionEvent) => void>();
  readonly #queue: MessageQueue;
  readonly #questions: SessionQuestions;
  readonly #closing = new AbortController();
  #runtime: Runtime | undefined;
  #session: Session | undefined;
  #tracker: AgentTracker;
  #turn: AbortController | undefined;
  #shell: AbortController | undefined;
  /** The mode that the person has chosen; undefined leaves that of the plan. */
  #mode: PermissionMode | undefined;
  #given: SessionOptions;
  #ownCost = 0;
  /** What the person did beside the conversation; the agent reads it with the next message. */
  #asides: string[] = [];

  constructor(options: RuntimeSessionOptions) {
    this.#options = options;
    this.#given = options.session;
    this.#queue = new MessageQueue((event) => this.#tell(event));
    this.#questions = new SessionQuestions((event) => this.#tell(event), options.context.host.cwd);
    this.#tracker = this.#newTracker(undefined);
  }

  /** Opens the first conversation; what is submitted before is sent then. Rejects when it cannot be opened. */
  async open(): Promise<void> {
    await this.#open(this.#given);
  }

  subscribe(listener: (event: SessionEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  submit(text: string): void {
    this.#queue.add(text);
    this.#continue();
  }

  takeBack(messageId: string): string | undefined {
    return this.#queue.takeBack(messageId);
  }

  interrupt(): void {
    const reason = new Fault("aborted", "The person interrupted the turn.");
    this.#turn?.abort(reason);
    this.#shell?.abort(reason);
  }

  answer(questionId: string, answer: QuestionAnswer): void {
    this.#questions.answer(questionId, answer);
  }

  setMode(mode: string): void {
    const known = this.#modes().find((one) => one === mode);
    if (known === undefined) return;
    this.#mode = known;
    this.#tell({ type: "status-changed", status: { mode } });
  }

  async setModel(model: string): Promise<void> {
    this.#refuseWhileBusy("change the model");
    const before = this.#given;
    const { sessionId } = this.#opened().plan;
    const hasWords = this.#opened().messages().length > 0;
    const { resume: _resume, continue: _continue, ...rest } = before;
    this.#given = { ...rest, model };
    try {
      await this.#reopen({ ...this.#given, ...(hasWords ? { resume: sessionId } : {}) }, { isQuiet: true });
    } catch (error) {
      this.#given = before;
      await this.#open({ ...before, ...(hasWords ? { resume: sessionId } : {}) }, { isQuiet: true });
      throw error;
    }
  }

  moveToBackground(agentId?: string): readonly string[] {
    const tasks = this.#session?.tasks;
    if (tasks === undefined) return [];
    return tasks
      .list()
      .filter(({ id, background, status }) => {
        const isMeant = agentId === undefined || agentId === id;
        return isMeant && !background && (status === "running" || status === "queued");
      })
      .filter(({ id }) => tasks.detach(id))
      .map(({ id, description }) => {
        const state = tasks.get(id);
        if (state !== undefined) this.#tell({ type: "agent-changed", agent: this.#tracker.snapshot(state) });
        return description;
      });
  }

  async messageAgent(agentId: string, text: string): Promise<string> {
    const session = this.#opened();
    const message: UserMessage = { role: "user", content: [{ type: "text", text }] };
    if (session.tasks.send(agentId, message)) return "Sent; it reads the message before its next step.";
    const state = session.tasks.get(agentId);
    const handle = session.spawn(state?.agentType ?? "general-purpose", text, {
      resume: agentId,
      background: true,
      ...(state === undefined ? {} : { description: state.description }),
    });
    await handle.id;
    return "It goes on in the background with your message.";
  }

  async stopAgent(agentId: string): Promise<void> {
    await this.#session?.tasks.stop(agentId, "user");
  }

  watchAgent(agentId: string, listener: (entry: AgentEntry) => void): () => void {
    const early: AgentEntry[] = [];
    let pass = (entry: AgentEntry): void => void early.push(entry);
    const forget = this.#tracker.watch(agentId, (entry) => pass(entry));
    void this.#stored(agentId).then((stored) => {
      const seen = new Set(stored.map((entry) => JSON.stringify(entry)));
      for (const entry of stored) listener(entry);
      for (const entry of early) if (!seen.has(JSON.stringify(entry))) listener(entry);
      pass = listener;
    });
    return forget;
  }

  runShell(command: string): void {
    const [bash] = this.#session?.tools(["Bash"]) ?? [];
    if (bash === undefined) {
      this.#notice("There is no shell in this session.", "warning");
      return;
    }
    const stop = new AbortController();
    this.#shell = stop;
    const call = { id: `shell-${randomUUID()}`, tool: "Bash", input: { command } };
    const start = performance.now();
    this.#tell({ type: "call-started", call });
    void bash.call(call.input, { signal: stop.signal, callId: call.id }).then(({ text, isError }) => {
      const durationMs = performance.now() - start;
      this.#asides.push(`I ran this command at the prompt:\n$ ${command}\n${text}`);
      this.#tell({ type: "call-finished", call, result: { text, isError, durationMs } });
    });
  }

  async addMemory(note: string, scope: "project" | "user"): Promise<string> {
    const { appendMemory } = await import("./append-memory.ts");
    const file = await appendMemory(note, scope, this.#opened().discovered.paths);
    this.#asides.push(`I added this to the instructions in ${file}: ${note}`);
    return file;
  }

  async commands(): Promise<readonly CommandSummary[]> {
    return this.#opened()
      .skills.filter(({ userInvocable }) => userInvocable)
      .map(({ name, description, argumentHint }) => ({
        name,
        description,
        ...(argumentHint === undefined ? {} : { argumentHint }),
      }));
  }

  async models(): Promise<readonly Choice[]> {
    return (await this.#pages()).models();
  }

  async files(): Promise<readonly string[]> {
    const { findProjectFiles } = await import("./find-project-files.ts");
    return findProjectFiles(this.#options.context.host.cwd, this.#closing.signal);
  }

  async report(topic: ReportTopic, words: readonly string[]): Promise<string> {
    return (await this.#pages()).report(topic, words);
  }

  async history(): Promise<readonly string[]> {
    return (await this.#records()).promptHistory();
  }

  compact(instructions: string): void {
    this.submit(`/compact ${instructions}`.trim());
  }

  async transcript(): Promise<readonly AgentEntry[]> {
    return conversationEntries(this.#opened().messages());
  }

  async prompts(): Promise<readonly EarlierPrompt[]> {
    return (await this.#records()).prompts(this.#opened().plan.sessionId);
  }

  async rewind(promptId: string): Promise<void> {
    this.#refuseWhileBusy("go back");
    const sessionId = await (await this.#records()).copyBefore(this.#opened().plan.sessionId, promptId);
    await this.switchTo(sessionId);
  }

  async exportTo(file: string): Promise<string> {
    return (await this.#records()).writeExport(file, this.#opened().messages());
  }

  async sessions(): Promise<readonly SessionSummary[]> {
    return (await this.#records()).list();
  }

  async switchTo(
    sessionId: string | undefined,
    { fork = false }: { readonly fork?: boolean } = {},
  ): Promise<void> {
    const { resume: _resume, continue: _continue, forkSession: _fork, sessionId: _id, ...rest } = this.#given;
    this.#given = rest;
    const target =
      sessionId === undefined ? {} : { resume: sessionId, ...(fork ? { forkSession: true } : {}) };
    await this.#reopen({ ...rest, ...target });
  }

  async renameSession(sessionId: string | undefined, title: string): Promise<void> {
    const current = this.#opened().plan.sessionId;
    const id = sessionId ?? current;
    if (id === current) {
      throw new Fault(
        "session-open",
        "The title of the open conversation can be changed after it has ended.",
        {
          advice: `Write \`retinue sessions rename ${id} "${title}"\` then.`,
        },
      );
    }
    await (await this.#records()).rename(id, title);
  }

  async deleteSession(sessionId: string): Promise<void> {
    if (sessionId === this.#session?.plan.sessionId)
      throw new Fault("session-open", "This conversation is open; leave it first with /clear.");
    await (await this.#records()).remove(sessionId);
  }

  /** What ended with the session, for the line that is said at the end. */
  closing(): { readonly sessionId: string | undefined; readonly runningAgents: readonly string[] } {
    const session = this.#session;
    const running = session?.tasks.list().filter(({ status }) => status === "running" || status === "queued");
    const isKept = session !== undefined && session.messages().length > 0;
    return {
      sessionId: isKept ? session.plan.sessionId : undefined,
      runningAgents: (running ?? []).map(({ agentType, description }) => `${agentType}: ${description}`),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const reason = new Fault("interrupted", "The terminal was closed.");
    this.#closing.abort(reason);
    this.#turn?.abort(reason);
    this.#shell?.abort(reason);
    await this.#session?.[Symbol.asyncDispose]();
    await this.#runtime?.[Symbol.asyncDispose]();
  }

  async #open(options: SessionOptions, { isQuiet = false } = {}): Promise<void> {
    this.#runtime ??= await this.#options.createRuntime(this.#runtimeOptions());
    const session = await this.#runtime.open({
      ...options,
      interactive: { takeMessages: () => this.#queue.takeReadable(), mode: () => this.#mode },
    });
    if (this.#closing.signal.aborted) return session[Symbol.asyncDispose]();
    this.#session = session;
    this.#ownCost = 0;
    this.#mode ??= undefined;
    this.#tracker = this.#newTracker(session);
    void this.#followAgents(session);
    const earlier = isQuiet ? [] : lastEntries(conversationEntries(session.messages()), shownPrompts);
    this.#tell({
      type: "conversation-opened",
      sessionId: session.plan.sessionId,
      earlier,
      notes: isQuiet ? [] : session.plan.notes,
    });
    this.#tell({
      type: "status-changed",
      status: {
        model: session.model.id,
        mode: this.#modeNow(),
        modes: this.#modes(),
        contextFill: 0,
        costUsd: 0,
      },
    });
    this.#continue();
  }

  async #reopen(options: SessionOptions, { isQuiet = false } = {}): Promise<void> {
    this.interrupt();
    const before = this.#session;
    this.#session = undefined;
    await before?.[Symbol.asyncDispose]();
    await this.#open(options, { isQuiet });
  }

  #runtimeOptions(): RuntimeOptions {
    const notice = (text: string): void => this.#notice(text, "warning");
    return {
      approver: {
        approve: (request, options) => this.#questions.approve(request, options),
        notice,
      },
      host: {
        ask: (questions, options) => this.#questions.askForm(questions, options),
        todosChanged: (todos) =>
          this.#tell({
            type: "todos-changed",
            todos: todos.map(({ content, activeForm, status }) => ({
              text: status === "in_progress" ? activeForm : content,
              state: ({ pending: "pending", in_progress: "active", completed: "done" } as const)[status],
            })),
          }),
      },
      extraTools: [
        createPlanTool({
          mode: () => this.#modeNow(),
          ask: (plan, signal) => this.#questions.askPlan(plan, signal),
          approved: (mode) => this.setMode(mode),
        }),
      ],
      notice,
    };
  }

  /** Sends the next message, or what agents in the background have to tell, when nothing runs. */
  #continue(): void {
    const session = this.#session;
    if (session === undefined || this.#turn !== undefined || this.#closing.signal.aborted) return;
    const text = this.#queue.takeFirst();
    if (text !== undefined) return void this.#runTurn(session, this.#contentOf(text));
    const notices = session.takeNotices();
    if (notices.length > 0) void this.#runTurn(session, notices.flatMap(blocksOf));
  }

  async #runTurn(session: Session, content: UserMessage["content"]): Promise<void> {
    const turn = new AbortController();
    this.#turn = turn;
    this.#tell({ type: "turn-started" });
    const events = new RunEvents();
    let ending: RunEnding | undefined;
    let error: string | undefined;
    try {
      for await (const event of session.stream(content, turn.signal)) {
        if (event.type === "run-ended") ending = event.ending;
        else this.#hear(event, events, session);
      }
    } catch (thrown) {
      error = describeError(thrown);
    }
    this.#turn = undefined;
    const status = ending?.status ?? (turn.signal.aborted ? "stopped" : "failed");
    const reason = error ?? ending?.error;
    const isTold = reason !== undefined && status !== "stopped" && status !== "completed";
    this.#tell({ type: "turn-ended", outcome: { status, ...(isTold ? { error: reason } : {}) } });
    this.#continue();
  }

  #hear(event: RunEvent, events: RunEvents, session: Session): void {
    for (const one of events.read(event)) this.#tell(one);
    if (event.type === "assistant-answered") {
      const used = contextTokens(event.usage) + event.usage.outputTokens;
      this.#tell({ type: "status-changed", status: { contextFill: used / session.model.contextWindow } });
    }
    if ("cost" in event && event.cost !== undefined) this.#addCost(event.cost);
  }

  #addCost(cost: number): void {
    this.#ownCost += cost;
    this.#tellCost();
  }

  #tellCost(): void {
    this.#tell({ type: "status-changed", status: { costUsd: this.#ownCost + this.#tracker.costUsd() } });
  }

  async #followAgents(session: Session): Promise<void> {
    for await (const news of session.tasks.watch()) {
      if (this.#session !== session) return;
      this.#tracker.hear(news);
      const { event, state } = news;
      if (event.type === "assistant-answered" || event.type === "run-ended") this.#tellCost();
      // What it has to tell arrives when it has let go of everything.
      if (event.type === "run-ended" && state.background)
        void session.tasks.ended(state.id).then(() => this.#continue());
    }
  }

  #newTracker(session: Session | undefined): AgentTracker {
    return new AgentTracker({
      colourOf(agentType) {
        const found = session?.discovered.registry.find(agentType);
        return found?.type === "found" ? found.agent.definition.color : undefined;
      },
      clockOffset: Date.now() - performance.now(),
      changed: (agent) => this.#tell({ type: "agent-changed", agent }),
    });
  }

  #contentOf(text: string): UserMessage["content"] {
    const asides = this.#asides.splice(0);
    const reminder = this.#modeNow() === "plan" ? [planReminder] : [];
    if (asides.length + reminder.length === 0) return text;
    return [...asides, text, ...reminder].map((one) => ({ type: "text", text: one }));
  }

  #modeNow(): PermissionMode {
    return this.#mode ?? this.#session?.plan.policy.mode ?? "default";
  }

  /** Everything may be allowed only where that was asked for at the start. */
  #modes(): readonly PermissionMode[] {
    const start = this.#session?.plan.policy.mode ?? "default";
    const modes: readonly PermissionMode[] = ["default", "acceptEdits", "plan"];
    const canBypass = start === "bypassPermissions" || this.#given.skipPermissions === true;
    const all: readonly PermissionMode[] = [...modes, ...(canBypass ? (["bypassPermissions"] as const) : [])];
    return all.includes(start) ? all : [start, ...all];
  }

  async #stored(agentId: string): Promise<readonly AgentEntry[]> {
    const session = this.#session;
    if (session === undefined) return [];
    const messages = await (await this.#records()).agentMessages(session.plan.sessionId, agentId);
    return conversationEntries(messages);
  }

  #opened(): Session {
    if (this.#session !== undefined) return this.#session;
    throw new Fault("session-opening", "The conversation is still being opened.");
  }

  #refuseWhileBusy(what: string): void {
    const running = this.closing().runningAgents.length;
    if (this.#turn === undefined && running === 0) return;
    throw new Fault("session-busy", `The agent works, so you cannot ${what} now.`, {
      advice: running > 0 ? "Wait for the agents, or stop them." : "Interrupt it with Esc first.",
    });
  }

  async #records(): Promise<SessionRecords> {
    const { createSessionRecords } = await import("./session-records.ts");
    return createSessionRecords(this.#opened().discovered.paths);
  }

  async #pages(): Promise<SessionPages> {
    const { createSessionPages } = await import("./session-pages.ts");
    return createSessionPages({
      context: this.#options.context,
      session: this.#opened(),
      mode: this.#modeNow(),
    });
  }

  #notice(text: string, level: "info" | "warning" | "error"): void {
    this.#tell({ type: "notice", level, text });
  }

  #tell(event: SessionEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

function blocksOf({ content }: UserMessage): Exclude<UserMessage["content"], string> {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

export function describeError(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return isFault(error) && error.advice !== undefined ? `${message} ${error.advice}` : message;
}
