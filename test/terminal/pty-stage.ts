import { join } from "node:path";
import { spawn } from "@lydell/node-pty";
import {
  type FakeProvider,
  type FakeProviderOptions,
  startFakeProvider,
} from "@retinue/testing/fake-provider.ts";
import xterm from "@xterm/headless";
import { onTestFinished } from "vitest";
import { projectRoot } from "../project-files.ts";
import { createPlace, type Place } from "../scenarios/run-command.ts";

export interface PtyOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly columns?: number;
  readonly rows?: number;
  /** A script of bash that starts the command, which is in `"$@"`. */
  readonly shell?: string;
}

/** The command in a real pseudo terminal, whose output goes through a terminal emulator. */
export interface PtyStage {
  readonly pid: number;
  type(text: string): void;
  resize(columns: number, rows: number): void;
  /** The window changes before the command next asks where its end is; that it was resized the command does not hear. */
  resizeUntold(columns: number, rows: number): void;
  /**
   * Resizes while frames are being drawn, also several times. A frame that was on its way when the window changed is still meant for
   * the old size; here the emulator changes exactly before the first frame for a new one, however late the command hears of it.
   * Sizes that are given one after the other have different widths.
   */
  resizeBetweenFrames(columns: number, rows: number): void;
  /** Lines of the window as a person sees them. */
  screen(): Promise<string[]>;
  /** Everything from the top of the scrollback on. */
  all(): Promise<string[]>;
  /** Waits until the window shows the text, or all of them. */
  shows(...texts: readonly string[]): Promise<void>;
  isMissing(text: string): Promise<void>;
  /** Waits until the window shows a question whose numbers can be pressed; until then, keys are taken for typing. */
  takesAnswers(): Promise<void>;
  /** Waits until the text has been shown, also where it has left the window since. */
  hasShown(text: string): Promise<void>;
  /** Everything that was written to the terminal. */
  bytes(): string;
  readonly exited: Promise<{ readonly code: number }>;
}

const timeoutMs = 25_000;

/** Opens the built command on a terminal of its own. */
export function openPty(
  { cwd, home }: Pick<Place, "cwd" | "home">,
  words: readonly string[],
  { environment = {}, columns = 100, rows = 30, shell }: PtyOptions = {},
): PtyStage {
  const command = [process.execPath, join(projectRoot, "bin/retinue.js"), ...words];
  const [file = "", ...rest] = shell === undefined ? command : ["bash", "-c", shell, "bash", ...command];
  const terminal = new xterm.Terminal({ cols: columns, rows, scrollback: 50_000, allowProposedApi: true });
  const child = spawn(file, rest, {
    cols: columns,
    rows,
    cwd,
    name: environment["TERM"] ?? "xterm-256color",
    env: {
      HOME: home,
      PATH: process.env["PATH"] ?? "",
      TERM: "xterm-256color",
      // The emulator is the one of that program.
      TERM_PROGRAM: "vscode",
      RETINUE_LOCAL_MODELS: "0",
      ...environment,
    },
  });
  let bytes = "";
  let pending = Promise.resolve();
  const waiting = new Set<() => void>();
  const draw = (data: string): void => {
    pending = pending.then(() => new Promise((done) => terminal.write(data, done)));
    void pending.then(() => {
      for (const look of waiting) look();
    });
  };
  let untold: { readonly columns: number; readonly rows: number } | undefined;
  const resizeAtQuestion = (data: string): string => {
    const size = untold;
    const question = size === undefined ? -1 : data.indexOf("\u001b7");
    if (size === undefined || question === -1) return data;
    untold = undefined;
    draw(data.slice(0, question));
    pending = pending.then(() => terminal.resize(size.columns, size.rows));
    return data.slice(question);
  };
  let coming: readonly { readonly columns: number; readonly rows: number }[] = [];
  let held = "";
  child.onData((data) => {
    bytes += data;
    // Each frame is looked at by itself, however many come at the same time.
    const pieces = `${held}${resizeAtQuestion(data)}`.split(/(?<=\u001b\[\?2026l)/);
    held = coming.length > 0 && pieces.at(-1)?.endsWith(frameEnd) === false ? (pieces.pop() ?? "") : "";
    for (const piece of pieces) {
      const at = coming.findLastIndex(({ columns: width }) => isFrameOf(piece, width));
      const size = coming[at];
      if (size !== undefined) {
        coming = coming.slice(at + 1);
        pending = pending.then(() => terminal.resize(size.columns, size.rows));
      }
      draw(piece);
    }
  });
  let isOver = false;
  const exited = new Promise<{ code: number }>((resolve) =>
    child.onExit(({ exitCode, signal }) => {
      isOver = true;
      resolve({ code: signal === undefined || signal === 0 ? exitCode : 128 + signal });
      for (const look of waiting) look();
    }),
  );
  onTestFinished(() => {
    if (!isOver) child.kill("SIGKILL");
    terminal.dispose();
  });
  const lines = (from: number): string[] => {
    const { active } = terminal.buffer;
    const found = Array.from({ length: active.length - from }, (_, at) =>
      (active.getLine(from + at)?.translateToString(true) ?? "").trimEnd(),
    );
    while (found.at(-1) === "") found.pop();
    return found;
  };
  terminal.onData((answer) => {
    if (!isOver) child.write(answer);
  });
  const window = (): string[] => lines(terminal.buffer.active.baseY);
  const until = (what: string, isTrue: () => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const end = (error?: Error): void => {
        clearTimeout(timer);
        waiting.delete(look);
        if (error === undefined) resolve();
        else reject(error);
      };
      const look = (): void => {
        if (isTrue()) end();
        else if (isOver) end(new Error(`ended before ${what}:\n${window().join("\n")}`));
      };
      const timer = setTimeout(() => end(new Error(`never ${what}:\n${window().join("\n")}`)), timeoutMs);
      waiting.add(look);
      void pending.then(look);
    });
  return {
    pid: child.pid,
    type: (text) => child.write(text),
    resize(newColumns, newRows) {
      terminal.resize(newColumns, newRows);
      child.resize(newColumns, newRows);
    },
    resizeUntold(newColumns, newRows) {
      untold = { columns: newColumns, rows: newRows };
    },
    resizeBetweenFrames(newColumns, newRows) {
      coming = [...coming, { columns: newColumns, rows: newRows }];
      child.resize(newColumns, newRows);
    },
    async screen() {
      await pending;
      return window();
    },
    async all() {
      await pending;
      return lines(0);
    },
    shows: (...texts) =>
      until(`showed ${texts.join(", ")}`, () => {
        const text = window().join("\n");
        return texts.every((one) => text.includes(one));
      }),
    takesAnswers: () => until("took answers", () => hasBoldNumber(terminal)),
    isMissing: (text) => until(`was without ${text}`, () => !window().join("\n").includes(text)),
    hasShown: (text) => until(`had shown ${text}`, () => lines(0).some((line) => line.includes(text))),
    bytes: () => bytes,
    exited,
  };
}

