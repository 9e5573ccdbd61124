import type { GrantedTool, ToolGrant } from "@retinue/config/tools/tool-grants.ts";
import { describe, expect, test } from "vitest";
import { continuePrompt, type EarlierRun, type SpawnRequest, withEarlier } from "./agent-request.ts";
import { callMode, keptGrant } from "./plan-rights.ts";

const request: SpawnRequest = { description: "d", prompt: "Continue.", resume: "a1", origin: "model" };
const grant = (tools: readonly GrantedTool[]): ToolGrant => ({
  type: "granted",
  tools,
  spawn: "none",
  exclusions: {},
  lost: [],
  notes: [],
});
const kept = (
  tools: readonly GrantedTool[],
  earlier: readonly GrantedTool[],
  asked: Partial<SpawnRequest> = {},
) => {
  const result = keptGrant(grant(tools), { ...request, ...asked }, { tools: earlier });
  return result.type === "granted" ? result.tools : [];
};

describe("[TRN-3] a resumed child has the tools of its first run, never more", () => {
  test.each<readonly [string, readonly GrantedTool[], readonly GrantedTool[], readonly GrantedTool[]]>([
    [
      "a tool that is new is left out",
      [{ name: "Read" }, { name: "Bash" }],
      [{ name: "Read" }],
      [{ name: "Read" }],
    ],
    [
      "a tool that is gone stays gone",
      [{ name: "Read" }],
      [{ name: "Read" }, { name: "Bash" }],
      [{ name: "Read" }],
    ],
    [
      "what it was confined to, it still is",
      [{ name: "Bash" }],
      [{ name: "Bash", allowOnly: ["git *"], deny: ["git push"] }],
      [{ name: "Bash", allowOnly: ["git *"], deny: ["git push"] }],
    ],
    [
      "today's confinement counts too",
      [{ name: "Bash", allowOnly: ["git *", "ls"], deny: ["git rm"] }],
      [{ name: "Bash", allowOnly: ["git *", "npm *"] }],
      [{ name: "Bash", allowOnly: ["git *"], deny: ["git rm"] }],
    ],
    [
      "nothing in common is nothing",
      [{ name: "Bash", allowOnly: ["ls"] }],
      [{ name: "Bash", allowOnly: ["git *"] }],
      [],
    ],
    [
      "confined to its memory then",
      [{ name: "Write" }],
      [{ name: "Write", confinedTo: "memory" }],
      [{ name: "Write", confinedTo: "memory" }],
    ],
  ])("%s", (_, now, then, expected) => {
    expect(kept(now, then)).toEqual(expected);
  });

  test("a program may say otherwise, a model not", () => {
    const now = [{ name: "Read" }, { name: "Bash" }];
    expect(kept(now, [{ name: "Read" }], { keepTools: false, origin: "program" })).toEqual(now);
    expect(kept(now, [{ name: "Read" }], { keepTools: false })).toEqual([{ name: "Read" }]);
  });

  test("without a plan of the first run nothing is taken away", () => {
    const now = [{ name: "Read" }];
    expect(keptGrant(grant(now), request, undefined)).toEqual(grant(now));
  });
});

describe("[TRN-3] what the call leaves open is as it was", () => {
  const earlier: EarlierRun = {
    name: "scout",
    isolation: "worktree",
    maxTurns: 7,
    effort: "low",
    callId: "t1",
  };

  test("name, place, turns and effort", () => {
    expect(withEarlier(request, { earlier })).toEqual({ ...request, ...earlier });
    expect(withEarlier({ ...request, maxTurns: 3 }, { earlier })).toMatchObject({
      maxTurns: 3,
      name: "scout",
    });
    expect(withEarlier(request, {})).toEqual(request);
  });

  test("one that never began is given its task, and behind it only a prompt other than the standard one", () => {
    const standard = { ...request, prompt: continuePrompt };
    expect(withEarlier(standard, { earlier: { unstartedPrompt: "Look around." } }).prompt).toBe(
      "Look around.",
    );
    expect(
      withEarlier({ ...request, prompt: "Hurry." }, { earlier: { unstartedPrompt: "Look around." } }).prompt,
    ).toBe("Look around.\n\nHurry.");
  });

  test("a mode of its own counts as a model's request; the call's goes before it", () => {
    expect(callMode({ origin: "program" }, { mode: "plan" })).toEqual({ mode: "plan", by: "model" });
    expect(callMode({ origin: "program", mode: "default" }, { mode: "plan" })).toEqual({
      mode: "default",
      by: "program",
    });
    expect(callMode({ origin: "model" }, undefined)).toBeUndefined();
  });
});
