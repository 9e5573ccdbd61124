import type { KeyPress } from "../input/key-press.ts";
import type { Frame } from "../screen/inline-screen.ts";

/** Something that takes the whole window, on the alternate screen, until it is closed. */
export interface View {
  frame(columns: number, rows: number): Frame;
  /** "close" gives the window back to the conversation. */
  press(key: KeyPress): "stay" | "close";
  paste?(text: string): void;
  /** Whether it changes by itself, such as a count of seconds. */
  readonly isMoving?: boolean;
  dispose?(): void;
}
