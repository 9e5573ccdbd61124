import { expect, test } from "vitest";
import type { SpawnOutcome } from "../../tasks/agent-tool.ts";
import { createTaskManager } from "../../tasks/task-manager.ts";
import { createFlight, type FlightOptions } from "./flight.ts";
import type { FormQuestion } from "./form-question.ts";

const ended: SpawnOutcome = { type: "ended", text: "done", isError: false, data: {} };
const form: FormQuestion<string> = {
  message: "?",
  schema: { type: "object", properties: {}, required: [] },
  read: ({ action }) => action,
};

function create(changes: Partial<FlightOptions> = {}) {
  return createFlight({
    id: "f",
    tool: "spawn_agent",
    tasks: createTaskManager({ maxRunning: 1, now: () => 0 }),
    maxQuestions: 2,
    run: async () => ended,
    onOver: () => undefined,
    claimMs: 1_000_000,
    ...changes,
  });
}

test("[MCP-3] a call tells its questions one after the other, and then its end", async () => {
  const { signal } = new AbortController();
  const flight = create({
    async run() {
      const answers = [await flight.ask(form, signal), await flight.ask(form, signal)];
      return { ...ended, text: answers.join(" ") };
    },
  });
  for (const action of ["accept", "decline"] as const) {
    const news = await flight.next();
    if (news.type !== "question") throw new Error("expected a question");
    expect(flight.question()).toBe(news.question);
    news.question.reply({ action });
  }
  expect(flight.mayAsk()).toBe(false);
  expect(await flight.next()).toEqual({ type: "ended", outcome: { ...ended, text: "accept decline" } });
});

test("[MCP-3] a question to which nobody comes back is answered no, and the agent is stopped", async () => {
  const over = Promise.withResolvers<void>();
  const answers: string[] = [];
  const flight = create({
    claimMs: 0,
    onOver: over.resolve,
    async run(signal) {
      answers.push(await flight.ask(form, new AbortController().signal));
      return signal.aborted ? { type: "refused", reason: "stopped" } : ended;
    },
  });
  expect((await flight.next()).type).toBe("question");
  flight.leave();
  await over.promise;
  expect(answers).toEqual(["unanswered"]);
  expect(await flight.next()).toEqual({ type: "ended", outcome: { type: "refused", reason: "stopped" } });
});

test("[MCP-3] a question whose agent was stopped is taken back", async () => {
  const stop = new AbortController();
  const gate = Promise.withResolvers<void>();
  const flight = create({
    async run() {
      await flight.ask(form, stop.signal).catch(() => undefined);
      await gate.promise;
      return ended;
    },
  });
  expect((await flight.next()).type).toBe("question");
  stop.abort();
  expect(flight.question()).toBeUndefined();
  gate.resolve();
  expect((await flight.next()).type).toBe("ended");
});

test("[MCP-3] what breaks while an agent is started is a refusal with the reason", async () => {
  const flight = create({
    run: async () => {
      throw new Error("no model");
    },
  });
  expect(await flight.next()).toEqual({ type: "ended", outcome: { type: "refused", reason: "no model" } });
});
