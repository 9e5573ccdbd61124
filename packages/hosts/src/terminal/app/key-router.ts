import { draftOf, emptyDraft } from "../input/draft.ts";
import type { KeyPress } from "../input/key-press.ts";
import type { AppActions, AppState } from "./app-state.ts";
import { openAgent, openHelp, openRewind, openTranscript } from "./open-views.ts";

const doubleMs = 800;
const leaveMs = 2000;

/** Says what each key of the conversation does; keys of questions and views have been taken before. */
export class KeyRouter {
  readonly #state: AppState;
  readonly #actions: AppActions;
  #escapedAt = Number.NEGATIVE_INFINITY;
  #leaveAt = Number.NEGATIVE_INFINITY;
  /** How often the mode was to be changed before there were modes. */
  #owedModes = 0;

  constructor(state: AppState, actions: AppActions) {
    this.#state = state;
    this.#actions = actions;
  }

  press(key: KeyPress): void {
    const { board, box } = this.#state;
    if (key.name !== "escape") this.#escapedAt = Number.NEGATIVE_INFINITY;
    if (key.name !== "ctrl+c" && this.#leaveAt > 0) {
      this.#leaveAt = Number.NEGATIVE_INFINITY;
      this.#actions.hint("");
    }
    const isForBox = box.isSearching || (box.isOffering && offerKeys.has(key.name));
    if (!isForBox) {
      if (board.selected !== undefined && this.#pressBoard(key)) return;
      if (this.#commands.get(key.name)?.() === true) return;
    }
    this.#pressBox(key);
  }

  /** Ctrl+C in an open question: it waits as a line again, the draft stays, and the next Ctrl+C counts as the second. */
  leaveQuestion(): void {
    this.#state.questionController.leave();
    this.#announceLeaving();
  }

  /** The conversation has been opened. */
  modesKnown(): void {
    const owed = this.#owedModes;
    this.#owedModes = 0;
    for (let at = 0; at < owed; at += 1) this.#nextMode();
  }

  /** Each says whether it took the key. */
  readonly #commands: ReadonlyMap<string, () => boolean> = new Map([
    ["ctrl+c", () => this.#clearOrLeave()],
    ["ctrl+d", () => this.#leaveWhenEmpty()],
    ["escape", () => this.#escape()],
    ["tab", () => this.#state.questionController.open()],
    ["enter", () => this.#state.box.isEmpty && this.#state.questionController.open()],
    ["shift+tab", () => this.#nextMode()],
    ["ctrl+b", () => this.#background()],
    ["ctrl+o", () => this.#do(() => openTranscript(this.#state, this.#actions))],
    ["ctrl+t", () => this.#toggleTodos()],
    ["ctrl+g", () => this.#editDraft()],
    ["ctrl+v", () => this.#do(() => this.#actions.pasteImage())],
    ["ctrl+z", () => this.#do(() => this.#actions.suspend())],
    ["ctrl+l", () => this.#do(() => this.#actions.repaint())],
    ["?", () => this.#state.box.isEmpty && this.#do(() => openHelp(this.#state, this.#actions))],
    ["up", () => this.#up()],
    ["down", () => this.#down()],
    ["ctrl+r", () => this.#do(() => this.#search())],
  ]);

  #do(work: () => void): true {
    work();
    return true;
  }

  #pressBox(key: KeyPress): void {
    const { box } = this.#state;
    if (box.press(key) !== "send") return;
    const text = box.editor.expanded().trim();
    if (text === "") return;
    box.set(emptyDraft);
    if (this.#state.questionController.takeSecret(text)) return;
    box.history.add(text);
    this.#actions.send(text);
  }

  #clearOrLeave(): boolean {
    const { box, session, conversation } = this.#state;
    if (!box.isEmpty) box.set(emptyDraft);
    else if (this.#state.now() < this.#leaveAt) return this.#do(() => this.#actions.exit());
    else if (conversation.isBusy) session.interrupt();
    return this.#do(() => this.#announceLeaving());
  }

  #announceLeaving(): void {
    this.#leaveAt = this.#state.now() + leaveMs;
    this.#actions.hint("ctrl+c again ends the session", leaveMs);
  }

  #leaveWhenEmpty(): boolean {
    return this.#state.box.isEmpty && this.#do(() => this.#actions.exit());
  }

  #escape(): boolean {
    const { box, conversation, session } = this.#state;
    if (box.takesEscape) return false;
    if (conversation.isBusy || conversation.hasRunningCalls) {
      session.interrupt();
      return true;
    }
    const now = this.#state.now();
    if (now - this.#escapedAt < doubleMs) {
      this.#escapedAt = Number.NEGATIVE_INFINITY;
      this.#actions.hint("");
      this.#actions.attempt(() => openRewind(this.#state, this.#actions));
      return true;
    }
    this.#escapedAt = now;
    this.#actions.hint("esc again: go back to an earlier prompt", doubleMs);
    return true;
  }

  #nextMode(): boolean {
    const { mode, modes = [] } = this.#state.status;
    if (modes.length === 0) this.#owedModes += 1;
    const next = modes[(modes.indexOf(mode ?? "") + 1) % Math.max(1, modes.length)];
    if (next !== undefined) this.#state.session.setMode(next);
    return true;
  }

  #background(): boolean {
    this.#actions.attempt(async () => {
      const moved = await this.#state.session.moveToBackground();
      this.#actions.hint(
        moved.length === 0
          ? "nothing to move: no agent or command runs in the foreground"
          : `moved to the background: ${moved.join(", ")}`,
        4000,
      );
    });
    return true;
  }

  #toggleTodos(): boolean {
    this.#state.showsTodos = !this.#state.showsTodos;
    return true;
  }

  #editDraft(): boolean {
    const { box } = this.#state;
    this.#actions.attempt(async () => {
      const text = await this.#actions.edit(box.editor.expanded());
      if (text !== undefined) box.set(draftOf(text.trimEnd()));
      this.#actions.changed();
    });
    return true;
  }

  /** Up on an empty draft takes the newest queued message back. */
  #up(): boolean {
    const { box, queue, session } = this.#state;
    const last = queue.at(-1);
    if (box.isEmpty && last !== undefined && !box.history.isBrowsing) {
      const text = session.takeBack(last.id);
      if (text !== undefined) {
        box.set(draftOf(text));
        return true;
      }
    }
    return this.#needsHistory({ name: "up" });
  }

  #search(): void {
    if (!this.#needsHistory({ name: "ctrl+r" })) this.#state.box.press({ name: "ctrl+r" });
  }

  /** True while earlier prompts are read; the key is pressed again when they are there. */
  #needsHistory(key: KeyPress): boolean {
    if (this.#state.box.history.isLoaded || !this.#state.isOpen) return false;
    this.#actions.attempt(async () => {
      await this.#actions.loadHistory();
      this.#actions.redo(key);
    });
    return true;
  }

  #down(): boolean {
    const { box, board } = this.#state;
    const isAtEnd = box.isAtEnd && !box.history.isBrowsing;
    return isAtEnd && board.select("first");
  }

  #pressBoard(key: KeyPress): boolean {
    const { board, session } = this.#state;
    const id = board.selected;
    if (id === undefined) return false;
    switch (key.name) {
      case "up":
        if (!board.select(-1)) board.unselect();
        return true;
      case "down":
        board.select(1);
        return true;
      case "enter":
        openAgent(id, this.#state, this.#actions);
        return true;
      case "x":
        this.#actions.attempt(() => session.stopAgent(id));
        return true;
      case "b":
      case "ctrl+b":
        this.#actions.attempt(async () => void (await session.moveToBackground(id)));
        return true;
      case "escape":
        board.unselect();
        return true;
      default:
        board.unselect();
        return false;
    }
  }
}

const offerKeys: ReadonlySet<string> = new Set(["up", "down", "tab", "enter", "escape"]);
