import { WriteStream } from "node:tty";
import type { ColourDepth, StyleOptions } from "./style.ts";

/** What the terminal can do, as far as its environment shows it. */
export interface Capabilities extends StyleOptions {
  /** No repainting at all: for screen readers, and for terminals that know no escape sequences. */
  readonly isPlain: boolean;
  /** Escape sequences may be written. */
  readonly hasEscapes: boolean;
  /** Lines are wrapped anew when the window becomes narrower. */
  readonly reflows: boolean;
  /** The cursor then moves by all lines that were added, wherever they are. */
  readonly movesCursorByAll: boolean;
  /** The terminal is asked for its size before each frame: a multiplexer reports a resize later than it rewraps lines. */
  readonly asksSize: boolean;
  /** Windows Terminal reports keys such as Shift+Enter only when it is asked in its own way. */
  readonly hasWindowsKeys: boolean;
  /** How long after an Escape more of a sequence may come; longer over a network. */
  readonly escapeMs: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

export function findCapabilities(
  environment: Environment,
  { plain, colours }: { readonly plain: boolean; readonly colours: boolean },
): Capabilities {
  const { TERM: terminal = "" } = environment;
  const isDumb = terminal === "dumb";
  const isRemote = isSet(environment["SSH_CONNECTION"]) || isSet(environment["SSH_TTY"]);
  // xterm itself, the Linux console and GNU screen cut lines instead of wrapping them anew.
  const cutsLines =
    isSet(environment["XTERM_VERSION"]) ||
    terminal === "linux" ||
    (isSet(environment["STY"]) && !isSet(environment["TMUX"]));
  return {
    isPlain: plain || isDumb,
    hasEscapes: !isDumb,
    depth: colours ? findDepth(environment) : "none",
    background: findBackground(environment),
    reflows: !cutsLines,
    movesCursorByAll: environment["TERM_PROGRAM"] === "vscode",
    asksSize: isSet(environment["TMUX"]) && !isDumb,
    hasWindowsKeys: isSet(environment["WT_SESSION"]),
    escapeMs: isRemote ? 100 : 20,
  };
}

/** What the environment shows about the terminal, as Node reads it; where colours are wanted there are 16 at least. */
function findDepth(environment: Environment): ColourDepth {
  const { NO_COLOR: _none, ...own } = environment;
  const bits = WriteStream.prototype.getColorDepth(own);
  if (bits >= 24) return "any";
  return bits >= 8 ? "256" : "16";
}

/** RETINUE_THEME decides, else what some terminals report about their colours. */
function findBackground(environment: Environment): "light" | "dark" {
  const chosen = environment["RETINUE_THEME"];
  if (chosen === "light" || chosen === "dark") return chosen;
  const background = Number(environment["COLORFGBG"]?.split(";").at(-1) || Number.NaN);
  return background === 7 || background === 15 ? "light" : "dark";
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== "";
}
