import { execFileSync } from "node:child_process";
import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { keys, openConversation, type PtyStage, pasted, userTexts } from "./pty-stage.ts";

const forever = new Promise<string>(() => undefined);

/** Whether what was switched on has been switched off again. */
function modesLeft(pty: PtyStage): readonly string[] {
  const bytes = pty.bytes();
  const last = (on: string, off: string): boolean => bytes.lastIndexOf(on) > bytes.lastIndexOf(off);
  return [
    ...(last("\u001b[?2004h", "\u001b[?2004l") ? ["bracketed paste"] : []),
    ...(last("\u001b[?25l", "\u001b[?25h") ? ["hidden cursor"] : []),
    ...(last("\u001b[?1049h", "\u001b[?1049l") ? ["alternate screen"] : []),
    ...(last("\u001b[?2026h", "\u001b[?2026l") ? ["synchronized output"] : []),
    ...(bytes.split("\u001b[>1u").length > bytes.split("\u001b[<u").length ? ["kitty keys"] : []),
    ...(last("\u001b[>4;1m", "\u001b[>4;0m") ? ["modifyOtherKeys"] : []),
  ];
}

/** Processes that carry the home folder of the test in their environment. */
function processesOf(home: string): readonly string[] {
  const listing = execFileSync("ps", ["axeww"], { encoding: "utf8" });
  return listing.split("\n").filter((line) => line.includes(home));
}

/** Ends the command by a signal and looks at what is left. */
async function expectClean(
  pty: PtyStage,
  { home, signal, code }: { readonly home: string; readonly signal: string; readonly code: number },
): Promise<void> {
  process.kill(pty.pid, signal);
  expect(await pty.exited).toEqual({ code });
  expect(modesLeft(pty)).toEqual([]);
  expect((await pty.all()).at(-1)).toContain("Continue: retinue --resume");
  await expect.poll(() => processesOf(home)).toEqual([]);
}

