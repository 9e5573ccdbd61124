import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ApprovalAnswer, ApprovalRequest } from "@retinue/gate/approver.ts";
import { createAskQueue } from "@retinue/gate/ask-queue.ts";
import { decide, type PermissionPolicy } from "@retinue/gate/decide.ts";
import { gatherCallFacts } from "@retinue/gate/gather-call-facts.ts";
import { createSessionApprovals, type SessionApprovals } from "@retinue/gate/grants/session-approvals.ts";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type AskPersonDependencies, createAskPerson } from "./ask-person.ts";

let work: string;
let outside: string;
let approvals: SessionApprovals;
beforeEach(() => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "ask-person-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  work = join(root, "work");
  outside = join(root, "other", "notes");
  approvals = createSessionApprovals();
});

const signal = new AbortController().signal;

/** A person who gives these answers in order, and what they were asked. */
function askWith(answers: readonly ApprovalAnswer[], changes: Partial<AskPersonDependencies> = {}) {
  const asked: ApprovalRequest[] = [];
  const reported: string[] = [];
  const saved: (readonly string[])[] = [];
  const policy: PermissionPolicy = {
    mode: "default",
    allow: [],
    ask: [],
    deny: [],
    workingDirectories: [work],
    home: "/home/ada",
    platform: "linux",
  };
  const person = createAskPerson({
    sessionId: "s1",
    queue: createAskQueue({
      approve: async (request) => {
        asked.push(request);
        return answers[asked.length - 1] ?? { type: "deny" };
      },
    }),
    approvals,
    path: [
      { id: "main", name: "main" },
      { id: "child", name: "writer" },
    ],
    policy,
    directory: work,
    saveRules: async (rules) => {
      saved.push(rules);
      return undefined;
    },
    notice: (message) => reported.push(message),
    ...changes,
  });
  const write = async (path: string, content = "x") => {
    const input = { file_path: path, content };
    const request = await gatherCallFacts(
      { tool: "Write", effect: "edit", input },
      { policy: person.policy(), directory: work },
    );
    const decision = decide(request, person.policy());
    if (decision.type === "allow") return { type: "allowed-by-policy" };
    return person.ask({ callId: "call", request, reason: decision.reason }, { signal });
  };
  return { write, asked, reported, saved };
}

describe("asking a person about a call", () => {
  it("shows the way to the agent, the exact call, the reason, and rules that would have allowed it", async () => {
    const { write, asked } = askWith([{ type: "allow", for: "call" }]);
    expect(await write(join(outside, "a.md"))).toEqual({ type: "allowed" });
    expect(asked).toEqual([
      {
        sessionId: "s1",
        agentId: "child",
        agentPath: [
          { id: "main", name: "main" },
          { id: "child", name: "writer" },
        ],
        callId: "call",
        tool: "Write",
        input: { file_path: join(outside, "a.md"), content: "x" },
        reason: expect.stringContaining("no allow rule matches"),
        suggestedRules: [`Edit(/${outside}/**)`],
      },
    ]);
  });

  it("asks again after an answer for one call", async () => {
    const { write, asked } = askWith([
      { type: "allow", for: "call" },
      { type: "deny", message: "not again" },
    ]);
    await write(join(outside, "a.md"));
    expect(await write(join(outside, "a.md"))).toEqual({
      type: "denied",
      reason: "the person refused it and says: not again",
      stops: false,
    });
    expect(asked).toHaveLength(2);
  });

  it.each([
    "agent",
    "session",
    "save",
  ] as const)("remembers an answer for the %s by its rules", async (holds) => {
    const { write, asked, saved } = askWith([{ type: "allow", for: holds }]);
    await write(join(outside, "a.md"));
    expect(await write(join(outside, "deep", "b.md"))).toEqual({ type: "allowed-by-policy" });
    expect(asked).toHaveLength(1);
    expect(approvals.rulesFor("main")).toHaveLength(holds === "agent" ? 0 : 1);
    expect(saved).toEqual(holds === "save" ? [[`Edit(/${outside}/**)`]] : []);
  });

  it("takes the person's own rules in place of the suggested ones", async () => {
    const { write } = askWith([
      { type: "allow", for: "session", rules: [`Edit(/${outside}/a.md)`] },
      { type: "deny" },
    ]);
    await write(join(outside, "a.md"));
    expect(await write(join(outside, "a.md"), "other")).toEqual({ type: "allowed-by-policy" });
    expect(await write(join(outside, "b.md"))).toMatchObject({ type: "denied" });
  });

  it("allows only the call, and says so, when a rule of the person cannot be read", async () => {
    const { write, reported } = askWith([{ type: "allow", for: "save", rules: ["Edit("] }, { type: "deny" }]);
    expect(await write(join(outside, "a.md"))).toEqual({ type: "allowed" });
    expect(reported).toEqual(["These are not valid rules, so only this call was allowed: Edit("]);
    expect(approvals.rulesFor("child")).toEqual([]);
  });

  it("suggests no rule for a file that always asks, and remembers only the very same call", async () => {
    const { write, asked } = askWith([{ type: "allow", for: "session" }, { type: "deny" }]);
    const file = join(work, ".claude", "settings.json");
    expect(await write(file, "{}")).toEqual({ type: "allowed" });
    expect(asked[0]?.suggestedRules).toEqual([]);
    expect(await write(file, "{}")).toEqual({ type: "allowed" });
    expect(asked).toHaveLength(1);
    expect(await write(file, '{"hooks": {}}')).toMatchObject({ type: "denied" });
  });

  it("shows that a rule was not saved, which holds for the session all the same", async () => {
    const { write, reported } = askWith([{ type: "allow", for: "save" }], {
      saveRules: async () => "the disk is full",
    });
    expect(await write(join(outside, "a.md"))).toEqual({ type: "allowed" });
    expect(reported).toEqual(["The rules apply to this session, but were not saved: the disk is full"]);
    expect(await write(join(outside, "b.md"))).toEqual({ type: "allowed-by-policy" });
  });

  it.each([undefined, "sesion"])("takes an answer for %j as one for this call alone", async (scope) => {
    const odd = { type: "allow", for: scope } as unknown as ApprovalAnswer;
    const { write, asked } = askWith([odd]);
    expect(await write(join(outside, "a.md"))).toEqual({ type: "allowed" });
    expect(await write(join(outside, "a.md"))).toMatchObject({ type: "denied" });
    expect(asked).toHaveLength(2);
  });

  it("passes on that the run should stop", async () => {
    const { write } = askWith([{ type: "deny-and-stop" }]);
    expect(await write(join(outside, "a.md"))).toEqual({
      type: "denied",
      reason: "the person refused it",
      stops: true,
    });
  });
});
