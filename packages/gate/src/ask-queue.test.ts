import { describe, expect, it } from "vitest";
import { type ApprovalAnswer, type ApprovalRequest, type Approver, describeAskingPath } from "./approver.ts";
import { createAskQueue } from "./ask-queue.ts";

const requestOf = (agent: string, callId: string): ApprovalRequest => ({
  sessionId: "s1",
  agentId: agent,
  agentPath: [
    { id: "main", name: "main" },
    { id: agent, name: agent },
  ],
  callId,
  tool: "Bash",
  input: { command: "git push" },
  reason: "no allow rule matches",
  suggestedRules: [],
});

/** An approver that keeps each question open until the test answers it. */
function heldApprover() {
  const asked: { readonly callId: string; readonly answer: (answer: ApprovalAnswer) => void }[] = [];
  const approver: Approver = {
    approve: ({ callId }) =>
      new Promise((resolve) => {
        asked.push({ callId, answer: resolve });
      }),
  };
  return { approver, asked, ids: () => asked.map(({ callId }) => callId) };
}

const once: ApprovalAnswer = { type: "allow", for: "call" };
const never = new AbortController().signal;
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("the queue of questions", () => {
  it("asks one question at a time over all agents", async () => {
    const held = heldApprover();
    const queue = createAskQueue(held.approver);
    const answers = ["a", "b", "c"].map((agent) => queue.ask(requestOf(agent, agent), { signal: never }));
    await settle();
    expect(held.ids()).toEqual(["a"]);
    expect(queue.waiting()).toBe(2);
    held.asked[0]?.answer(once);
    await answers[0];
    await settle();
    expect(held.ids()).toEqual(["a", "b"]);
    held.asked[1]?.answer({ type: "deny", message: "no" });
    expect(await answers[1]).toEqual({ type: "deny", message: "no" });
    await settle();
    held.asked[2]?.answer(once);
    expect(await answers[2]).toEqual(once);
  });

  it("lets another agent go first before the same one is asked again, and forgets no agent", async () => {
    const held = heldApprover();
    const queue = createAskQueue(held.approver);
    const calls = [
      ["a", "a1"],
      ["a", "a2"],
      ["a", "a3"],
      ["b", "b1"],
      ["c", "c1"],
    ] as const;
    const all = calls.map(([agent, id]) => queue.ask(requestOf(agent, id), { signal: never }));
    for (let at = 0; at < calls.length; at += 1) {
      await settle();
      held.asked[at]?.answer(once);
    }
    await Promise.all(all);
    expect(held.ids()).toEqual(["a1", "b1", "a2", "c1", "a3"]);
  });

  it("takes a question back when its run is stopped while it waits, and asks the next", async () => {
    const held = heldApprover();
    const queue = createAskQueue(held.approver);
    const stop = new AbortController();
    const first = queue.ask(requestOf("a", "a"), { signal: never });
    const second = queue.ask(requestOf("b", "b"), { signal: stop.signal });
    const third = queue.ask(requestOf("c", "c"), { signal: never });
    stop.abort(new Error("stopped"));
    await expect(second).rejects.toThrow("stopped");
    await settle();
    held.asked[0]?.answer(once);
    await first;
    await settle();
    expect(held.ids()).toEqual(["a", "c"]);
    held.asked[1]?.answer(once);
    expect(await third).toEqual(once);
  });

  it("ends an open question with its run although the approver never answers", async () => {
    const held = heldApprover();
    const queue = createAskQueue(held.approver);
    const stop = new AbortController();
    const first = queue.ask(requestOf("a", "a"), { signal: stop.signal });
    const second = queue.ask(requestOf("b", "b"), { signal: never });
    await settle();
    stop.abort(new Error("stopped"));
    await expect(first).rejects.toThrow("stopped");
    await settle();
    held.asked[1]?.answer(once);
    expect(await second).toEqual(once);
  });

  it("does not ask what an answer before it has settled", async () => {
    const held = heldApprover();
    const queue = createAskQueue(held.approver);
    let granted = false;
    const answered = () => (granted ? once : undefined);
    const first = queue.ask(requestOf("a", "a"), { signal: never, answered });
    const second = queue.ask(requestOf("b", "b"), { signal: never, answered });
    await settle();
    granted = true;
    held.asked[0]?.answer({ type: "allow", for: "session" });
    await first;
    expect(await second).toEqual(once);
    expect(held.ids()).toEqual(["a"]);
  });

  it("continues after an approver that failed", async () => {
    let calls = 0;
    const queue = createAskQueue({
      approve: async () => {
        calls += 1;
        if (calls === 1) throw new Error("the window is gone");
        return once;
      },
    });
    const first = queue.ask(requestOf("a", "a"), { signal: never });
    const second = queue.ask(requestOf("b", "b"), { signal: never });
    await expect(first).rejects.toThrow("the window is gone");
    expect(await second).toEqual(once);
  });

  it("asks no question for a run that is stopped already", async () => {
    const held = heldApprover();
    const queue = createAskQueue(held.approver);
    await expect(queue.ask(requestOf("a", "a"), { signal: AbortSignal.abort() })).rejects.toThrow();
    expect(held.ids()).toEqual([]);
  });

  it("puts all questions at the same time to an approver that takes several, and withdraws what another answer settled", async () => {
    const held = heldApprover();
    const withdrawn: string[] = [];
    const queue = createAskQueue({
      isConcurrent: true,
      approve(request, { signal }) {
        signal.addEventListener("abort", () => withdrawn.push(request.callId));
        return held.approver.approve(request, { signal });
      },
    });
    let granted: ApprovalAnswer | undefined;
    const answers = ["a", "b", "c"].map((agent) =>
      queue.ask(requestOf(agent, agent), {
        signal: never,
        answered: () => (agent === "c" ? undefined : granted),
      }),
    );
    await settle();
    expect(held.ids()).toEqual(["a", "b", "c"]);
    held.asked[0]?.answer({ type: "allow", for: "session" });
    expect(await answers[0]).toEqual({ type: "allow", for: "session" });
    granted = once;
    queue.recheck();
    expect(await answers[1]).toEqual(once);
    expect(withdrawn).toEqual(["b"]);
    held.asked[2]?.answer({ type: "deny" });
    expect(await answers[2]).toEqual({ type: "deny" });
  });

  it("ends a question of several when its run is stopped", async () => {
    const held = heldApprover();
    const queue = createAskQueue({ ...held.approver, isConcurrent: true });
    const stop = new AbortController();
    const answer = queue.ask(requestOf("a", "a"), { signal: stop.signal });
    stop.abort(new Error("stopped"));
    await expect(answer).rejects.toThrow("stopped");
  });
});

it("names an agent by the way from the main agent to it", () => {
  expect(describeAskingPath(requestOf("Explore", "x").agentPath)).toBe("main → Explore");
});
