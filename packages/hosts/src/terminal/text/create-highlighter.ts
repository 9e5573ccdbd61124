import { common, createLowlight } from "lowlight";

export type Highlighter = ReturnType<typeof createLowlight>;

/** Reads the languages people use most. Loaded with the first code that is shown. */
export function createHighlighter(): Highlighter {
  return createLowlight(common);
}
