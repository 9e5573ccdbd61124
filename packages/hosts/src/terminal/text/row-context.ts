import { type DisplayPlaces, displayPath } from "../../shared/display-path.ts";
import { CodeColours } from "./code-colours.ts";

/** What rows are made for. */
export interface RowContext {
  /** Cells that a row may take. */
  readonly width: number;
  readonly code: CodeColours;
  /** A file as it is shown: from the folder of the conversation on where it is in it. */
  readonly fileName: (file: string) => string;
}

/** Rows without colours of code and with files as they are written. */
export function plainContext(width: number): RowContext {
  return { width, code: new CodeColours({ isOn: false }), fileName: (file) => file };
}

export function fileNamesFrom(places: DisplayPlaces): RowContext["fileName"] {
  return (file) => displayPath(file, places);
}