describe("the terminal is given back", () => {
  test("after SIGINT while an agent works, and the session can continue [CLI-4, CLI-8]", async () => {
    const { pty, place } = await openConversation([() => forever], { words: ["wait for it"] });
    await pty.shows("Working");
    await expectClean(pty, { home: place.home, signal: "SIGINT", code: 130 });
  });

  test("after SIGQUIT, as after the other signals that ask for the end [CLI-4, CLI-8]", async () => {
    const { pty, place } = await openConversation([() => forever], { words: ["wait for it"] });
    await pty.shows("Working");
    await expectClean(pty, { home: place.home, signal: "SIGQUIT", code: 131 });
  });

  test.each([
    "SIGALRM",
    "SIGXCPU",
    "SIGABRT",
  ])("after %s, which ends the process as it would without us [CLI-4]", async (signal) => {
    const { pty } = await openConversation([() => forever], { words: ["wait for it"] });
    await pty.shows("Working");
    process.kill(pty.pid, signal);
    expect(await pty.exited).not.toEqual({ code: 0 });
    expect(modesLeft(pty)).toEqual([]);
  });

  test("after a crash in the middle of an answer, from the alternate screen too [CLI-4]", async () => {
    const crash = `process.on("SIGUSR2", () => { throw new Error("crashed on purpose"); });`;
    const { pty } = await openConversation([() => forever], {
      words: ["wait for it"],
      environment: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(crash)}` },
    });
    await pty.shows("Working");
    pty.type(keys.ctrlO);
    await pty.shows("Conversation");
    process.kill(pty.pid, "SIGUSR2");
    expect(await pty.exited).toEqual({ code: 1 });
    expect(modesLeft(pty)).toEqual([]);
    const screen = (await pty.all()).join("\n");
    expect(screen).toContain("crashed on purpose");
    expect(screen).not.toContain("    at ");
  });
});

test("ctrl+z gives the terminal to the shell, also at rest, and fg comes back to the draft [CLI-4]", async () => {
  const { pty } = await openConversation(["Answered."], {
    shell: 'set -m; "$@"; echo "stopped with $?"; fg >/dev/null; echo "ended with $?"',
  });
  await pty.shows("default");
  pty.type("half a draft");
  await pty.shows("> half a draft");
  pty.type("\u001a");
  await pty.hasShown("stopped with 148");
  await pty.shows("> half a draft", "default");
  pty.type(`, whole now${keys.enter}`);
  await pty.shows("> half a draft, whole now", "Answered.");
  pty.type(keys.ctrlD);
  await pty.exited;
  expect(modesLeft(pty)).toEqual([]);
  expect((await pty.all()).at(-1)).toBe("ended with 0");
});

test("finished text is in the scrollback once and in order, through resizes while it streams; a paste of 10,000 lines leaves the keys alive [CLI-4]", async () => {
  const lines = Array.from({ length: 300 }, (_, at) => `line number ${at} of the long answer`);
  const { pty } = await openConversation([lines.join("\n\n")], {
    words: ["write a lot"],
    provider: { deltaDelayMs: 1, deltaSize: 40 },
    rows: 24,
  });
  await pty.hasShown("line number 40 ");
  pty.resizeBetweenFrames(45, 24);
  await pty.shows(`\n${"─".repeat(44)}\n`);
  pty.resizeBetweenFrames(140, 30);
  await pty.shows("line number 299");
  await pty.isMissing("Working");
  await pty.shows(`\n${"─".repeat(139)}\n`);
  const all = await pty.all();
  const numbers = all.flatMap((line) => /^line number (\d+) of/.exec(line)?.[1] ?? []).map(Number);
  expect(numbers).toEqual(lines.map((_, at) => at));
  expect(pty.bytes()).not.toMatch(/\u001b\[[23]J/);
  pty.type(pasted(Array.from({ length: 10_000 }, (_, at) => `line ${at}`).join("\n")));
  pty.type("and more");
  await pty.shows("> [pasted #1: 10,000 lines]and more");
});

test("bursts of resizes while an answer streams double and lose no line, and leave one prompt [CLI-4]", async () => {
  const lines = Array.from({ length: 240 }, (_, at) => `line number ${at} of the long answer`);
  const { pty } = await openConversation([lines.join("\n\n")], {
    words: ["write a lot"],
    provider: { deltaDelayMs: 1, deltaSize: 40 },
    rows: 24,
  });
  const bursts: readonly (readonly (readonly [number, number])[])[] = [
    [
      [90, 24],
      [80, 22],
      [70, 20],
      [60, 18],
      [50, 16],
    ],
    [
      [55, 18],
      [70, 24],
      [100, 30],
      [140, 36],
    ],
    [
      [60, 36],
      [130, 36],
      [61, 12],
      [120, 30],
    ],
    [
      [45, 24],
      [101, 24],
      [46, 24],
      [102, 24],
      [47, 24],
      [100, 24],
    ],
  ];
  for (const [at, burst] of bursts.entries()) {
    await pty.hasShown(`line number ${10 + at * 40} `);
    for (const [columns, rows] of burst) {
      pty.resizeBetweenFrames(columns, rows);
      await setImmediate();
    }
    await pty.shows(`\n${"─".repeat((burst.at(-1)?.[0] ?? 0) - 1)}\n`);
  }
  await pty.shows("line number 239");
  await pty.isMissing("Working");
  await pty.shows(`\n${"─".repeat(99)}\n`);
  const all = await pty.all();
  const numbers = all.flatMap((line) => /^line number (\d+) of/.exec(line)?.[1] ?? []).map(Number);
  expect(numbers).toEqual(lines.map((_, at) => at));
  const below = all.slice(all.indexOf("> write a lot") + 1);
  expect(below.filter((line) => line !== "" && !line.startsWith("line number"))).toEqual([
    "─".repeat(99),
    ">",
    expect.stringContaining("? keys"),
  ]);
  expect(pty.bytes()).not.toMatch(/\u001b\[[23]J/);
});

test("in a multiplexer, which tells of a resize long after it, no line is doubled or lost while an answer streams [CLI-4]", async () => {
  const lines = Array.from({ length: 240 }, (_, at) => `line number ${at} of the long answer`);
  const { pty } = await openConversation([lines.join("\n\n")], {
    words: ["write a lot"],
    provider: { deltaDelayMs: 1, deltaSize: 40 },
    rows: 24,
    environment: { TMUX: "/tmp/tmux,1,0" },
  });
  const widths = [60, 45, 90, 30, 70, 120, 50];
  for (const [at, columns] of widths.entries()) {
    await pty.hasShown(`line number ${20 + at * 25} `);
    pty.resizeUntold(columns, 24);
    // A key brings a frame also where the answer has ended by now.
    pty.type("x");
    await pty.shows(`\n${"─".repeat(columns - 1)}\n`);
  }
  await pty.shows("line number 239");
  await pty.isMissing("Working");
  const numbers = (await pty.all()).flatMap((line) => /^line number (\d+)/.exec(line)?.[1] ?? []).map(Number);
  expect(numbers).toEqual(lines.map((_, at) => at));
  pty.type(keys.ctrlC);
  await pty.isMissing("> xxx");
  pty.type(keys.ctrlD);
  await pty.exited;
  // What the terminal answers last is read by the command, not by the shell after it.
  expect((await pty.all()).slice(-3).join("")).toMatch(/Continue: retinue --resume [\w-]+$/);
});

test("in a multiplexer the size is asked for once a frame: not again and again while nothing happens [CLI-4]", async () => {
  const { pty } = await openConversation([], { environment: { TMUX: "/tmp/tmux,1,0" } });
  await pty.shows("default");
  const asked = (): number => pty.bytes().split("\u001b[6n").length;
  const before = asked();
  const text = "thirty keys, one after another";
  for (const [at, key] of Array.from(text).entries()) {
    pty.type(key);
    await pty.shows(`> ${text.slice(0, at + 1)}`.trimEnd());
  }
  // A frame for each key, and a few for what is read meanwhile.
  expect(asked() - before).toBeLessThan(text.length * 1.5);
});

test("the live part is erased without clearing it from its first cell, which tmux keeps as history [CLI-4]", async () => {
  const { pty } = await openConversation(["Answered."], { words: ["go on"] });
  await pty.shows("Answered.", "default");
  await pty.isMissing("esc to interrupt");
  pty.type(keys.ctrlD);
  await pty.exited;
  expect(pty.bytes()).toContain("\u001b[J");
  // The cursor is never in the first column when what is below it is erased.
  expect(
    pty
      .bytes()
      .split("\u001b[J")
      .slice(0, -1)
      .filter((before) => !before.endsWith("\u001b[C")),
  ).toEqual([]);
});

test("a paste that is larger than the window is refused with its size, and the conversation goes on [CLI-4, CMP-4]", async () => {
  const { pty, provider } = await openConversation(["Fine."], { words: ["--model", "claude-haiku-4-5"] });
  pty.type(pasted("HUGE line\n".repeat(110_000)));
  await pty.shows("[pasted #1: 110,001 lines]");
  pty.type(keys.enter);
  await pty.shows("too large for", "1.1 MB");
  pty.type("a small one");
  pty.type(keys.enter);
  await pty.shows("Fine.");
  expect(provider.requests).toHaveLength(1);
  expect(userTexts(provider)).not.toContain("HUGE");
});

test("NO_COLOR leaves no colours, what a model says reaches the terminal without control sequences, and SIGHUP leaves it clean [CLI-4, CLI-6]", async () => {
  const hostile = "ok \u001b]52;c;cm0=\u0007\u001b[2J\u009b31m \u202eevil";
  const { pty, place } = await openConversation(
    [{ text: hostile, calls: [{ name: "Bash", input: { command: `echo '${hostile}'` } }] }, "Over."],
    { words: ["be evil"], environment: { NO_COLOR: "1" } },
  );
  await pty.shows("asks to use Bash");
  expect(pty.bytes()).not.toMatch(/\u001b\]|\u009b|\u202e|\u001b\[2J|\u001b\[(?:[\d;]*;)?[39]\dm/);
  await expectClean(pty, { home: place.home, signal: "SIGHUP", code: 129 });
});

test("narrow windows keep the name and what an agent does, and SIGTERM leaves them clean [CLI-4, CLI-8]", async () => {
  const { pty, place } = await openConversation(
    [
      { match: "child task", times: "any", respond: () => forever },
      {
        calls: [
          {
            name: "Agent",
            input: { description: "look around", prompt: "child task", subagent_type: "general-purpose" },
          },
        ],
      },
    ],
    { words: ["start one"], columns: 40, rows: 20 },
  );
  await pty.shows("general-purpose", "thinking", "1 agent");
  for (const line of await pty.screen()) expect(line.length).toBeLessThanOrEqual(40);
  pty.resize(100, 20);
  await pty.shows("─".repeat(99));
  await expectClean(pty, { home: place.home, signal: "SIGTERM", code: 143 });
});
