import { droppedImages } from "../input/dropped-images.ts";
import { FileIndex } from "../input/find-offer.ts";
import type { KeyPress } from "../input/key-press.ts";
import { PromptBox } from "../input/prompt-box.ts";
import { QuestionController } from "../questions/question-controller.ts";
import type { Capabilities } from "../screen/capabilities.ts";
import { FullScreen } from "../screen/full-screen.ts";
import { InlineScreen } from "../screen/inline-screen.ts";
import { colours, createPalette, dim, type Palette, type Style } from "../screen/style.ts";
import type { DeviceListener, TerminalDevice } from "../screen/terminal-device.ts";
import type { Preferences, SessionEvent, TerminalSession, TodoItem } from "../session/terminal-session.ts";
import { CodeColours } from "../text/code-colours.ts";
import type { RowContext } from "../text/row-context.ts";
import type { View } from "../views/view.ts";
import { AgentBoard } from "./agent-board.ts";
import type { AppActions, AppState } from "./app-state.ts";
import { Conversation, spinnerMs } from "./conversation.ts";
import { editFile, editText } from "./edit-text.ts";
import { KeyRouter } from "./key-router.ts";
import { liveFrame } from "./live-frame.ts";
import { openPage } from "./open-views.ts";
import { commandHelp, runCommand } from "./run-command.ts";

export interface TerminalAppOptions {
  readonly device: TerminalDevice;
  readonly capabilities: Capabilities;
  readonly session: TerminalSession;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly fileName: RowContext["fileName"];
  readonly now: () => number;
  /** One prompt, no draft: the terminal only shows what continues and asks. */
  readonly isOnce?: boolean;
  /** Called once, when the person wants to leave or the terminal is gone. */
  readonly onExit: () => void;
}

/** Between two frames that the agent causes; keys are shown immediately. */
const frameMs = 100;

/** A window is resized in many steps; nothing is painted until it has kept its size for so long, or for the longer time. */
const settleMs = 60;
const maxSettleMs = 1_000;
/** A stopped process has no timers: one that receives this signal was not stopped, or runs again. */
const stoppedMs = 20;

/** The hint where a sign is sent with nothing after it. */
const loneSigns: ReadonlyMap<string, string> = new Map([
  ["!", "write a command after the !"],
  ["#", "write a note after the #"],
  ["/", "write the name of a command after the /"],
]);

/** The conversation on the terminal: receives events of the session and keys, and paints what changed. */
export class TerminalApp implements DeviceListener {
  readonly #options: TerminalAppOptions;
  readonly #inline: InlineScreen;
  readonly #full: FullScreen;
  readonly #state: AppState;
  readonly #keys: KeyRouter;
  readonly #views: View[] = [];
  readonly #forget: () => void;
  readonly #code: CodeColours;
  #palette: Palette;
  /** Events that wait until colours of code are loaded. */
  #held: SessionEvent[] | undefined;
  #frameTimer: NodeJS.Timeout | undefined;
  #tickTimer: NodeJS.Timeout | undefined;
  #hintTimer: NodeJS.Timeout | undefined;
  #resizeTimer: NodeJS.Timeout | undefined;
  readonly #laterTimers = new Set<NodeJS.Timeout>();
  /** When the window began to change its size; undefined while it keeps it. */
  #resizingSince: number | undefined;
  #lastFrame = Number.NEGATIVE_INFINITY;
  #isClosed = false;
  #isStarted = false;
  /** Another program has the terminal, such as an editor. */
  #isAway = false;

  constructor(options: TerminalAppOptions) {
    this.#options = options;
    const { device, capabilities } = options;
    const screen = {
      write: (bytes: string) => device.write(bytes),
      columns: () => device.columns,
      rows: () => device.rows,
      palette: (style: Style) => this.#palette(style),
    };
    this.#palette = createPalette(capabilities);
    this.#code = new CodeColours({ isOn: capabilities.depth !== "none" });
    this.#inline = new InlineScreen({ ...screen, ...capabilities });
    this.#full = new FullScreen(screen);
    this.#state = this.#createState(options.session);
    this.#keys = new KeyRouter(this.#state, this.#actions);
    this.#forget = options.session.subscribe((event) => this.#onEvent(event));
  }

