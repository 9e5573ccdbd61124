import xterm from "@xterm/headless";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InlineScreen } from "./inline-screen.ts";
import { row, rowText, rowWidth, span } from "./row.ts";
import { bold, colours, createPalette } from "./style.ts";
import { wrapRow } from "./wrap-row.ts";

/** A terminal of 40 by 10 with five lines of a shell above the screen. */
function stage(columns = 40, rows = 10) {
  const terminal = new xterm.Terminal({ cols: columns, rows, scrollback: 300, allowProposedApi: true });
  const written: string[] = [];
  const feed = (bytes: string): void => {
    written.push(bytes);
    terminal.write(bytes);
  };
  const settle = (): Promise<void> => new Promise((done) => terminal.write("", done));
  const screen = new InlineScreen({
    write: feed,
    columns: () => terminal.cols,
    rows: () => terminal.rows,
    palette: createPalette({ depth: "16", background: "dark" }),
    movesCursorByAll: true,
  });
  feed(Array.from({ length: 5 }, (_, at) => `shell ${at}\r\n`).join(""));
  return {
    screen,
    terminal,
    written,
    async lines(): Promise<string[]> {
      await settle();
      const { buffer } = terminal;
      const all = Array.from({ length: buffer.active.length }, (_, at) =>
        (buffer.active.getLine(at)?.translateToString(true) ?? "").trimEnd(),
      );
      while (all.at(-1) === "") all.pop();
      return all;
    },
    settle,
  };
}

