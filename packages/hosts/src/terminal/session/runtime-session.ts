import type { PermissionMode } from "@retinue/base/foundation/option-words.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { LiveControls } from "@retinue/core/kernel/agent/open-agent.ts";
import type { Runtime } from "@retinue/core/kernel/create-runtime.ts";
import type { RuntimeOptions, SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { Session } from "@retinue/core/kernel/session.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { conversationEntries, lastEntries } from "./conversation-entries.ts";
import { createPlanTool, modesFrom } from "./create-plan-tool.ts";
import { createRuntimeLibrary, type LibrarySource, loadRecords, openedOf } from "./create-runtime-library.ts";
import { gatherDeltas } from "./gather-deltas.ts";
import { describeError, LiveConversation } from "./live-conversation.ts";
import { MessageQueue } from "./message-queue.ts";
import { todoItem } from "./run-events.ts";
import { readOnly, SessionQuestions } from "./session-questions.ts";
import type {
  AgentEntry,
  QuestionAnswer,
  SessionEvent,
  SessionLibrary,
  TerminalSession,
} from "./terminal-session.ts";
import type { WatchedConversation } from "./watched-conversation.ts";

export interface RuntimeSessionOptions {
  /** Makes the runtime that the options of the command line ask for; called once, with the first conversation. */
  readonly createRuntime: (more: RuntimeOptions & { readonly live: LiveControls }) => Promise<Runtime>;
  readonly session: SessionOptions;
  readonly context: CommandContext;
  /** One prompt is run to its end, agents in the background included. */
  readonly isOnce?: boolean;
  /** False: no one is asked, and what would be asked is refused. */
  readonly asks?: boolean;
}

const shownPrompts = 3;

/** Between two pieces of an answer that flows; frames are painted less often. */
const textPauseMs = 40;

/** The one way from the terminal to the runtime: opens conversations, changes between them, and answers about them. */
export class RuntimeSession implements TerminalSession {
  readonly library: SessionLibrary;
  readonly #options: RuntimeSessionOptions;
  readonly #listeners = new Set<(event: SessionEvent) => void>();
  readonly #queue: MessageQueue;
  readonly #questions: SessionQuestions;
  readonly #closing = new AbortController();
  #runtime: Runtime | undefined;
  #live: LiveConversation | undefined;
  /** Set instead of a conversation of our own while one of another process is watched. */
  #watched: WatchedConversation | undefined;
  /** The mode that the person has chosen; undefined leaves that of the plan. */
  #mode: PermissionMode | undefined;
  #given: SessionOptions;
  /** Changes of the conversation that are under way; messages wait for the last. */
  #changes = 0;
  /** Conversations are opened and changed one after the other; settled when none is under way. */
  #changing: Promise<unknown> = Promise.resolve();
  /** What the person did at the prompt while no conversation was open. */
  #early: (() => void)[] = [];

  constructor(options: RuntimeSessionOptions) {
    this.#options = options;
    this.#given = options.session;
    this.#queue = new MessageQueue((event) => this.#report(event));
    this.#questions = new SessionQuestions((event) => this.#report(event), options.context.host.cwd);
    this.library = createRuntimeLibrary(this.#source);
  }

  get takesCommands(): boolean {
    return this.#given.slashCommands !== false;
  }

  /** Opens the first conversation; what is submitted before is sent then. Rejects when it cannot be opened. */
  open(): Promise<void> {
    return this.#inTurn(() => this.#openFirst());
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    this.#changes += 1;
    const done = this.#changing.then(work).finally(() => {
      this.#changes -= 1;
      if (this.#changes === 0 && this.#live !== undefined) for (const own of this.#early.splice(0)) own();
      this.#live?.continue();
    });
    this.#changing = done.catch(() => undefined);
    return done;
  }

  async #openFirst(): Promise<void> {
    const { resume, continue: isContinued, forkSession, takeOver } = this.#given;
    const isTarget = (resume !== undefined || isContinued === true) && forkSession !== true;
    if (!isTarget || this.#options.isOnce === true || takeOver === true) return this.#open(this.#given);
    const target = await (await loadRecords(this.#options.context)).findTarget(this.#given);
    try {
      await this.#openTarget(target);
    } catch (error) {
      // Another process was faster.
      if (!isRetinueError(error) || error.code !== "file-in-use") throw error;
      await this.#openTarget(target);
    }
  }

  async #openTarget(target: string | undefined): Promise<void> {
    const choice = await this.#chooseHeld(target);
    if (choice === "watch") return;
    if (choice === "leave")
      throw new RetinueError("session-open", "Another terminal has this conversation open.", {
        advice: "Continue in a copy with --fork-session, or take it with --take-over.",
      });
    await this.#open(choice === "fork" ? { ...this.#given, forkSession: true } : this.#given);
  }

  subscribe(listener: (event: SessionEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  submit(text: string): void {
    if (this.#watched?.isOwned === true) this.#report({ type: "notice", level: "warning", text: readOnly });
    else this.#queue.add(text);
    if (this.#watched?.isOwned === false) void this.#continueWatched(this.#watched.sessionId);
    else this.#live?.continue();
  }

  takeBack(messageId: string): string | undefined {
    return this.#queue.takeBack(messageId);
  }

  interrupt(): void {
    this.#live?.interrupt();
  }

  answer(questionId: string, answer: QuestionAnswer): void {
    this.#questions.answer(questionId, answer);
  }

  setMode(mode: string): void {
    const known = this.#modes().find((one) => one === mode);
    if (known === undefined) return;
    this.#mode = known;
    this.#report({ type: "status-changed", status: { mode } });
  }

  /** The conversation is opened again with the other model; with one that cannot be had it continues as before. */
  setModel(model: string): Promise<void> {
    return this.#inTurn(() => this.#changeModel(model));
  }

  async #changeModel(model: string): Promise<void> {
    this.#refuseWhileBusy("change the model");
    this.#opened();
    await this.#reopen({ ...this.#withoutTarget(), model }, this.#target(), { isQuiet: true });
  }

  moveToBackground(agentId?: string): readonly string[] {
    return this.#live?.moveToBackground(agentId) ?? [];
  }

  async messageAgent(agentId: string, text: string): Promise<string> {
    return (await this.#live?.messageAgent(agentId, text)) ?? "";
  }

  async stopAgent(agentId: string): Promise<void> {
    await this.#live?.session.tasks.stop(agentId, "user");
  }

  watchAgent(agentId: string, listener: (entry: AgentEntry) => void): () => void {
    return this.#live?.watchAgent(agentId, listener) ?? (() => undefined);
  }

  runShell(command: string): void {
    this.#whenOpen(() => this.#live?.runShell(command));
  }

  /** Now, or with the conversation that is being opened. */
  #whenOpen(work: () => void): void {
    if (this.#watched !== undefined) this.#report({ type: "notice", level: "warning", text: readOnly });
    else if (this.#live === undefined || this.#changes > 0) this.#early.push(work);
    else work();
  }

  async addMemory(note: string, scope: "project" | "user"): Promise<string> {
    if (this.#watched === undefined) await new Promise<void>((resolve) => this.#whenOpen(resolve));
    const { appendMemory } = await import("@retinue/core/kernel/project/find-project-files.ts");
    const file = await appendMemory(note, scope, this.#opened().discovered.paths);
    this.#live?.addAside(`I added this to the instructions in ${file}: ${note}`);
    return file;
  }

  compact(instructions: string): void {
    this.submit(`/compact ${instructions}`.trim());
  }

  rewind(promptId: string): Promise<void> {
    return this.#inTurn(() => this.#rewind(promptId));
  }

  async #rewind(promptId: string): Promise<void> {
    this.#refuseWhileBusy("go back");
    const records = await loadRecords(this.#options.context);
    await this.#switchTo(await records.copyBefore(this.#opened().plan.sessionId, promptId));
  }

  switchTo(sessionId: string | undefined, options?: { readonly fork?: boolean }): Promise<void> {
    return this.#inTurn(() => this.#switchTo(sessionId, options));
  }

  async #switchTo(sessionId: string | undefined, { fork = false } = {}): Promise<void> {
    if (fork && sessionId === this.#live?.session.id && this.#target().resume === undefined)
      throw new RetinueError("nothing-to-fork", "Nothing was said here yet, so there is nothing to copy.");
    const choice = fork ? "fork" : await this.#chooseHeld(sessionId);
    if (choice === "watch" || choice === "leave") return;
    const target =
      sessionId === undefined
        ? {}
        : { resume: sessionId, ...(choice === "fork" ? { forkSession: true } : {}) };
    await this.#reopen(this.#withoutTarget(), target);
  }

  /** The other process is gone, so what was watched can be continued here. */
  async #continueWatched(sessionId: string): Promise<void> {
    try {
      await this.switchTo(sessionId);
    } catch (error) {
      this.#report({ type: "notice", level: "error", text: describeError(error) });
    }
  }

  /** Where another process has the conversation open, the person watches it, continues in a copy, or leaves it. */
  async #chooseHeld(sessionId: string | undefined): Promise<"open" | "watch" | "fork" | "leave"> {
    if (sessionId === undefined || sessionId === this.#live?.session.id) return "open";
    const records = await loadRecords(this.#options.context);
    if (!records.isOpen(sessionId)) return "open";
    const answer = await this.#questions.askHeld(this.#closing.signal);
    if (answer !== "watch") return answer ?? "leave";
    await this.#closeCurrent();
    const { WatchedConversation } = await import("./watched-conversation.ts");
    const report = (event: SessionEvent): void => this.#report(event);
    const { transcripts } = records;
    this.#watched = new WatchedConversation({ transcripts, sessionId, report, shownPrompts });
    await this.#watched.open();
    return "watch";
  }

  closing(): { readonly sessionId: string | undefined; readonly running: readonly string[] } {
    const session = this.#live?.session;
    const isKept = session !== undefined && session.messages().length > 0;
    return {
      sessionId: isKept ? session.plan.sessionId : undefined,
      running: [...(this.#live?.runningAgents() ?? []), ...(this.#live?.runningCommands() ?? [])],
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new RetinueError("interrupted", "The terminal was closed."));
    this.#watched?.[Symbol.dispose]();
    await this.#live?.[Symbol.asyncDispose]();
    await this.#runtime?.[Symbol.asyncDispose]();
  }

  async #open(options: SessionOptions, { isQuiet = false } = {}): Promise<void> {
    const takeMessages = () => [...(this.#live?.takeReports() ?? []), ...this.#queue.takeReadable()];
    this.#runtime ??= await this.#options.createRuntime(this.#runtimeOptions());
    const session = await this.#runtime.open({
      ...options,
      offlineDemo: true,
      ...(this.#options.isOnce === true ? {} : { interactive: { takeMessages, mode: () => this.#mode } }),
    });
    if (this.#closing.signal.aborted) return session[Symbol.asyncDispose]();
    this.#live = new LiveConversation({
      session,
      queue: this.#queue,
      report: (event) => this.#report(event),
      mode: () => this.#modeNow(),
      isLeaving: () => this.#changes > 0,
      stored: async (agentId) =>
        conversationEntries(
          await (await loadRecords(this.#options.context)).agentMessages(session.plan.sessionId, agentId),
        ),
    });
    const earlier = isQuiet ? [] : lastEntries(conversationEntries(session.messages()), shownPrompts);
    const notes = isQuiet ? [] : [...session.plan.notes, ...isolationNotes(session.plan.policy)];
    this.#report({ type: "conversation-opened", sessionId: session.plan.sessionId, earlier, notes });
    this.#report({
      type: "status-changed",
      status: {
        model: session.model.id,
        mode: this.#modeNow(),
        modes: this.#modes(),
        contextFill: 0,
        costUsd: 0,
      },
    });
  }

  /** Opens another conversation in place of this one; where that fails, this one continues. */
  async #reopen(given: SessionOptions, target: SessionOptions, { isQuiet = false } = {}): Promise<void> {
    const before = { ...this.#withoutTarget(), ...this.#target() };
    await this.#closeCurrent();
    try {
      await this.#open({ ...given, ...target }, { isQuiet });
      this.#given = given;
    } catch (error) {
      await this.#open(before, { isQuiet: true });
      throw error;
    }
  }

  /** The conversation that is open, where something was said in it. */
  #target(): Pick<SessionOptions, "resume"> {
    const session = this.#live?.session;
    return session === undefined || session.messages().length === 0 ? {} : { resume: session.plan.sessionId };
  }

  async #closeCurrent(): Promise<void> {
    const before = this.#live;
    this.#live = undefined;
    this.#watched?.[Symbol.dispose]();
    this.#watched = undefined;
    await before?.[Symbol.asyncDispose]();
  }

  /** What was asked for at the start, without the conversation that it named. */
  #withoutTarget(): SessionOptions {
    const { resume: _resume, continue: _continue, forkSession: _fork, sessionId: _id, ...rest } = this.#given;
    return rest;
  }

  #runtimeOptions(): RuntimeOptions & { readonly live: LiveControls } {
    const notice = (text: string): void => this.#report({ type: "notice", level: "warning", text });
    const { asks = true, isOnce = false } = this.#options;
    const questions = this.#questions;
    return {
      ...(asks
        ? { approver: { approve: questions.approve.bind(questions), notice, isConcurrent: true } }
        : {}),
      host: {
        ...(asks ? { ask: questions.askForm.bind(questions) } : {}),
        todosChanged: (todos) => this.#report({ type: "todos-changed", todos: todos.map(todoItem) }),
      },
      tools: isOnce
        ? ["default"]
        : [
            "default",
            createPlanTool({
              mode: () => this.#modeNow(),
              ask: (plan, signal) => this.#questions.askPlan(plan, signal),
              approved: (mode) => this.setMode(mode),
            }),
          ],
      live: {
        gatherText: (model) => gatherDeltas(model, textPauseMs),
        ...(isOnce ? {} : { commandChanged: (command) => this.#live?.commandChanged(command) }),
      },
      onWarning: notice,
    };
  }

  #modeNow(): PermissionMode {
    return this.#mode ?? this.#live?.session.plan.policy.mode ?? "default";
  }

  /** Everything may be allowed only where that was asked for at the start. */
  #modes(): readonly PermissionMode[] {
    const start = this.#live?.session.plan.policy.mode ?? "default";
    return modesFrom(start, { canBypass: this.#given.skipPermissions === true });
  }

  #opened(): Session {
    return openedOf(this.#source);
  }

  #refuseWhileBusy(what: string): void {
    const running = this.#live?.runningAgents().length ?? 0;
    if (this.#live?.isBusy !== true && running === 0) return;
    throw new RetinueError("session-busy", `The agent works, so you cannot ${what} now.`, {
      advice: running > 0 ? "Wait for the agents, or stop them." : "Interrupt it with Esc first.",
    });
  }

  get #source(): LibrarySource {
    return {
      context: this.#options.context,
      session: () => this.#live?.session,
      watched: () => this.#watched,
      mode: () => this.#modeNow(),
      signal: this.#closing.signal,
      ready: () => this.#changing,
    };
  }

  #report(event: SessionEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

/** In a folder that no one has accepted a person should know what keeps its files from steering commands. */
function isolationNotes({
  trusted,
  walled,
}: {
  readonly trusted?: boolean;
  readonly walled?: boolean;
}): readonly string[] {
  if (trusted === true) return [];
  return [
    walled === true
      ? "This folder is not trusted: what runs without a question is isolated, and git is asked about."
      : "This folder is not trusted, and nothing isolates commands here: git and developer tools are asked about. `retinue doctor` says how to change that.",
  ];
}