  /** Resolves when a person can type and sees it. */
  open(): Promise<void> {
    return new Promise((resolve) =>
      this.#options.device.begin(this, () => {
        this.#isStarted = true;
        this.#draw();
        resolve();
      }),
    );
  }

  /** A line of the program itself above the live part. */
  note(text: string): void {
    this.#state.conversation.note(text, dim);
    this.#schedule();
  }

  /** Takes the live part away; the terminal is as it was, below what was said. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#takeHeld();
    this.#isClosed = true;
    if (this.#options.device.isAsking) await this.#options.device.answered();
    this.#forget();
    const timers = [this.#frameTimer, this.#tickTimer, this.#hintTimer, this.#resizeTimer];
    for (const timer of [...timers, ...this.#laterTimers]) clearTimeout(timer);
    for (const view of this.#views.splice(0)) view.dispose?.();
    if (this.#options.device.isAlternate) this.#options.device.leaveAlternate();
    this.#state.conversation.close();
    this.#inline.finish(this.#state.conversation.takeFinished());
    this.#inline.draw({ rows: [] });
    this.#inline.clear();
    this.#options.device.close();
  }

  key(key: KeyPress): void {
    if (this.#isClosed) return;
    const view = this.#views.at(-1);
    if (view !== undefined) {
      if (view.press(key) === "close") this.#closeView(view);
      return;
    }
    if (this.#state.isOnce) this.#pressOnce(key);
    else if (key.name === "ctrl+c" && this.#state.questionController.hasFocus) this.#keys.leaveQuestion();
    else if (!this.#state.questionController.press(key)) this.#keys.press(key);
  }

  #pressOnce(key: KeyPress): void {
    const { name } = key;
    const { questionController, session } = this.#state;
    if (name !== "ctrl+c" && questionController.press(key)) return;
    if (name === "tab" || name === "enter") questionController.open();
    if (name === "escape" || name === "ctrl+c") session.interrupt();
    if (name === "ctrl+b") void session.moveToBackground();
  }

  paste(text: string): void {
    const view = this.#views.at(-1);
    if (view !== undefined) view.paste?.(text);
    else if (!this.#state.questionController.paste(text) && !this.#state.isOnce) this.#pasteIntoDraft(text);
  }

  /** Files of images that are dropped on the terminal come as a paste of their paths, and an image of the clipboard as an empty one. */
  #pasteIntoDraft(text: string): void {
    const { box } = this.#state;
    const files = droppedImages(text);
    if (text === "") this.#actions.pasteImage();
    else if (files.length === 0) box.paste(text);
    else
      void this.#attachImages(files).then((isDone) => {
        if (!isDone) box.paste(text);
        this.#schedule();
      });
  }

  async #attachImages(files: readonly string[]): Promise<boolean> {
    const { box, session } = this.#state;
    try {
      const chips = await Promise.all(files.map((file) => session.attachImage(file)));
      for (const chip of chips) if (chip !== undefined) box.insertImage(chip);
      return true;
    } catch (error) {
      this.#hint(error instanceof Error ? error.message : String(error), 6000);
      return false;
    }
  }

  settled(): void {
    this.#draw();
  }

  /** What is on its way to the terminal while it changes would be counted in lines of another width. */
  resized(): void {
    const { now } = this.#options;
    this.#resizingSince ??= now();
    clearTimeout(this.#resizeTimer);
    const left = this.#resizingSince + maxSettleMs - now();
    this.#resizeTimer = setTimeout(
      () => {
        this.#resizingSince = undefined;
        this.#draw();
      },
      Math.max(0, Math.min(settleMs, left)),
    );
  }

  gone(): void {
    this.#options.onExit();
  }

  #createState(session: TerminalSession): AppState {
    const { now, fileName } = this.#options;
    const context = (): RowContext => ({
      width: Math.max(10, this.#options.device.columns - 1),
      code: this.#code,
      fileName,
    });
    const files = new FileIndex(session.library, () => {
      this.#state.box.refresh();
      this.#schedule();
    });
    const box = new PromptBox({
      commands: () => [
        ...commandHelp.map(({ name, description }) => ({ value: name, description })),
        ...this.#state.skills.map(({ name, description }) => ({ value: name, description })),
      ],
      files: () => files.list(),
    });
    return {
      session,
      conversation: new Conversation({
        context,
        now,
        startHint: "? keys · / commands · @ files · ctrl+c twice quits",
      }),
      board: new AgentBoard(),
      questionController: new QuestionController({
        now,
        later: (milliseconds, work) => this.#later(milliseconds, work),
        answer: (question, answer) => {
          const { conversation } = this.#state;
          conversation.answered(question, answer);
          session.answer(question.id, answer);
        },
        typed: (key) => {
          if (!this.#state.isOnce) this.#state.box.press(key);
        },
        changed: () => this.#schedule(),
        edit: (text) => this.#actions.edit(text),
        show: (title, text) => openPage(this.#actions, title, text),
        context,
      }),
      box,
      status: {},
      sessionId: "",
      queue: [],
      todos: [],
      workflows: [],
      showsTodos: false,
      commands: commandHelp,
      skills: [],
      isOpen: false,
      isOnce: this.#options.isOnce ?? false,
      hint: "",
      now,
      context,
    };
  }

  readonly #actions: AppActions = {
    openView: (view) => this.#openView(view),
    closeView: (view) => this.#closeView(view),
    hint: (text, milliseconds) => this.#hint(text, milliseconds),
    changed: () => this.#schedule(),
    send: (text) => {
      this.#send(text);
      this.#openWaiting();
    },
    // OSC 52: the terminal decides whether programs may.
    copy: (text) => this.#options.device.write(`\u001b]52;c;${Buffer.from(text).toString("base64")}\u0007`),
    pasteImage: () =>
      this.#actions.attempt(async () => {
        const chip = await this.#state.session.attachImage();
        if (chip === undefined) this.#hint("there is no image in the clipboard that can be read here", 4000);
        else this.#state.box.insertImage(chip);
        this.#schedule();
      }),
    exit: () => this.#options.onExit(),
    suspend: () => void this.#suspend(),
    repaint: () => {
      this.#inline.clear();
      this.#draw();
    },
    edit: (text) => this.#edit(text),
    editFile: (file) => this.#lend(() => editFile(file, this.#options.environment)),
    loadHistory: async () => this.#state.box.history.load(await this.#state.session.library.history()),
    attempt: (work) => void this.#attempt(work),
    redo: (key) => {
      this.key(key);
      this.#draw();
    },
  };

  #send(text: string): void {
    const { session, conversation } = this.#state;
    const missing = loneSigns.get(text);
    if (missing !== undefined) this.#hint(missing, 4000);
    else if (text.startsWith("!") && text.length > 1) {
      conversation.addPrompt(text);
      session.runShell(text.slice(1).trim());
    } else if (/^#(?![#\d])/.test(text)) {
      void this.#attempt(async () => {
        const file = await session.addMemory(text.slice(1).trim(), "project");
        conversation.note(`Added to ${file}.`);
        this.#schedule();
      });
    } else if (!text.startsWith("/") || !runCommand(text, this.#state, this.#actions)) session.submit(text);
  }

  /** What is finished is painted once, so code waits for its colours; that takes a moment, once. */
  #onEvent(event: SessionEvent): void {
    if (this.#held !== undefined) this.#held.push(event);
    else if (this.#code.isNeededFor(event)) {
      this.#held = [event];
      void this.#code.load().then(() => this.#takeHeld());
    } else this.#take(event);
  }

  #takeHeld(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const event of held) this.#take(event);
  }

  #take(event: SessionEvent): void {
    const state = this.#state;
    state.conversation.onEvent(event);
    switch (event.type) {
      case "conversation-opened":
        this.#opened(event);
        break;
      case "status-changed":
        state.status = { ...state.status, ...event.status };
        if (event.status.modes !== undefined) this.#keys.modesKnown();
        break;
      case "preferences-changed":
        this.#prefer(event.preferences);
        break;
      case "queue-changed":
        state.queue = event.messages;
        break;
      case "agent-changed":
        state.conversation.agentStarted(event.agent);
        if (state.board.onEvent(event.agent) && !state.board.isStep(event.agent))
          state.conversation.agentEnded(event.agent);
        break;
      case "question-asked":
        if (event.question.kind === "plan") state.conversation.addMarkdown(event.question.plan);
        state.questionController.ask(event.question);
        this.#openWaiting();
        break;
      case "question-closed": {
        const closed = state.questionController.close(event.questionId);
        const agent = state.board.get(closed?.agentId ?? "");
        if (closed !== undefined && agent?.isBackground === true) state.conversation.unasked(closed);
        this.#openWaiting();
        break;
      }
      case "agents-found":
        for (const agent of event.agents)
          if (state.board.get(agent.id) === undefined) state.board.onEvent(agent);
        break;
      case "todos-changed":
        for (const { text } of newlyDone(state.todos, event.todos)) state.conversation.stepDone(text);
        state.todos = event.todos;
        break;
      case "workflow-changed": {
        const { run, change } = event;
        const others = state.workflows.filter(({ taskId }) => taskId !== run.taskId);
        state.workflows = change.type === "ended" ? others : [...others, run];
        state.board.hasWorkflow(run.runId);
        break;
      }
      default:
        break;
    }
    this.#schedule();
  }

  #prefer({ theme, hasVimKeys }: Partial<Preferences>): void {
    const { capabilities, environment } = this.#options;
    if (hasVimKeys !== undefined) this.#state.box.setVimKeys(hasVimKeys);
    // The variable decides for this terminal, whatever was chosen for all.
    if (theme === undefined || isTheme(environment["RETINUE_THEME"])) return;
    const background = theme === "terminal" ? capabilities.background : theme;
    this.#palette = createPalette({ ...capabilities, background });
    this.#full.repaint();
    if (this.#isStarted && this.#views.length === 0) this.#inline.repaint();
  }

  #opened({
    sessionId,
    earlier,
    notes,
    isReopened = false,
  }: Extract<SessionEvent, { type: "conversation-opened" }>): void {
    const state = this.#state;
    const isOther = state.sessionId !== "" && state.sessionId !== sessionId;
    if (isOther && !isReopened) state.board.clear();
    if (isOther) state.workflows = [];
    state.isOpen = true;
    state.sessionId = sessionId;
    state.todos = [];
    if (isOther && earlier.length === 0 && !isReopened)
      state.conversation.note("A new conversation begins here.");
    for (const note of notes) state.conversation.note(note, colours.warning);
    state.conversation.replay(earlier);
    void this.#attempt(async () => {
      state.skills = await state.session.library.commands();
    });
  }

  /** A question that waits opens by itself where nothing is being written. */
  #openWaiting(): void {
    const { box, questionController } = this.#state;
    if (box.isEmpty && !box.isSearching) questionController.openUnasked();
  }

  #openView(view: View): void {
    this.#views.push(view);
    if (!this.#options.device.isAlternate) this.#options.device.enterAlternate();
    this.#full.forget();
    this.#schedule();
  }

  /** The view that was open before is shown again, or the conversation. */
  #closeView(view: View): void {
    view.dispose?.();
    const at = this.#views.indexOf(view);
    if (at !== -1) this.#views.splice(at, 1);
    this.#full.forget();
    if (this.#views.length === 0) this.#options.device.leaveAlternate();
  }

  #hint(text: string, milliseconds?: number): void {
    clearTimeout(this.#hintTimer);
    this.#state.hint = text;
    if (milliseconds !== undefined)
      this.#hintTimer = setTimeout(() => {
        this.#state.hint = "";
        this.#draw();
      }, milliseconds);
    this.#schedule();
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const advice = error instanceof Error && "advice" in error ? ` ${String(error.advice ?? "")}` : "";
      const message = error instanceof Error ? error.message : String(error);
      this.#state.conversation.note(`${message}${advice}`.trim(), colours.error);
      this.#schedule();
    }
  }

  async #suspend(): Promise<void> {
    const { device } = this.#options;
    this.#isAway = true;
    if (device.isAsking) await device.answered();
    this.#inline.clear();
    device.close();
    const back = (): void => {
      clearTimeout(timer);
      process.off("SIGCONT", back);
      this.#comeBack();
    };
    // Nothing else keeps an idle process alive when it continues, and one without a shell above it is never stopped.
    const timer = setTimeout(back, stoppedMs);
    process.once("SIGCONT", back);
    process.kill(process.pid, "SIGTSTP");
  }

  #comeBack(): void {
    if (this.#isClosed) return;
    this.#isAway = false;
    this.#options.device.open(this);
    this.#inline.forget();
    this.#full.forget();
    if (this.#views.length > 0) this.#options.device.enterAlternate();
    this.#draw();
  }

  #edit(text: string): Promise<string | undefined> {
    return this.#lend(() => editText(text, this.#options.environment));
  }

  /** Gives the terminal to another program until it ends. */
  async #lend<Result>(work: () => Promise<Result>): Promise<Result> {
    const { device } = this.#options;
    this.#isAway = true;
    if (device.isAsking) await device.answered();
    if (this.#views.length === 0) this.#inline.clear();
    device.close();
    try {
      return await work();
    } finally {
      this.#comeBack();
    }
  }

  /** Keys that wait to be read by then are read before, however busy the process was. */
  #later(milliseconds: number, work: () => void): () => void {
    let isCancelled = false;
    const timer = setTimeout(() => {
      this.#laterTimers.delete(timer);
      setImmediate(() => {
        if (!isCancelled && !this.#isClosed) work();
      });
    }, milliseconds);
    this.#laterTimers.add(timer);
    return () => {
      isCancelled = true;
      clearTimeout(timer);
      this.#laterTimers.delete(timer);
    };
  }

  /** Paints soon: immediately after a pause, and not more often than there is something to see. */
  #schedule(): void {
    if (this.#isClosed || this.#frameTimer !== undefined) return;
    const wait = Math.max(0, this.#lastFrame + frameMs - this.#options.now());
    this.#frameTimer = setTimeout(() => this.#draw(), wait);
  }

  #draw(): void {
    clearTimeout(this.#frameTimer);
    this.#frameTimer = undefined;
    if (this.#isClosed || this.#isAway || !this.#isStarted) return;
    this.#options.device.refreshSize();
    if (this.#resizingSince !== undefined) return;
    this.#lastFrame = this.#options.now();
    const { device } = this.#options;
    const view = this.#views.at(-1);
    if (view !== undefined) this.#full.draw(view.frame(device.columns, device.rows));
    else device.withSize(() => this.#paint());
    this.#tick();
  }

  #paint(): void {
    if (this.#isClosed || this.#isAway || this.#views.length > 0) return;
    const { device } = this.#options;
    this.#inline.finish(this.#state.conversation.takeFinished());
    this.#inline.draw(liveFrame(this.#state, device.columns, device.rows));
  }

  /** A clock runs only while something on the screen changes by itself. */
  #tick(): void {
    clearTimeout(this.#tickTimer);
    const { conversation, board } = this.#state;
    const isMoving =
      this.#state.workflows.length > 0 ||
      conversation.isMoving ||
      board.running().length > 0 ||
      this.#views.at(-1)?.isMoving === true;
    this.#tickTimer = isMoving ? setTimeout(() => this.#draw(), spinnerMs) : undefined;
  }
}

function isTheme(text: string | undefined): boolean {
  return text === "dark" || text === "light";
}

/** Steps that are done now and were not before. */
function newlyDone(before: readonly TodoItem[], now: readonly TodoItem[]): readonly TodoItem[] {
  const done = new Set(before.flatMap(({ text, state }) => (state === "done" ? [text] : [])));
  return now.filter(({ text, state }) => state === "done" && !done.has(text));
}
