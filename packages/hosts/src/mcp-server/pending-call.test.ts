import type { SpawnOutcome } from "@retinue/core/tasks/spawn-outcome.ts";
import { expect, test } from "vitest";
import type { FormQuestion } from "./form-question.ts";
import { createPendingCall, type PendingCallOptions } from "./pending-call.ts";

const ended: SpawnOutcome = { type: "ended", text: "done", isError: false, data: {} };
const form: FormQuestion<string> = {
  message: "?",
  schema: { type: "object", properties: {}, required: [] },
  read: ({ action }) => action,
};

function create(changes: Partial<PendingCallOptions> = {}) {
  return createPendingCall({
    id: "f",
    tool: "spawn_agent",
    agents: { get: () => undefined, list: () => [], onEvent: () => () => undefined },
    maxQuestions: 2,
    run: async () => ended,
    onOver: () => undefined,
    claimMs: 1_000_000,
    ...changes,
  });
}

test("[MCP-3] a call shows its questions one after the other, and then its end", async () => {
  const { signal } = new AbortController();
  const pendingCall = create({
    async run() {
      const answers = [await pendingCall.ask(form, signal), await pendingCall.ask(form, signal)];
      return { ...ended, text: answers.join(" ") };
    },
  });
  for (const action of ["accept", "decline"] as const) {
    const pendingMessages = await pendingCall.next();
    if (pendingMessages.type !== "question") throw new Error("expected a question");
    expect(pendingCall.question()).toBe(pendingMessages.question);
    pendingMessages.question.reply({ action });
  }
  expect(pendingCall.mayAsk()).toBe(false);
  expect(await pendingCall.next()).toEqual({ type: "ended", outcome: { ...ended, text: "accept decline" } });
});

test("[MCP-3] a question to which no client comes back is answered no, and the agent is stopped", async () => {
  const over = Promise.withResolvers<void>();
  const answers: string[] = [];
  const pendingCall = create({
    claimMs: 0,
    onOver: over.resolve,
    async run(signal) {
      answers.push(await pendingCall.ask(form, new AbortController().signal));
      return signal.aborted ? { type: "refused", reason: "stopped" } : ended;
    },
  });
  expect((await pendingCall.next()).type).toBe("question");
  pendingCall.leave();
  await over.promise;
  expect(answers).toEqual(["unanswered"]);
  expect(await pendingCall.next()).toEqual({
    type: "ended",
    outcome: { type: "refused", reason: "stopped" },
  });
});

test("[MCP-3] a question whose agent was stopped is taken back", async () => {
  const stop = new AbortController();
  const gate = Promise.withResolvers<void>();
  const pendingCall = create({
    async run() {
      await pendingCall.ask(form, stop.signal).catch(() => undefined);
      await gate.promise;
      return ended;
    },
  });
  expect((await pendingCall.next()).type).toBe("question");
  stop.abort();
  expect(pendingCall.question()).toBeUndefined();
  gate.resolve();
  expect((await pendingCall.next()).type).toBe("ended");
});

test("[MCP-3] what breaks while an agent is started is a refusal with the reason", async () => {
  const pendingCall = create({
    run: async () => {
      throw new Error("no model");
    },
  });
  expect(await pendingCall.next()).toEqual({
    type: "ended",
    outcome: { type: "refused", reason: "no model" },
  });
});
