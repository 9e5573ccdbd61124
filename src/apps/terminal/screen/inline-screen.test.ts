import { Terminal } from "@xterm/headless";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InlineScreen } from "./inline-screen.ts";
import { row, rowText, rowWidth, span } from "./row.ts";
import { bold, colours, createPalette } from "./style.ts";
import { wrapRow } from "./wrap-row.ts";

/** A terminal of 40 by 10 with five lines of a shell above the screen. */
function stage(columns = 40, rows = 10) {
  const terminal = new Terminal({ cols: columns, rows, scrollback: 300, allowProposedApi: true });
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
    palette: createPalette({ colours: true, background: "dark" }),
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

  test("a row that was live and is finished as it was is not written again", () => {
    const { screen, written } = stage();
    const answer = row("an answer that is complete now");
    screen.draw({ rows: [answer, row("> ")], cursor: { row: 1, column: 2 } });
    written.length = 0;
    screen.finish([answer]);
    screen.draw({ rows: [row("> ")], cursor: { row: 0, column: 2 } });
    expect(written.join("")).not.toContain("answer");
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