describe("the inline screen", () => {
  test("writes finished rows once, above what is live", async () => {
    const { screen, lines } = stage();
    screen.draw({ rows: [row("live")] });
    screen.finish([row("one"), row("two")]);
    screen.draw({ rows: [row("live"), row("below")] });
    screen.finish([row("three")]);
    screen.draw({ rows: [row("below")] });
    expect((await lines()).slice(5)).toEqual(["one", "two", "three", "below"]);
  });

  test("text that grows at the end costs little more than itself", () => {
    const { screen, written } = stage(80);
    const frame = (text: string) => ({
      rows: [row(text), row(span("─".repeat(40))), row("> ")],
      cursor: { row: 2, column: 2 },
    });
    screen.draw(frame("some words"));
    written.length = 0;
    screen.draw(frame("some words more"));
    expect(written.join("").length).toBeLessThan(60);
    expect(written.join("")).not.toContain("some words");
  });

  test("never clears the screen or its scrollback, and hides nothing for long", () => {
    const { screen, written } = stage();
    for (let turn = 0; turn < 50; turn += 1) {
      screen.finish([row(`line ${turn}`)]);
      screen.draw({ rows: Array.from({ length: turn % 7 }, (_, at) => row(`live ${turn} ${at}`)) });
    }
    const bytes = written.join("");
    expect(bytes).not.toMatch(/\u001b\[[23]J|\u001b\[H|\u001bc/);
    expect(written.slice(1).every((frame) => frame.startsWith("\u001b[?2026h"))).toBe(true);
  });

  test("a control sequence in a text is shown, not obeyed", async () => {
    const { screen, lines } = stage();
    screen.finish([row(span("a\u001b[2Jb\u0007c\rd", bold | colours.error))]);
    screen.draw({ rows: [] });
    expect((await lines()).at(-1)).toBe("a\\u001b[2Jb\\u0007c d");
  });

  test("whatever is finished and shown, the terminal has every line once and in order", async () => {
    const unit = fc.constantFrom(...lonely);
    const step = fc.record({
      finish: fc.array(fc.string({ maxLength: 60 }), { maxLength: 4 }),
      live: fc.array(
        fc.oneof(fc.string({ unit: "grapheme", maxLength: 30 }), fc.string({ unit, maxLength: 6 })),
        { maxLength: 8 },
      ),
      hasCursor: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const { screen, terminal, lines, settle } = stage(60, 9);
        const done: string[] = [];
        for (const [turn, { finish, live, hasCursor }] of steps.entries()) {
          const finished = finish.map((text, at) => row(`${turn}.${at} ${text}`));
          done.push(...finished.map(rowText));
          screen.finish(finished);
          const rows = live.flatMap((text) => wrapRow(row(text), 59).slice(0, 1));
          screen.draw({
            rows,
            cursor: hasCursor ? { row: Math.max(0, rows.length - 1), column: 0 } : undefined,
          });
        }
        screen.clear();
        const shown = (await lines()).slice(5);
        await settle();
        terminal.dispose();
        expect(joinWrapped(shown, done)).toEqual(done.map((text) => text.trimEnd()));
      }),
      { numRuns: 30 },
    );
  });

  test("a live row of marks without a letter leaves nothing behind", async () => {
    const { screen, lines } = stage();
    screen.draw({ rows: [row("\u0300\u0300\u200d\ufe0f"), row("  \u{11099}\u{110ba}")] });
    screen.finish([row("0|"), row("1|")]);
    screen.draw({ rows: [] });
    expect((await lines()).slice(5)).toEqual(["0|", "1|"]);
  });

  test("taking the live part away leaves what was finished while no cursor was shown", async () => {
    const { screen, lines } = stage();
    screen.draw({ rows: [row("")] });
    screen.finish([row("kept")]);
    screen.draw({ rows: [row("")] });
    screen.clear();
    expect((await lines()).slice(5)).toEqual(["kept"]);
  });

  test("a window that becomes narrower and lower at the same time loses no finished line", async () => {
    const { screen, terminal, lines, settle } = stage(120, 30);
    const draw = (): void =>
      screen.draw({
        rows: [
          row("working"),
          row("─".repeat(terminal.cols - 1)),
          row("> draft"),
          row("footer ".repeat(5).padEnd(terminal.cols - 1, "·")),
        ],
        cursor: { row: 2, column: 7 },
      });
    for (let at = 0; at < 40; at += 1) screen.finish([row(`finished ${at}`)]);
    draw();
    await settle();
    for (const [columns, height] of [
      [40, 20],
      [200, 40],
      [120, 30],
      [120, 12],
    ] as const) {
      terminal.resize(columns, height);
      draw();
      await settle();
    }
    const all = await lines();
    expect(all.filter((line) => line.startsWith("finished"))).toEqual(
      Array.from({ length: 40 }, (_, at) => `finished ${at}`),
    );
    expect(all.slice(-2)).toEqual(["> draft", "footer ".repeat(5).padEnd(119, "·")]);
  });

  test("a narrower and a wider window leave the live part once and lose no line", async () => {
    const { screen, terminal, lines, settle } = stage(80, 12);
    const text = "words that fill more than one line of a narrow window and are wrapped by it";
    const draw = (): void =>
      screen.draw({
        rows: [
          ...wrapRow(row(text), terminal.cols - 1),
          row("> draft".padEnd(terminal.cols - 2, "!")),
          row("footer".padEnd(terminal.cols - 2, "·")),
        ],
        cursor: { row: wrapRow(row(text), terminal.cols - 1).length, column: terminal.cols - 3 },
      });
    for (let at = 0; at < 20; at += 1) screen.finish([row(`finished ${at}`)]);
    draw();
    await settle();
    for (const columns of [40, 120, 30, 80]) {
      terminal.resize(columns, 12);
      draw();
      await settle();
    }
    const all = await lines();
    expect(all.filter((line) => line.startsWith("> draft"))).toHaveLength(1);
    expect(all.filter((line) => line.includes("!"))).toHaveLength(1);
    expect(all.filter((line) => line.startsWith("finished"))).toEqual(
      Array.from({ length: 20 }, (_, at) => `finished ${at}`),
    );
    expect(all.slice(0, 5)).toEqual(["shell 0", "shell 1", "shell 2", "shell 3", "shell 4"]);
  });
});

/** The screen before a slow terminal: what is written waits until it is delivered, and news of a resize until they are heard. */
function slowStage() {
  const terminal = new xterm.Terminal({ cols: 100, rows: 24, scrollback: 1_000, allowProposedApi: true });
  let known = { columns: 100, rows: 24 };
  const waiting: string[] = [];
  const screen = new InlineScreen({
    write: (bytes) => waiting.push(bytes),
    columns: () => known.columns,
    rows: () => known.rows,
    palette: createPalette({ depth: "16", background: "dark" }),
    movesCursorByAll: true,
  });
  let finished = 0;
  return {
    frame(lines: number, words: number): void {
      const width = known.columns - 1;
      for (let at = 0; at < lines; at += 1, finished += 1) screen.finish([row(`line ${finished}`), row("")]);
      const cut = (text: string) => row(text.slice(0, width));
      screen.draw({
        rows: [
          cut("word ".repeat(words)),
          row(""),
          cut("working ".repeat(1 + (words % 4))),
          row("─".repeat(width)),
        ].concat([row("> draft"), cut("footer ".repeat(10))]),
        cursor: { row: 4, column: 7 },
      });
    },
    async deliver(count = Number.POSITIVE_INFINITY): Promise<void> {
      for (const bytes of waiting.splice(0, count))
        await new Promise<void>((done) => terminal.write(bytes, done));
    },
    resize: (columns: number, rows: number) => terminal.resize(columns, rows),
    onEvent(): void {
      known = { columns: terminal.cols, rows: terminal.rows };
    },
    /** Numbers of the finished lines in the scrollback, and how often the draft is there. */
    async shown(): Promise<{ readonly numbers: number[]; readonly drafts: number }> {
      await this.deliver();
      const { active } = terminal.buffer;
      const lines = Array.from(
        { length: active.length },
        (_, at) => active.getLine(at)?.translateToString(true) ?? "",
      );
      terminal.dispose();
      return {
        numbers: lines.flatMap((line) => /^line (\d+)$/.exec(line.trimEnd())?.[1] ?? []).map(Number),
        drafts: lines.filter((line) => line.startsWith("> draft")).length,
      };
    },
    wanted: () => Array.from({ length: finished }, (_, at) => at),
  };
}

describe("a resize while frames are on their way to the terminal", () => {
  test("keeps the lines of a frame that was painted for the wider window", async () => {
    const slow = slowStage();
    slow.frame(12, 3);
    await slow.deliver();
    slow.frame(3, 3);
    slow.resize(45, 24);
    await slow.deliver();
    slow.onEvent();
    slow.frame(2, 5);
    const { numbers } = await slow.shown();
    expect(numbers).toEqual(slow.wanted());
  });

  test("keeps every line once and in order, however many frames come late; without late frames nothing is doubled", async () => {
    const frames = fc.array(fc.tuple(fc.nat({ max: 4 }), fc.nat({ max: 18 })), { maxLength: 3 });
    const size = fc.constantFrom([45, 24], [140, 30], [60, 20], [30, 24], [100, 24]);
    const step = fc.record({
      inFlight: frames,
      delivered: fc.nat({ max: 2 }),
      size,
      unheard: frames,
      received: frames,
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 4 }), async (steps) => {
        const slow = slowStage();
        slow.frame(12, 3);
        await slow.deliver();
        for (const {
          inFlight,
          delivered,
          size: [columns = 0, rows = 0],
          unheard,
          received,
        } of steps) {
          for (const one of inFlight) slow.frame(...one);
          await slow.deliver(delivered);
          slow.resize(columns, rows);
          for (const one of unheard) slow.frame(...one);
          await slow.deliver();
          slow.onEvent();
          slow.frame(0, 1);
          for (const one of received) slow.frame(...one);
          await slow.deliver();
        }
        const { numbers, drafts } = await slow.shown();
        expect(numbers).toEqual(slow.wanted());
        const isLate = steps.some(({ inFlight, unheard }) => inFlight.length + unheard.length > 0);
        if (!isLate) expect(drafts).toBe(1);
      }),
      { numRuns: 25, seed: 14 },
    );
  });
});

