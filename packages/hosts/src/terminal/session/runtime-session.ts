import { join } from "node:path";
import { escapeControlTags } from "@retinue/base/foundation/escape-control-tags.ts";
import type { PermissionMode } from "@retinue/base/foundation/option-words.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { ImageBlock } from "@retinue/core/conversation/message.ts";
import type { Agent, AgentTree, TreeFacts } from "@retinue/core/kernel/agent-tree.ts";
import type { HostedRuntime } from "@retinue/core/kernel/create-runtime.ts";
import type { RuntimeOptions, SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { SessionPorts } from "@retinue/core/kernel/session-ports.ts";
import type { AgentEvent } from "@retinue/core/protocol/agent-event.ts";
import type { Content, MergeAsk } from "@retinue/core/protocol/op.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { displayPath } from "../../shared/display-path.ts";
import type { FileCheckpoints } from "../../shared/file-checkpoints.ts";
import { conversationEntries, lastEntries } from "./conversation-entries.ts";
import { ConversationView, describeError, queuedMessage } from "./conversation-view.ts";
import { createRuntimeLibrary, type LibrarySource, loadRecords, openedOf } from "./create-runtime-library.ts";
import { gatherDeltas } from "./gather-deltas.ts";
import { OwnQuestions, readAnswer, readOnly } from "./session-questions.ts";
import type { AccessChoice, StartParts, StartSteps } from "./start-steps.ts";
import type { StatusLine } from "./status-line.ts";
import type {
  AgentEntry,
  Preferences,
  ProjectChange,
  QuestionAnswer,
  QueuedMessage,
  RewindTarget,
  SessionEvent,
  SessionLibrary,
  TerminalSession,
} from "./terminal-session.ts";
import type { WatchedConversation } from "./watched-conversation.ts";

export interface RuntimeSessionOptions {
  /** Makes the runtime that the options of the command line ask for; with the first conversation, and when trust has changed. */
  readonly createRuntime: (more: RuntimeOptions & { readonly live: SessionPorts }) => Promise<HostedRuntime>;
  readonly session: SessionOptions;
  readonly context: CommandContext;
  /** One prompt is run to its end, agents in the background included. */
  readonly isOnce?: boolean;
  /** False: no one is asked, and what would be asked is refused. */
  readonly asks?: boolean;
  /** A key can be typed without being shown. */
  readonly hidesKeys?: boolean;
  /** A conversation that another process has open is followed and written to, without a question. */
  readonly follows?: boolean;
}

const shownPrompts = 3;

/** What a person has written. */
const promptOrigins: ReadonlySet<string> = new Set(["prompt", "message"]);

/** Between two pieces of an answer that flows; frames are painted less often. */
const textPauseMs = 40;

/** The one way from the terminal to the runtime: opens conversations, changes between them, and answers about them. */
export class RuntimeSession implements TerminalSession {
  readonly library: SessionLibrary;
  readonly #options: RuntimeSessionOptions;
  readonly #listeners = new Set<(event: SessionEvent) => void>();
  /** To the main agent of the conversation that is open or being opened. */
  #submit: Agent["submit"] | undefined;
  readonly #questions: OwnQuestions;
  readonly #closing = new AbortController();
  #runtime: HostedRuntime | undefined;
  #live:
    | {
        readonly tree: AgentTree;
        readonly view: ConversationView;
        readonly checkpoints: FileCheckpoints | undefined;
      }
    | undefined;
  /** Messages that wait for a conversation to be opened. */
  #waiting: readonly QueuedMessage[] = [];
  #messageCount = 0;
  /** Images that were taken for prompts, by what they are called there. */
  readonly #images = new Map<string, ImageBlock>();
  /** Set instead of a conversation of our own while one of another process is watched. */
  #watched: WatchedConversation | undefined;
  /** The mode that the person has chosen; undefined leaves that of the plan. */
  #mode: PermissionMode | undefined;
  #given: SessionOptions;
  /** Changes of the conversation that are under way; messages wait for the last. */
  #changes = 0;
  /** Conversations are opened and changed one after the other; settled when none is pending. */
  #changing: Promise<unknown> = Promise.resolve();
  /** What the person did at the prompt while no conversation was open. */
  #early: (() => void)[] = [];
  /** What the first conversation is still to be introduced with. */
  #start: StartSteps | undefined;
  /** Present where the settings have a command for it. */
  #statusLine: StatusLine | undefined;
  /** Servers whose login was offered. */
  readonly #offered = new Set<string>();

  constructor(options: RuntimeSessionOptions) {
    this.#options = options;
    this.#given = options.session;
    this.#questions = new OwnQuestions((event) => this.#report(event));
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
    const { isOnce = false, asks = true, hidesKeys = true } = this.#options;
    const { readStartNotes } = await import("./start-notes.ts");
    const { preferences } = readStartNotes(await this.#configDirectory());
    if (Object.keys(preferences).length > 0) this.#report({ type: "preferences-changed", preferences });
    if (isOnce) return this.#openGiven();
    const { createStartSteps } = await import("./start-steps.ts");
    const start = createStartSteps(this.#startParts());
    this.#start = start;
    if (asks) await start.offerTrust();
    await this.#openGiven();
    const facts = this.#live?.tree.facts;
    if (!asks || !hidesKeys || facts === undefined) return;
    const choice = await start.offerAccess(facts);
    if (choice !== undefined) await this.#openWithAccess(choice);
  }

  async #configDirectory(): Promise<string> {
    const [{ projectPaths }, { folderOptions }] = await Promise.all([
      import("@retinue/core/kernel/project/create-project.ts"),
      import("../../shared/folder-options.ts"),
    ]);
    return projectPaths(folderOptions(this.#options.context).given).configDirectory;
  }

  prefer(preferences: Partial<Preferences>): void {
    this.#report({ type: "preferences-changed", preferences });
    Promise.all([import("./start-notes.ts"), this.#configDirectory()])
      .then(([{ keepStartNotes }, configDirectory]) => keepStartNotes(configDirectory, { preferences }))
      .catch((error: unknown) =>
        this.#report({ type: "notice", level: "warning", text: describeError(error) }),
      );
  }

  #startParts(): StartParts {
    return {
      context: this.#options.context,
      questions: this.#questions,
      report: (event) => this.#report(event),
      signal: this.#closing.signal,
    };
  }

  /** Continues with the model that was chosen; what was named before has no key. */
  async #openWithAccess({ model }: AccessChoice): Promise<void> {
    const given = model === undefined ? this.#withoutTarget() : { ...this.#withoutTarget(), model };
    await this.#reopen(given, this.#target(), { isQuiet: true });
    if (model !== undefined) {
      const { openProject } = await import("../../shared/open-project.ts");
      const file = await openProject(this.#options.context).keys.useModel(model);
      this.#report({ type: "notice", level: "info", text: `${model} answers from now on; ${file} says so.` });
    }
  }

  async #openGiven(): Promise<void> {
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
      if (this.#options.follows === true) this.#watched.submit(text);
      else this.#report({ type: "notice", level: "warning", text: readOnly });
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

  async attachImage(file?: string): Promise<string | undefined> {
    const { host } = this.#options.context;
    const [{ loadPromptImage, promptImageOf }, { readClipboardImage }, { basename }] = await Promise.all([
      import("@retinue/core/kernel/project/load-prompt-image.ts"),
      import("../../shared/read-clipboard-image.ts"),
      import("node:path"),
    ]);
    const bytes = file === undefined ? await readClipboardImage(host) : undefined;
    if (file === undefined && bytes === undefined) return undefined;
    const path = file?.startsWith("~/") === true ? join(host.home, file.slice(2)) : file;
    const reading =
      path === undefined ? promptImageOf(bytes ?? Buffer.alloc(0)) : await loadPromptImage(path);
    const name = path === undefined ? "clipboard" : basename(path).replace(/[\]\n]/g, "_");
    if (reading.type === "unusable")
      throw new RetinueError(
        "invalid-input",
        `${path === undefined ? "The clipboard" : name} ${reading.why}`,
      );
    const chip = `[image #${this.#images.size + 1}: ${name}]`;
    this.#images.set(chip, reading.block);
    return chip;
  }

  /** The images that a text names come behind it. */
  #contentOf(text: string): Content {
    const named = [...this.#images].filter(([chip]) => text.includes(chip)).map(([, block]) => block);
    return named.length === 0 ? text : [{ type: "text", text }, ...named];
  }

  #submitPrompt(id: string, text: string): void {
    const content = this.#contentOf(text);
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
    if (this.#questions.answer(questionId, answer)) return;
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

  /** Logs in at an MCP server, and opens the conversation again so that its tools are there. */
  async logIn(server: string): Promise<void> {
    const { logInAtServer } = await import("./log-in-at-server.ts");
    await logInAtServer(server, {
      context: this.#options.context,
      notice: (text) => this.#report({ type: "notice", level: "info", text }),
      signal: this.#closing.signal,
    });
    await this.#inTurn(async () => {
      this.#refuseWhileBusy(`use ${server}`);
      await this.#reopen(this.#withoutTarget(), this.#target(), { isQuiet: true });
    });
  }

  async chooseAccess(): Promise<void> {
    if (this.#options.hidesKeys === false)
      throw new RetinueError("not-supported", "A key typed here would be visible.", {
        advice: "Leave, and run `retinue auth login`.",
      });
    const [{ chooseAccess }, { openProject }] = await Promise.all([
      import("./start-steps.ts"),
      import("../../shared/open-project.ts"),
    ]);
    const project = openProject(this.#options.context, { toleratesBrokenFiles: true });
    const choice = await chooseAccess(project, this.#startParts());
    if (choice === undefined) return;
    await this.#inTurn(async () => {
      this.#refuseWhileBusy("change the model");
      await this.#openWithAccess(choice);
    });
  }

  async forgetKey(): Promise<void> {
    const { openProject } = await import("../../shared/open-project.ts");
    const wasThere = await openProject(this.#options.context, { toleratesBrokenFiles: true }).keys.remove();
    const text = wasThere
      ? "The key is forgotten; this conversation keeps it until it ends."
      : "No key was kept by /login; nothing was changed.";
    this.#report({ type: "notice", level: "info", text });
  }

  /** Trust changes what the runtime reads, so that one begins anew. */
  async reviewTrust(): Promise<void> {
    const [{ askForTrust }, { openProject }] = await Promise.all([
      import("./start-steps.ts"),
      import("../../shared/open-project.ts"),
    ]);
    const project = openProject(this.#options.context, { toleratesBrokenFiles: true });
    if (!(await askForTrust(project, this.#startParts()))) return;
    await this.#inTurn(async () => {
      this.#refuseWhileBusy("use what the folder brings");
      const target = this.#target();
      await this.#closeCurrent();
      await this.#runtime?.[Symbol.asyncDispose]();
      this.#runtime = undefined;
      await this.#open({ ...this.#withoutTarget(), ...target }, { isQuiet: true });
    });
    this.#report({ type: "notice", level: "info", text: "This folder is trusted from now on." });
  }

  /** Each server that wants a login is offered once. */
  async #offerLogins({ facts }: AgentTree): Promise<void> {
    const { asks = true, isOnce = false } = this.#options;
    if (!asks || isOnce) return;
    const { serversWantingLogin } = await import("./log-in-at-server.ts");
    for (const server of serversWantingLogin(facts.mcpServers())) {
      if (this.#offered.has(server)) continue;
      this.#offered.add(server);
      try {
        if (await this.#questions.askToLogIn(server, this.#closing.signal)) await this.logIn(server);
      } catch (error) {
        if (this.#closing.signal.aborted) return;
        this.#report({ type: "notice", level: "error", text: describeError(error) });
      }
    }
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
    const view = this.#live?.view ?? this.#watched?.view;
    return view?.watchAgent(agentId, listener) ?? (() => undefined);
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

  async change(change: ProjectChange): Promise<string> {
    this.#refuseWhileBusy("change this");
    const { applyChange } = await import("./manage-project.ts");
    const done = await applyChange(this.#options.context, change);
    await this.#inTurn(async () => {
      // One that is watched, or could not be opened, takes it up with its next start.
      if (this.#live === undefined) return;
      this.#refuseWhileBusy("let it hold");
      await this.#reopen(this.#withoutTarget(), this.#target(), { isQuiet: true });
    });
    return done;
  }

  async merge(ask: MergeAsk): Promise<void> {
    this.#opened();
    await this.#live?.tree.main.submit({ type: "merge", ...ask });
  }

  async rename(title: string): Promise<void> {
    this.#opened();
    await this.#live?.tree.main.submit({ type: "rename", title });
    this.#report({ type: "status-changed", status: { title } });
  }

  compact(instructions: string): void {
    this.submit(`/compact ${instructions}`.trim());
  }

  rewind(promptId: string, restores: RewindTarget = "conversation"): Promise<void> {
    return this.#inTurn(() => this.#rewind(promptId, restores));
  }

  async #rewind(promptId: string, restores: RewindTarget): Promise<void> {
    this.#refuseWhileBusy("go back");
    const from = this.#opened();
    if (restores !== "conversation")
      await this.#restoreFiles(promptId, { notifiesAgent: restores === "files" });
    if (restores === "files") return;
    const records = await loadRecords(this.#options.context);
    const copy = await records.copyBefore(from.plan.sessionId, promptId);
    if (copy !== undefined) {
      const { checkpointFolder, copyCheckpoints } = await import("../../shared/file-checkpoints.ts");
      const folderOf = (sessionId: string): string => checkpointFolder(join(records.transcripts, sessionId));
      await copyCheckpoints(folderOf(from.plan.sessionId), folderOf(copy), await records.renewedIds(copy));
    }
    await this.#switchTo(copy);
  }

  /** Where the conversation continues, the agent reads with the next prompt which files are not as it left them. */
  async #restoreFiles(
    promptId: string,
    { notifiesAgent: isTold }: { readonly notifiesAgent: boolean },
  ): Promise<void> {
    const { fileName } = this;
    const outcome = await this.#live?.checkpoints?.rewind(promptId, false);
    if (outcome?.canRewind !== true)
      throw new RetinueError("no-checkpoint", outcome?.error ?? "There is no file checkpoint.", {
        advice: "File checkpoints start with the first prompt that this program answers in a conversation.",
      });
    const names = outcome.filesChanged.map(fileName);
    const skipped = outcome.skippedLinks ?? 0;
    if (isTold)
      this.#live?.tree.addAside(
        `<system-reminder>\nThe person put these files back as they were before an earlier prompt: ${escapeControlTags(names.join(", "))}. Read them again before you change them.\n</system-reminder>`,
      );
    this.#report({
      type: "notice",
      level: skipped > 0 ? "warning" : "info",
      text: `Put back: ${names.length === 0 ? "nothing had changed" : names.join(", ")}.${skipped > 0 ? ` ${skipped} took the place of files as links and were left alone.` : ""}`,
    });
  }

  get fileName(): (file: string) => string {
    return (file) => displayPath(file, this.#options.context.host);
  }

  switchTo(sessionId: string | undefined, options?: { readonly fork?: boolean }): Promise<void> {
    return this.#inTurn(() => this.#switchTo(sessionId, options));
  }

  async #switchTo(sessionId: string | undefined, { fork = false } = {}): Promise<void> {
    if (fork && sessionId === this.#live?.tree.sessionId && this.#target().resume === undefined)
      throw new RetinueError(
        "nothing-to-fork",
        "This conversation has no messages yet, so there is nothing to copy.",
      );
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
    const { follows = false } = this.#options;
    const answer = follows ? "watch" : await this.#questions.askAboutHeld(this.#closing.signal);
    if (answer !== "watch") return answer ?? "leave";
    await this.#closeCurrent();
    const [{ WatchedConversation }, { openTreeElsewhere }, { userName }] = await Promise.all([
      import("./watched-conversation.ts"),
      import("@retinue/core/kernel/live/tree-elsewhere.ts"),
      import("../../shared/own-program.ts"),
    ]);
    const { host } = this.#options.context;
    this.#watched = new WatchedConversation({
      tree: await openTreeElsewhere({
        transcripts: records.transcripts,
        sessionId,
        by: { user: userName(host), through: "terminal" },
      }),
      report: (event) => this.#report(event),
      view: {
        directory: host.cwd,
        fileName: this.fileName,
        stored: (agentId) => this.#storedEntries(sessionId, agentId),
      },
      shownPrompts,
      follows,
    });
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
    this.#statusLine?.close();
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
      live: { gatherText: (model) => gatherDeltas(model, textPauseMs), showsTrust: !isOnce && asks },
      onWarning: (text) => this.#report({ type: "notice", level: "warning", text }),
    });
    const view = new ConversationView({
      report: (event) => this.#report(event),
      directory: context.host.cwd,
      fileName: this.fileName,
      showsPrompts: () => this.#changes === 0 || this.#live?.view === view,
      clockOffset: Date.now() - performance.now(),
      stored: (agentId) => this.#storedEntries(tree.sessionId, agentId),
    });
    const { checkpointFolder, createFileCheckpoints } = await import("../../shared/file-checkpoints.ts");
    const folderOf = (facts: TreeFacts): string =>
      checkpointFolder(join(facts.discovered.paths.transcripts, facts.plan.sessionId));
    // The folder is known when the tree is open, which is before the first prompt.
    const checkpoints = isOnce ? undefined : createFileCheckpoints(() => folderOf(tree.facts));
    const tree: AgentTree = await openTree({
      runtime: this.#runtime,
      session: {
        ...options,
        offlineDemo: true,
      },
      ...(checkpoints === undefined
        ? {}
        : {
            live: {
              transcript: {
                written(event, uuids) {
                  const isPrompt = event.type === "user-added" && promptOrigins.has(event.origin);
                  if (isPrompt) for (const uuid of uuids) checkpoints.begin(uuid);
                },
              },
            },
          }),
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
        // What it is about to change is read before it continues, of children as well.
        if (event.type === "call-started")
          checkpoints
            ?.keep(event.call, tree.facts.plan.directory ?? context.host.cwd)
            .catch((error: unknown) =>
              this.#report({
                type: "notice",
                level: "warning",
                text: `A file cannot be put back by /rewind: ${describeError(error)}`,
              }),
            );
        this.#onEvent(event, view);
      },
    });
    if (this.#closing.signal.aborted) return tree.close();
    view.attach(tree);
    this.#live = { tree, view, checkpoints };
    if (this.#mode !== undefined) void tree.main.submit({ type: "configure", mode: this.#mode });
    await this.#beginStatusLine(tree.facts);
    const { plan, model, messages } = tree.facts;
    const earlier = isQuiet ? [] : lastEntries(conversationEntries(messages()), shownPrompts);
    const start = this.#start;
    this.#start = undefined;
    if (start !== undefined)
      this.#report({ type: "started", facts: await start.facts(tree.facts, this.#modeNow()) });
    const notes = isQuiet ? [] : plan.notes;
    this.#report({
      type: "conversation-opened",
      sessionId: plan.sessionId,
      earlier,
      notes,
      ...(isQuiet ? { isReopened: true } : {}),
    });
    this.#report({
      type: "status-changed",
      status: { model: model.id, mode: this.#modeNow(), modes: this.#modes(), contextFill: 0, costUsd: 0 },
    });
    void this.#offerLogins(tree);
    if (messages().length > 0) void this.#findAgents(tree);
  }

  async #storedEntries(sessionId: string, agentId: string) {
    const records = await loadRecords(this.#options.context);
    const { messages, inFlight } = await records.agentMessages(sessionId, agentId);
    return { entries: conversationEntries(messages), inFlight };
  }

  async #beginStatusLine(facts: TreeFacts): Promise<void> {
    const { context, isOnce = false } = this.#options;
    this.#statusLine?.close();
    this.#statusLine = undefined;
    const { settings } = facts.discovered.settings;
    // What one wrote before does not stay where the settings, or hooks, have changed.
    this.#report({ type: "status-changed", status: { statusLine: "" } });
    if (isOnce || settings.plain.statusLine === undefined) return;
    const { StatusLine, statusLineSetting } = await import("./status-line.ts");
    const setting = statusLineSetting(settings);
    if (setting === undefined) return;
    this.#statusLine = new StatusLine({
      ...setting,
      facts,
      host: context.host,
      report: (event) => this.#report(event),
      now: Date.now,
      signal: this.#closing.signal,
    });
  }

  /** The agents that a conversation had before it was taken up again can be looked at, and resumed. */
  async #findAgents({ sessionId }: AgentTree): Promise<void> {
    try {
      const { earlierAgents } = await import("./earlier-agents.ts");
      const agents = await earlierAgents(this.#options.context, sessionId);
      if (agents.length > 0 && this.#live?.tree.sessionId === sessionId)
        this.#report({ type: "agents-found", agents });
    } catch (error) {
      this.#report({ type: "notice", level: "warning", text: describeError(error) });
    }
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

  /** The conversation that is open, if it has any message. */
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
    // What Shift+Tab goes through.
    const canBypass = this.#given.skipPermissions === true;
    const all = canBypass || start === "bypassPermissions" ? [...modes, "bypassPermissions" as const] : modes;
    return all.includes(start) ? all : [start, ...all];
  }

  #opened(): TreeFacts {
    return openedOf(this.#source);
  }

  #refuseWhileBusy(what: string): void {
    const running = this.#live?.view.runningAgents().length ?? 0;
    if (this.#live?.tree.status().isBusy !== true && running === 0) return;
    throw new RetinueError("session-busy", `The agent is working, so you cannot ${what} now.`, {
      advice: running > 0 ? "Wait for the agents, or stop them." : "Interrupt it with Esc first.",
    });
  }

  get #source(): LibrarySource {
    return {
      context: this.#options.context,
      session: () => this.#live?.tree.facts,
      watched: () => this.#watched,
      mode: () => this.#modeNow(),
      checkpoints: () => this.#live?.checkpoints,
      signal: this.#closing.signal,
      ready: () => this.#changing,
    };
  }

  #report(event: SessionEvent): void {
    for (const listener of this.#listeners) listener(event);
    this.#statusLine?.onEvent(event);
  }
}

const modes: readonly PermissionMode[] = ["default", "acceptEdits", "plan"];
