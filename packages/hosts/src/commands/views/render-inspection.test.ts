import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { createAgentFold } from "@retinue/core/inspection/agent-fold.ts";
import { inspectSession } from "@retinue/core/inspection/inspect-session.ts";
import type { Inspection } from "@retinue/core/inspection/inspection.ts";
import { describe, expect, test } from "vitest";
import { createPaint } from "../../shared/paint.ts";
import { widthOf } from "../../shared/strip-control-characters.ts";
import { renderInspection } from "./render-inspection.ts";

const start = Date.parse("2026-10-01T10:00:00.000Z");
const at = (seconds: number) => new Date(start + seconds * 1000).toISOString();

const asked = (seconds: number, text: string): JsonRecord => ({
  type: "user",
  uuid: `u${seconds}`,
  timestamp: at(seconds),
  cwd: "/srv/shop",
  gitBranch: "main",
  message: { role: "user", content: text },
});
const answered = (
  seconds: number,
  id: string,
  durationMs: number,
  content: readonly object[],
): JsonRecord => ({
  type: "assistant",
  uuid: id,
  timestamp: at(seconds),
  costUSD: 0.0125,
  durationMs,
  message: {
    id,
    model: "claude-opus-5",
    content,
    stop_reason: "end_turn",
    usage: { input_tokens: 1200, output_tokens: 300, cache_read_input_tokens: 45_000 },
  },
});
const called = (id: string, name: string, input: object) => ({ type: "tool_use", id, name, input });
const result = (seconds: number, id: string, toolCall: object, block: object = {}): JsonRecord => ({
  type: "user",
  uuid: `r${id}`,
  timestamp: at(seconds),
  toolCall,
  message: { content: [{ type: "tool_result", tool_use_id: id, content: "x", ...block }] },
});
const ended = (seconds: number): JsonRecord => ({
  type: "system",
  uuid: `e${seconds}`,
  timestamp: at(seconds),
  subtype: "turn_duration",
  runEnding: { status: "completed", reason: "end_turn" },
});

const main = [
  asked(0, "Review the shop"),
  answered(10, "m1", 9000, [called("c1", "Agent", { description: "look" })]),
  result(30, "c1", { startedAt: start + 11_000, durationMs: 19_000 }),
  answered(36, "m2", 6000, [called("c2", "Bash", { command: "git push" })]),
  result(
    38,
    "c2",
    {
      durationMs: 0,
      decidedMs: 2000,
      asked: true,
      denied: "Bash was not allowed: the rule Bash(git push) denies it.",
    },
    { is_error: true },
  ),
  answered(40, "m3", 2000, [{ type: "text", text: "Reviewed." }]),
  ended(40),
];
const child = [
  asked(11, "Look at it"),
  answered(20, "b1", 8000, [called("c3", "Grep", { pattern: "TODO" })]),
];

function inspection(
  changes: { readonly title?: string; readonly only?: string; readonly last?: readonly JsonRecord[] } = {},
): Inspection {
  const fold = (lines: readonly JsonRecord[]) => {
    const agent = createAgentFold();
    for (const line of lines) agent.add(line);
    return agent.result({ isLive: false, now: start });
  };
  return inspectSession(
    {
      id: "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00",
      title: changes.title ?? "Review the shop",
      file: "/x.jsonl",
      now: start,
      notes: [],
      agents: [
        { id: "main", folded: fold(main) },
        {
          id: "a0123456789abcdef",
          folded: fold([...child, ...(changes.last ?? [])]),
          known: { agentType: "Explore", description: "Look for what is left to do", toolUseId: "c1" },
        },
      ],
    },
    changes.only,
  );
}

const view = { paint: createPaint(false), width: 80, steps: false };

