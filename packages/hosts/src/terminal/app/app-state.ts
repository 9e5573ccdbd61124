import type { WorkflowRunState } from "@retinue/core/protocol/workflow-state.ts";
import type { KeyPress } from "../input/key-press.ts";
import type { PromptBox } from "../input/prompt-box.ts";
import type { QuestionController } from "../questions/question-controller.ts";
import type {
  CommandSummary,
  QueuedMessage,
  Status,
  TerminalSession,
  TodoItem,
} from "../session/terminal-session.ts";
import type { RowContext } from "../text/row-context.ts";
import type { View } from "../views/view.ts";
import type { AgentBoard } from "./agent-board.ts";
import type { Conversation } from "./conversation.ts";

/** Everything the terminal holds while it is open. */
export interface AppState {
  readonly session: TerminalSession;
  readonly conversation: Conversation;
  readonly board: AgentBoard;
  readonly questionController: QuestionController;
  readonly box: PromptBox;
  status: Partial<Status>;
  sessionId: string;
  queue: readonly QueuedMessage[];
  todos: readonly TodoItem[];
  /** Runs that have not ended. */
  workflows: readonly WorkflowRunState[];
  showsTodos: boolean;
  /** Commands of the terminal itself. */
  readonly commands: readonly CommandSummary[];
  skills: readonly CommandSummary[];
  isOpen: boolean;
  /** One prompt was given, and nothing is typed: only what continues is shown, and questions. */
  readonly isOnce: boolean;
  /** What is in the last line instead of the keys, for a while. */
  hint: string;
  readonly now: () => number;
  /** What rows of the conversation are made for. */
  readonly context: () => RowContext;
}

/** What keys and commands can ask of the terminal. */
export interface AppActions {
  openView(view: View): void;
  /** Closes a view that is open, whatever is above it. */
  closeView(view: View): void;
  /** Shows a text in the last line until it is replaced, or for some time. */
  hint(text: string, milliseconds?: number): void;
  /** Something changed that is to be painted. */
  changed(): void;
  send(text: string): void;
  /** Puts the image of the clipboard into the draft. */
  pasteImage(): void;
  /** Puts a text into the clipboard of the terminal. */
  copy(text: string): void;
  exit(): void;
  suspend(): void;
  repaint(): void;
  /** Opens a text in the person's editor; undefined when it came back unchanged. */
  edit(text: string): Promise<string | undefined>;
  /** Opens a file itself there. */
  editFile(file: string): Promise<void>;
  loadHistory(): Promise<void>;
  /** Runs what may fail; an error becomes a line in the conversation. */
  attempt(work: () => Promise<void>): void;
  redo(key: KeyPress): void;
}