/** Characters that take no cell, or another number of cells in each terminal. */
const lonely = [
  ..."\u0300\u0301\u200b\u200c\u200d\u2060\u00ad\u0591\u05b0\ufe0f\u20e3\u1160\u0e31\u093e\u0903\u3164\u034f\u{e0061}",
  ..."\u{1f3fb}\u{1f1e9}\u{1d165}\u0600a א日",
];

/** Finished lines may be longer than the window; what the terminal wrapped is put together again. */
function joinWrapped(shown: readonly string[], wanted: readonly string[]): string[] {
  const left = [...shown];
  return wanted.map((text) => {
    let line = left.shift() ?? "";
    while (line.length < text.trimEnd().length && left.length > 0) line += left.shift() ?? "";
    return line;
  });
}

describe("wrapping", () => {
  test("breaks between words and never parts a style from the word it is in", () => {
    const cells = row("see ", span("file.ts", bold), ", which is long");
    expect(wrapRow(cells, 12).map(rowText)).toEqual(["see file.ts,", "which is", "long"]);
  });

  test("keeps to the width whatever the text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 4, max: 30 }), (text, width) => {
        for (const line of wrapRow(row(text), width, { first: row("- "), rest: row("  ") }))
          expect(rowWidth(line)).toBeLessThanOrEqual(width);
      }),
    );
  });
});
