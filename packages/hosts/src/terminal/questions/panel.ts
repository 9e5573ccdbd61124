import type { KeyPress } from "../input/key-press.ts";
import type { Row } from "../screen/row.ts";
import type { QuestionAnswer } from "../session/terminal-session.ts";

export interface PanelView {
  readonly rows: readonly Row[];
  readonly cursor?: { readonly row: number; readonly column: number } | undefined;
}

export type PanelOutcome =
  | { readonly type: "stay" }
  /** Back to the draft; the question stays open. */
  | { readonly type: "leave" }
  /** The key was not meant for the question. */
  | { readonly type: "typed" }
  /** The person wants to read more than there is room for. */
  | { readonly type: "show"; readonly title: string; readonly text: string }
  | { readonly type: "answer"; readonly answer: QuestionAnswer };

/** A question that is open. */
export interface Panel {
  /** Whether keys are letters of a text now, such as a message to the agent. */
  readonly isWriting: boolean;
  /** Whether this letter or digit means something here, while no text is written. */
  takes(key: KeyPress): boolean;
  view(width: number, height: number): PanelView;
  press(key: KeyPress): PanelOutcome;
  paste(text: string): void;
  /** True where a key that was pasted fills a field that is not shown. */
  takesSecret?(text: string): boolean;
}

export const stay: PanelOutcome = { type: "stay" };

export function answered(answer: QuestionAnswer): PanelOutcome {
  return { type: "answer", answer };
}
