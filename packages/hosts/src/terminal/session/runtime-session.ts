import type { PermissionMode } from "@retinue/base/foundation/option-words.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { Agent, AgentTree, TreeFacts } from "@retinue/core/kernel/agent-tree.ts";
import type { HostedRuntime } from "@retinue/core/kernel/create-runtime.ts";
import type { RuntimeOptions, SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { SessionPorts } from "@retinue/core/kernel/session-ports.ts";
import type { AgentEvent } from "@retinue/core/protocol/agent-event.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { conversationEntries, lastEntries } from "./conversation-entries.ts";
import { ConversationView, describeError, queuedMessage } from "./conversation-view.ts";
import { createRuntimeLibrary, type LibrarySource, loadRecords, openedOf } from "./create-runtime-library.ts";
import { gatherDeltas } from "./gather-deltas.ts";
import { HeldQuestions, readAnswer, readOnly } from "./session-questions.ts";
import type {
  AgentEntry,
  QuestionAnswer,
  QueuedMessage,
  SessionEvent,
  SessionLibrary,
  TerminalSession,
} from "./terminal-session.ts";
import type { WatchedConversation } from "./watched-conversation.ts";

export interface RuntimeSessionOptions {
  /** Makes the runtime that the options of the command line ask for; called once, with the first conversation. */
  readonly createRuntime: (more: RuntimeOptions & { readonly live: SessionPorts }) => Promise<HostedRuntime>;
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
  /** To the main agent of the conversation that is open or being opened. */
  #submit: Agent["submit"] | undefined;
  readonly #held: HeldQuestions;
  readonly #closing = new AbortController();
  #runtime: HostedRuntime | undefined;
  #live: { readonly tree: AgentTree; readonly view: ConversationView } | undefined;
  /** Messages that wait for a conversation to be opened. */
  #waiting: readonly QueuedMessage[] = [];
  #messageCount = 0;
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
    this.#held = new HeldQuestions((event) => this.#report(event));
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
    // What waits is for the conversation that takes the place of this one.
    const hold = this.#live?.tree.hold();
    const done = this.#changing.then(work).finally(() => {
      this.#changes -= 1;
      hold?.[Symbol.dispose]();
      if (this.#changes > 0 || this.#live === undefined) return;
      for (const own of this.#early.splice(0)) own();
      for (const { id, text } of this.#takeWaiting()) this.#submitPrompt(id, text);
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
    if (this.#watched?.isOwned === true) {
      this.#report({ type: "notice", level: "warning", text: readOnly });
      return;
    }
    this.#messageCount += 1;
    const id = `message-${this.#messageCount}`;
    if (this.#live !== undefined && this.#changes === 0) {
      this.#submitPrompt(id, text);
      return;
    }
    this.#waiting = [...this.#waiting, { id, text }];
    this.#report({ type: "queue-changed", messages: this.#waiting });
    if (this.#watched?.isOwned === false) void this.#continueWatched(this.#watched.sessionId);
  }

  #submitPrompt(id: string, content: string): void {
    void this.#live?.tree.main.submit({ type: "prompt", id, content });
  }

  #takeWaiting(): readonly QueuedMessage[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }

  takeBack(messageId: string): string | undefined {
    const early = this.#waiting.find(({ id }) => id === messageId);
    if (early !== undefined) {
      this.#waiting = this.#waiting.filter((message) => message !== early);
      this.#report({ type: "queue-changed", messages: this.#waiting });
      return early.text;
    }
    const queued = this.#live?.tree.prompts().find(({ id }) => id === messageId);
    if (queued === undefined) return undefined;
    void this.#live?.tree.main.submit({ type: "withdraw", id: messageId });
    return queuedMessage(queued).text;
  }

  interrupt(): void {
    void this.#live?.tree.main.submit({ type: "interrupt" });
  }

  answer(questionId: string, answer: QuestionAnswer): void {
    if (this.#held.answer(questionId, answer)) return;
    void this.#submit?.({ type: "answer", question: questionId, answer: readAnswer(answer) });
  }

  setMode(mode: string): void {
    const known = this.#modes().find((one) => one === mode);
    if (known === undefined) return;
    this.#mode = known;
    if (this.#live === undefined) this.#report({ type: "status-changed", status: { mode } });
    else void this.#live.tree.main.submit({ type: "configure", mode: known });
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

  async moveToBackground(agentId?: string): Promise<readonly string[]> {
    const outcome = await this.#live?.tree.main.submit({ type: "background", agent: agentId });
    return outcome?.moved ?? [];
  }

  async messageAgent(agentId: string, text: string): Promise<string> {
    const outcome = await this.#live?.tree.main.submit({ type: "message", agent: agentId, text });
    return outcome?.text ?? "";
  }

  async stopAgent(agentId: string): Promise<void> {
    await this.#live?.tree.main.submit({ type: "stop", agent: agentId });
  }

  watchAgent(agentId: string, listener: (entry: AgentEntry) => void): () => void {
    return this.#live?.view.watchAgent(agentId, listener) ?? (() => undefined);
  }

  runShell(command: string): void {
    this.#whenOpen(() => void this.#live?.tree.main.submit({ type: "shell", command }));
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
    this.#live?.tree.addAside(`I added this to the instructions in ${file}: ${note}`);
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
    if (fork && sessionId === this.#live?.tree.sessionId && this.#target().resume === undefined)
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
    if (sessionId === undefined || sessionId === this.#live?.tree.sessionId) return "open";
    const records = await loadRecords(this.#options.context);
    if (!records.isOpen(sessionId)) return "open";
    const answer = await this.#held.ask(this.#closing.signal);
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
    const { resume } = this.#target();
    const view = this.#live?.view;
    return {
      sessionId: resume,
      running: [...(view?.runningAgents() ?? []), ...(view?.runningCommands() ?? [])],
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new RetinueError("interrupted", "The terminal was closed."));
    this.#watched?.[Symbol.dispose]();
    await this.#live?.tree.close();
    await this.#runtime?.[Symbol.asyncDispose]();
  }

  async #open(options: SessionOptions, { isQuiet = false } = {}): Promise<void> {
    const { isOnce = false, asks = true, context } = this.#options;
    // Loaded here, after the first frame.
    const [{ openTree }, { planReminder }, { blocksOf }] = await Promise.all([
      import("@retinue/core/kernel/agent-tree.ts"),
      import("@retinue/core/kernel/create-plan-tools.ts"),
      import("@retinue/core/kernel/prompt-queue.ts"),
    ]);
    this.#runtime ??= await this.#options.createRuntime({
      ...(isOnce ? { tools: ["default"] } : {}),
      live: { gatherText: (model) => gatherDeltas(model, textPauseMs) },
      onWarning: (text) => this.#report({ type: "notice", level: "warning", text }),
    });
    const view = new ConversationView({
      report: (event) => this.#report(event),
      directory: context.host.cwd,
      showsPrompts: () => this.#changes === 0 || this.#live?.view === view,
      stored: async (agentId) => {
        const records = await loadRecords(context);
        return conversationEntries(await records.agentMessages(tree.sessionId, agentId));
      },
    });
    const tree: AgentTree = await openTree({
      runtime: this.#runtime,
      session: { ...options, offlineDemo: true },
      asks: {
        ...(asks ? { permissions: "person", forms: true } : {}),
        ...(isOnce ? {} : { plans: "person" }),
      },
      ...(isOnce ? {} : { reads: "model-calls", changesRights: "main", reportsCommands: true }),
      mayBypass: () => this.#modes().includes("bypassPermissions"),
      prepare: ({ prompt: { content, verbatim }, origin }) => {
        if (origin === "report" || this.#modeNow() !== "plan") return { content, verbatim };
        return { content: [...blocksOf(content), { type: "text", text: planReminder }], verbatim };
      },
      onEvent: (event, submit) => {
        this.#submit = submit;
        this.#onEvent(event, view);
      },
    });
    if (this.#closing.signal.aborted) return tree.close();
    view.attach(tree);
    this.#live = { tree, view };
    if (this.#mode !== undefined) void tree.main.submit({ type: "configure", mode: this.#mode });
    const { plan, model, messages } = tree.facts;
    const earlier = isQuiet ? [] : lastEntries(conversationEntries(messages()), shownPrompts);
    const notes = isQuiet ? [] : [...plan.notes, ...isolationNotes(plan.policy)];
    this.#report({ type: "conversation-opened", sessionId: plan.sessionId, earlier, notes });
    this.#report({
      type: "status-changed",
      status: { model: model.id, mode: this.#modeNow(), modes: this.#modes(), contextFill: 0, costUsd: 0 },
    });
  }

  #onEvent(event: AgentEvent, view: ConversationView): void {
    if (event.type === "status-changed" && event.status.mode !== undefined) this.#mode = event.status.mode;
    view.onEvent(event);
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
    const tree = this.#live?.tree;
    return tree === undefined || tree.facts.messages().length === 0 ? {} : { resume: tree.sessionId };
  }

  async #closeCurrent(): Promise<void> {
    const before = this.#live;
    this.#live = undefined;
    this.#watched?.[Symbol.dispose]();
    this.#watched = undefined;
    if (before === undefined) return;
    this.#waiting = [...before.tree.prompts().map(queuedMessage), ...this.#waiting];
    await before.tree.close();
  }

  /** What was asked for at the start, without the conversation that it named. */
  #withoutTarget(): SessionOptions {
    const { resume: _resume, continue: _continue, forkSession: _fork, sessionId: _id, ...rest } = this.#given;
    return rest;
  }

  #modeNow(): PermissionMode {
    return this.#mode ?? this.#live?.tree.facts.plan.policy.mode ?? "default";
  }

  /** Everything may be allowed only where that was asked for at the start. */
  #modes(): readonly PermissionMode[] {
    const start = this.#live?.tree.facts.plan.policy.mode ?? "default";
    return modesFrom(start, { canBypass: this.#given.skipPermissions === true });
  }

  #opened(): TreeFacts {
    return openedOf(this.#source);
  }

  #refuseWhileBusy(what: string): void {
    const running = this.#live?.view.runningAgents().length ?? 0;
    if (this.#live?.tree.status().isBusy !== true && running === 0) return;
    throw new RetinueError("session-busy", `The agent works, so you cannot ${what} now.`, {
      advice: running > 0 ? "Wait for the agents, or stop them." : "Interrupt it with Esc first.",
    });
  }

  get #source(): LibrarySource {
    return {
      context: this.#options.context,
      session: () => this.#live?.tree.facts,
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

const modes: readonly PermissionMode[] = ["default", "acceptEdits", "plan"];

/** What Shift+Tab goes through. */
function modesFrom(
  start: PermissionMode,
  { canBypass }: { readonly canBypass: boolean },
): readonly PermissionMode[] {
  const all = canBypass || start === "bypassPermissions" ? [...modes, "bypassPermissions" as const] : modes;
  return all.includes(start) ? all : [start, ...all];
}
