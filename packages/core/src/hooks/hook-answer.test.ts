import { type FiredEvent, firedHookEvents } from "@retinue/config/hooks/hook-input.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  cutTexts,
  type HookAnswer,
  readAnswer,
  readCommandOutput,
  readModelAnswer,
  readPrinted,
} from "./hook-answer.ts";

const quiet = { stdout: "", stderr: "", truncated: false };

function answerOf(
  event: FiredEvent,
  output: { exitCode: number; stdout?: string; stderr?: string },
): HookAnswer {
  const reading = readCommandOutput(event, { ...quiet, ...output });
  if (reading.type === "failed") throw new Error(`unexpected failure: ${reading.reason}`);
  return reading.answer;
}

const specific = (event: string, fields: object) =>
  JSON.stringify({ hookSpecificOutput: { hookEventName: event, ...fields } });

describe("[HKS-6] exit codes", () => {
  test.each<[FiredEvent, HookAnswer]>([
    ["PreToolUse", { verdict: "deny", reason: "not here" }],
    ["PermissionRequest", { verdict: "deny", reason: "not here" }],
    ["PostToolUse", { blocks: true, reason: "not here" }],
    ["PostToolUseFailure", { blocks: true, reason: "not here" }],
    ["UserPromptSubmit", { blocks: true, reason: "not here" }],
    ["Stop", { blocks: true, reason: "not here" }],
    ["SubagentStop", { blocks: true, reason: "not here" }],
    ["PreCompact", { blocks: true, reason: "not here" }],
    ["SessionStart", { systemMessage: "not here" }],
    ["SessionEnd", { systemMessage: "not here" }],
    ["SubagentStart", { systemMessage: "not here" }],
    ["PostCompact", { systemMessage: "not here" }],
    ["Notification", {}],
  ])("exit 2 of %s means what it can mean there", (event, expected) => {
    expect(answerOf(event, { exitCode: 2, stderr: "not here\n" })).toEqual(expected);
  });

  test("exit 2 takes the reason of JSON that blocks, and no JSON can undo it", () => {
    const denies = specific("PreToolUse", {
      permissionDecision: "deny",
      permissionDecisionReason: "by policy",
    });
    const allows = specific("PreToolUse", { permissionDecision: "allow" });
    expect(answerOf("PreToolUse", { exitCode: 2, stdout: denies, stderr: "noise" })).toEqual({
      verdict: "deny",
      reason: "by policy",
    });
    expect(answerOf("PreToolUse", { exitCode: 2, stdout: allows, stderr: "no" })).toEqual({
      verdict: "deny",
      reason: "no",
    });
    expect(answerOf("PreToolUse", { exitCode: 2 })).toEqual({
      verdict: "deny",
      reason: "the hook gave no reason",
    });
  });

  test("exit 0 without output continues", () => {
    for (const event of firedHookEvents) expect(answerOf(event, { exitCode: 0 })).toEqual({});
  });

  test("plain text is context only at events whose text reaches the model", () => {
    for (const event of firedHookEvents) {
      const expected = ["UserPromptSubmit", "SessionStart", "PreCompact"].includes(event)
        ? { context: "hello" }
        : {};
      expect(answerOf(event, { exitCode: 0, stdout: "hello\n" }), event).toEqual(expected);
    }
  });

  test.each([1, 3, 126, 127, 255])("exit %s is a failure that says what was printed", (exitCode) => {
    expect(readCommandOutput("PreToolUse", { ...quiet, exitCode, stderr: "python: not found\n" })).toEqual({
      type: "failed",
      reason: `it ended with code ${exitCode}: "python: not found"`,
    });
  });

  test("with another exit JSON may deny a call but never allow it", () => {
    const allows = specific("PreToolUse", { permissionDecision: "allow" });
    const denies = specific("PreToolUse", { permissionDecision: "deny", permissionDecisionReason: "no" });
    expect(readCommandOutput("PreToolUse", { ...quiet, exitCode: 1, stdout: allows }).type).toBe("failed");
    expect(answerOf("PreToolUse", { exitCode: 1, stdout: denies })).toEqual({
      verdict: "deny",
      reason: "no",
    });
    expect(answerOf("Stop", { exitCode: 1, stdout: '{"decision":"block","reason":"tests fail"}' })).toEqual({
      blocks: true,
      reason: "tests fail",
    });
  });
});