const frameEnd = "\u001b[?2026l";

/** Whether this is a frame whose rules are as wide as they are in a window of so many columns. */
function isFrameOf(output: string, columns: number): boolean {
  const rule = "─".repeat(columns - 1);
  return output.includes(rule) && !output.includes(`${rule}─`);
}

export const keys = {
  enter: "\r",
  escape: "\u001b",
  ctrlB: "\u0002",
  ctrlC: "\u0003",
  ctrlD: "\u0004",
  ctrlO: "\u000f",
  ctrlR: "\u0012",
  tab: "\t",
  shiftTab: "\u001b[Z",
  up: "\u001b[A",
  down: "\u001b[B",
} as const;

export function pasted(text: string): string {
  return `\u001b[200~${text}\u001b[201~`;
}

export interface Conversation {
  readonly place: Place;
  readonly provider: FakeProvider;
  readonly pty: PtyStage;
  /** Opens the command once more in the same place. */
  again(words?: readonly string[], options?: PtyOptions): PtyStage;
}

/** A conversation in a fresh project, with a model that follows a script. */
export async function openConversation(
  script: NonNullable<FakeProviderOptions["script"]>,
  {
    words = [],
    files = {},
    provider: served = {},
    ...options
  }: PtyOptions & {
    readonly words?: readonly string[];
    readonly files?: Readonly<Record<string, string>>;
    readonly provider?: FakeProviderOptions;
  } = {},
): Promise<Conversation> {
  const place = createPlace();
  for (const [name, text] of Object.entries(files)) place.write(name, text);
  const provider = await startFakeProvider({ script, ...served });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const open = (given: readonly string[], more: PtyOptions = options): PtyStage =>
    openPty(place, given, {
      ...more,
      environment: { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x", ...more.environment },
    });
  return { place, provider, pty: open(words), again: (given = [], more) => open(given, more) };
}

/** The text of all user messages of a request, for what reached the model. */
export function userTexts({ requests }: FakeProvider, at = -1): string {
  return JSON.stringify(requests.at(at)?.request.messages.filter(({ role }) => role === "user") ?? []);
}

function hasBoldNumber({ buffer: { active }, rows }: xterm.Terminal): boolean {
  return Array.from({ length: rows }, (_, at) => active.getLine(active.baseY + at)).some((line) => {
    const found = /^(?:[ ›] )?1 /.exec(line?.translateToString(true) ?? "");
    return found !== null && (line?.getCell(found[0].length - 2)?.isBold() ?? 0) !== 0;
  });
}
