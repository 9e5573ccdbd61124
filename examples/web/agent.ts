// The agent of the pages: a runtime, the questions that wait, and a session for each person.
import { createApprovalQueue, createRuntime, defineTool, type Session } from "retinue";
import { createScriptedModel } from "retinue/testing";
import { z } from "zod";

const order = defineTool({
  name: "order",
  description: "Orders an article.",
  effect: "network",
  input: z.object({ article: z.string() }),
  call: ({ article }) => `Ordered ${article}.`,
});

// A script in place of a model, for any number of people: it sends a buyer, who orders paper.
const buyer = { description: "buy paper", prompt: "Buy the paper.", subagent_type: "buyer" };
const model = createScriptedModel([
  { match: "Buy the paper.", calls: [{ name: "order", input: { article: "paper" } }], times: "any" },
  { match: "Ordered paper.", text: "Paper is on its way.", times: "any" },
  { match: "was not allowed", text: "Nobody let me order.", times: "any" },
  { match: "Paper is on its way.", text: "The buyer has ordered **paper**.", times: "any" },
  { match: "Nobody let me order.", text: "There will be no paper.", times: "any" },
  { text: "I send the buyer.", calls: [{ name: "Agent", input: buyer }], times: "any" },
]);

export const approver = createApprovalQueue();
const runtime = createRuntime({
  model,
  approver,
  // No built-in tool but this one: a page must not reach the files of the server.
  tools: ["Agent", order],
  agents: {
    buyer: { description: "Buys things.", prompt: "You buy what you are told to.", tools: ["order"] },
  },
});

const sessions = new Map<string, Promise<Session>>();

/** The session of the person who asks. The cookie takes the place of your login: without one, there is no session. */
export function sessionOf(request: Request): Promise<Session> {
  const user = /(?:^|;\s*)user=([\w-]+)/.exec(request.headers.get("cookie") ?? "")?.[1];
  if (user === undefined) return Promise.reject(new Error("Log in first."));
  const session = sessions.get(user) ?? runtime.open();
  sessions.set(user, session);
  return session;
}