describe("[HKS-6] JSON on stdout", () => {
  test.each<[string, FiredEvent, object, HookAnswer]>([
    [
      "a decision about a call",
      "PreToolUse",
      { hookSpecificOutput: { permissionDecision: "allow", permissionDecisionReason: "known" } },
      { verdict: "allow", reason: "known" },
    ],
    ["asking", "PreToolUse", { hookSpecificOutput: { permissionDecision: "ask" } }, { verdict: "ask" }],
    [
      "deferring, as asking",
      "PreToolUse",
      { hookSpecificOutput: { permissionDecision: "defer" } },
      { verdict: "ask" },
    ],
    ["the old approval", "PreToolUse", { decision: "approve" }, { verdict: "allow" }],
    ["the old block", "PreToolUse", { decision: "block", reason: "no" }, { verdict: "deny", reason: "no" }],
    [
      "the new decision over the old",
      "PreToolUse",
      { decision: "approve", hookSpecificOutput: { permissionDecision: "deny" } },
      { verdict: "deny", reason: "the hook gave no reason" },
    ],
    [
      "a changed input",
      "PreToolUse",
      { hookSpecificOutput: { updatedInput: { command: "ls" } } },
      { updatedInput: { command: "ls" } },
    ],
    ["no changed input elsewhere", "Stop", { hookSpecificOutput: { updatedInput: { command: "ls" } } }, {}],
    [
      "context",
      "PostToolUse",
      { hookSpecificOutput: { additionalContext: "see the log" } },
      { context: "see the log" },
    ],
    [
      "a block after a call",
      "PostToolUse",
      { decision: "block", reason: "lint" },
      { blocks: true, reason: "lint" },
    ],
    [
      "a changed output",
      "PostToolUse",
      { hookSpecificOutput: { updatedToolOutput: { a: 1 } } },
      { updatedOutput: '{"a":1}' },
    ],
    [
      "the end of the run",
      "PreToolUse",
      { continue: false, stopReason: "enough", systemMessage: "Ended." },
      { stop: "enough", systemMessage: "Ended." },
    ],
    [
      "a granted permission",
      "PermissionRequest",
      { hookSpecificOutput: { decision: { behavior: "allow", updatedInput: { a: 1 } } } },
      { verdict: "allow", updatedInput: { a: 1 } },
    ],
    [
      "a refused permission that ends the run",
      "PermissionRequest",
      { hookSpecificOutput: { decision: { behavior: "deny", message: "no", interrupt: true } } },
      { verdict: "deny", reason: "no", stop: "no" },
    ],
    ["keys it does not recognize", "Stop", { suppressOutput: true, somethingElse: [1] }, {}],
  ])("can say %s", (_title, event, value, expected) => {
    expect(readAnswer(event, value)).toEqual({ type: "answer", answer: expected });
  });

  test.each<[string, FiredEvent, unknown]>([
    ["a word that is no decision", "PreToolUse", { hookSpecificOutput: { permissionDecision: "yes" } }],
    ["another event's answer", "PreToolUse", { hookSpecificOutput: { hookEventName: "PostToolUse" } }],
    ["an input that is no object", "PreToolUse", { hookSpecificOutput: { updatedInput: "rm" } }],
    ["a reason that is no text", "PreToolUse", { decision: "block", reason: { why: 1 } }],
    ["a list", "PreToolUse", []],
    ["a continue that is no boolean", "PreToolUse", { continue: "false" }],
    ["a specific part that is no object", "PreToolUse", { hookSpecificOutput: "deny" }],
    ["a permission without a behaviour", "PermissionRequest", { hookSpecificOutput: { decision: {} } }],
  ])("fails on %s rather than leaving it out", (_title, event, value) => {
    expect(readAnswer(event, value).type).toBe("failed");
  });

  test("half JSON is a failure, and so is a flood", () => {
    expect(readPrinted("PreToolUse", '{"decision": "bl', false)).toEqual({
      type: "failed",
      reason: 'it printed JSON that is not complete: "{\\"decision\\": \\"bl"',
    });
    expect(readPrinted("Stop", "y\n".repeat(5), true)).toMatchObject({ type: "failed" });
  });

  test("nothing that a hook can print makes the reader throw", () => {
    const events = fc.constantFrom(...firedHookEvents);
    const code = fc.integer({ min: 0, max: 255 });
    const keys = fc.constantFrom("decision", "reason", "continue", "hookSpecificOutput", "__proto__", "x");
    const printed = fc.oneof(
      fc.string(),
      fc.json(),
      fc.dictionary(keys, fc.jsonValue()).map((v) => JSON.stringify(v)),
    );
    fc.assert(
      fc.property(events, code, printed, fc.string(), (event, exitCode, stdout, stderr) => {
        const reading = readCommandOutput(event, { exitCode, stdout, stderr, truncated: false });
        if (exitCode === 2 && event === "PreToolUse") {
          expect(reading).toMatchObject({ type: "answer", answer: { verdict: "deny" } });
        }
      }),
    );
  });
});