describe("[CLI-3] an inspection in a terminal", () => {
  test("shows the tree, the time, where money and time went, what was refused and what was in flight", () => {
    expect(renderInspection(inspection(), view)).toMatchInlineSnapshot(`
      "Review the shop
      3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00
        /srv/shop, branch main
        completed (end_turn)
        40.0 s: model 25.0 s, tools 19.0 s, neither 5.0 s (added up over agents)
        2 agents, 4 turns, 3 calls: 0 failed, 1 refused
        1 question, 0 retries, 0 compactions
        4.8k tokens in, 1.2k out, 180k cache read, 0 cache write
        $0.0500

      AGENT                        STATE        TIME    CALLS  TOKENS  COST
      main                         completed    40.0 s  2      140k    $0.0375
        a0123456789abcdef Explore  interrupted  9.0 s   1      47k     $0.0125
          Look for what is left to do

      TIMELINE  █ model  ▒ tool  x failed  ! refused  · neither
      main                  ·██████████████·▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒█████████!··███
       Explore                             ··████████████

      MODEL          TURNS  TIME    IN    OUT   READ  WRITE  COST
      claude-opus-5  4      25.0 s  4.8k  1.2k  180k  0      $0.0500

      TOOL   CALLS  TIME    FAILED  REFUSED  AGENTS' COST
      Agent  1      19.0 s  0       0        $0.0125
      Bash   1      0 ms    0       1
      Grep   1      0 ms    0       0

      REFUSED
      main: Bash git push: Bash was not allowed: the rule Bash(git push) denies it.

      IN FLIGHT
      a0123456789abcdef: Grep TODO when it was cut off
      "
    `);
  });

  test("of one agent also shows every step and its last words", () => {
    const text = renderInspection(inspection({ only: "a0123456789abcdef" }), view);
    expect(text.slice(text.indexOf("STEPS OF"))).toMatchInlineSnapshot(`
      "STEPS OF a0123456789abcdef (Explore)
         0:00            asked          Look at it
         0:01     8.0 s  model          claude-opus-5, 46k in, 300 out, $0.0125
         0:09            Grep           TODO interrupted
      "
    `);
    const all = renderInspection(inspection(), { ...view, steps: true });
    expect(all.match(/^STEPS OF .*$/gm)).toEqual(["STEPS OF main", "STEPS OF a0123456789abcdef (Explore)"]);
    expect(all).toContain("LAST MESSAGE\n  Reviewed.");
  });

  test("shows what its checks came to, with the last lines of those that failed [VRF-2]", () => {
    const receipt = {
      status: "failed-check",
      checks: [
        { kind: "command", run: "npm run lint", passed: true, exitCode: 0, durationMs: 900, output: "fine" },
        {
          kind: "command",
          run: "npm test",
          passed: false,
          exitCode: 1,
          durationMs: 2100,
          output: "one\ntwo\n3 failed",
        },
      ],
      tree: { kind: "git", digest: "4b825dc642cb6eb9a060e54bf8d69288fbee4904" },
      retries: 2,
      changedFiles: ["a.ts", "b.ts"],
      notes: ["Files were edited and no test was run."],
    };
    const ending = { ...ended(21), runEnding: { status: "completed", reason: "end_turn", receipt } };
    const text = renderInspection(inspection({ only: "a0123456789abcdef", last: [ending] }), view);
    expect(text.slice(text.indexOf("CHECKS"))).toMatchInlineSnapshot(`
      "CHECKS
        failed-check on tree 4b825dc642cb, 2 failed rounds given back
        passed  npm run lint (900 ms)
        failed  npm test (2.1 s; exit code 1)
                  one
                  two
                  3 failed
        changed a.ts, b.ts
        Files were edited and no test was run.
      "
    `);
  });

  test.each([60, 80, 120])("fits %d columns, whatever the texts are", (width) => {
    const title = `\u001b[31m${"wide 漢字 ".repeat(40)}\u202e`;
    const text = renderInspection(inspection({ title }), { ...view, width, steps: true });
    expect(text.split("\n").filter((line) => widthOf(line) > width)).toEqual([]);
    expect(text).not.toMatch(/[\u001b\u202e]/);
  });

  test("is coloured only where that is allowed", () => {
    expect(renderInspection(inspection(), { ...view, paint: createPaint(true) })).toContain("\u001b[");
    expect(renderInspection(inspection(), view)).not.toContain("\u001b[");
  });
});