describe("[HKS-7] the answer of a model", () => {
  test.each<[string, HookAnswer | "failed"]>([
    ['{"ok": true}', {}],
    ['Sure:\n```json\n{"ok": true}\n```', {}],
    ['{"ok": false, "reason": "it deletes"}', { verdict: "deny", reason: "it deletes" }],
    ['{"ok": false}', { verdict: "deny", reason: "the model gave no reason" }],
    ['{"decision": "block", "reason": "no"}', { verdict: "deny", reason: "no" }],
    ['{"decision": "approve"}', {}],
    ["I think it is fine.", "failed"],
    ['{"ok": "yes"}', "failed"],
    ["{", "failed"],
    ["", "failed"],
  ])("%s", (text, expected) => {
    const reading = readModelAnswer("PreToolUse", text);
    expect(reading.type === "failed" ? "failed" : reading.answer).toEqual(expected);
  });
});

describe("a text that is too long", () => {
  test("is cut at 10,000 characters, and its whole has a file", () => {
    const { answer, files } = cutTexts(
      { context: "x".repeat(25_000), reason: "short" },
      (field) => `/o/${field}`,
    );
    expect(answer.reason).toBe("short");
    expect(answer.context).toHaveLength(
      10_000 + "\n… (cut at 10000 of 25000 characters; all of it is in /o/context)".length,
    );
    expect(files).toEqual([{ file: "/o/context", text: "x".repeat(25_000) }]);
  });

  test("says so where nothing can be kept, and never parts a character", () => {
    const { answer, files } = cutTexts({ stop: `${"x".repeat(9_999)}😀${"x".repeat(50)}` }, () => undefined);
    expect(files).toEqual([]);
    expect(answer.stop).toMatch(/^x{9999}\n… \(cut at 10000 of 10051 characters; the rest was dropped\)$/);
  });
});

describe("a decision in the wrong place is never taken for silence", () => {
  const said = (event: "PreToolUse" | "PermissionRequest" | "UserPromptSubmit", stdout: string) => {
    const reading = readCommandOutput(event, { exitCode: 0, stdout, stderr: "", truncated: false });
    return reading.type === "failed"
      ? "failed"
      : (reading.answer.verdict ?? reading.answer.blocks ?? "nothing");
  };

  test.each<["PreToolUse" | "PermissionRequest" | "UserPromptSubmit", unknown, unknown]>([
    ["PreToolUse", { permissionDecision: "deny" }, "deny"],
    ["PreToolUse", { permissionDecision: "ask" }, "ask"],
    ["PreToolUse", { permissionDecision: "allow" }, "nothing"],
    ["PreToolUse", { permissionDecision: "no" }, "failed"],
    ["PreToolUse", { decison: "block" }, "failed"],
    ["PreToolUse", { hookSpecificOutput: { permissiondecision: "deny" } }, "failed"],
    ["PreToolUse", { suppressOutput: true, reason: "fine", custom: 1 }, "nothing"],
    ["PreToolUse", { hookSpecificOutput: { decision: "block" } }, "deny"],
    ["PreToolUse", { behavior: "deny" }, "deny"],
    ["PreToolUse", [{ decision: "block" }], "failed"],
    ["PermissionRequest", { behavior: "deny" }, "deny"],
    ["PermissionRequest", { decision: { behavior: "deny" } }, "failed"],
    ["PermissionRequest", { hookSpecificOutput: { permissionDecision: "deny" } }, "deny"],
    ["UserPromptSubmit", { permissionDecision: "deny" }, true],
    ["UserPromptSubmit", [{ decision: "block" }], "failed"],
    ["UserPromptSubmit", ["a", "list"], "nothing"],
  ])("%s: %j is %j [HKS-6]", (event, printed, expected) => {
    expect(said(event, JSON.stringify(printed))).toBe(expected);
  });

  test("after other text it is a failure, and text in brackets is text [HKS-6]", () => {
    expect(said("PreToolUse", 'loading profile\n{"decision": "block"}')).toBe("failed");
    expect(said("PreToolUse", "[guard] looked at it")).toBe("nothing");
  });
});
