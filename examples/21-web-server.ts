// A server for 20 people: each has a session, and answers only the questions of their own agent.
import { Hono } from "hono";
import { createApprovalQueue, createRuntime, defineTool, isRetinueError, type Session } from "retinue";
import { createScriptedModel } from "retinue/testing";
import { z } from "zod";

const orders: string[] = [];
const order = defineTool({
  name: "order",
  description: "Orders an article for the person.",
  effect: "network",
  input: z.object({ article: z.string() }),
  call: ({ article }, { sessionId }) => `Order ${orders.push(sessionId)} of ${article}.`,
});
const model = createScriptedModel([
  { match: "of tea.", text: "Tea is ordered.", times: "any" },
  { match: "was not allowed", text: "No tea then.", times: "any" },
  { calls: [{ name: "order", input: { article: "tea" } }], times: "any" },
]);

const approver = createApprovalQueue();
await using runtime = createRuntime({ model, tools: [order], approver });
const sessions = new Map<string, Promise<Session>>();

const app = new Hono<{ Variables: { session: Session } }>();
app.use(async (c, next) => {
  const user = c.req.header("x-user"); // Replace this with your login.
  if (user === undefined) return c.text("Log in first.", 401);
  const opened = sessions.get(user) ?? runtime.open();
  sessions.set(user, opened);
  c.set("session", await opened);
  return next();
});
app.post("/chat", async (c) => {
  const run = c.get("session").run(await c.req.text(), { signal: c.req.raw.signal });
  return run.toResponse({ approvals: approver });
});
app.get("/approvals", (c) => c.json(approver.pending(c.get("session").id)));
app.post("/approvals/:id", async (c) => {
  approver.answer(c.req.param("id"), await c.req.json(), { sessionId: c.get("session").id });
  return c.body(null, 204);
});
app.onError((error, c) => (isRetinueError(error) ? c.text(error.message, 400) : c.text("Failed.", 500)));
// With a port: import { serve } from "@hono/node-server"; serve({ fetch: app.fetch, port: 3000 });

// What the pages of 20 people would do.
const call = (user: string, path: string, body?: string) =>
  app.request(path, { method: body ? "POST" : "GET", body: body ?? null, headers: { "x-user": user } });
const visit = async (user: string, answer: object) => {
  const response = await call(user, "/chat", "Get me tea.");
  let seen = "";
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    seen += piece;
    const id = /event: approval\ndata: .*"id":"([^"]+)","state":"waiting"/.exec(piece)?.[1];
    if (id === undefined) continue;
    const stranger = await call("mallory", `/approvals/${id}`, JSON.stringify(answer));
    const own = await call(user, `/approvals/${id}`, JSON.stringify(answer));
    seen += `\nanswers ${stranger.status} ${own.status}`;
  }
  return /answers 400 204/.test(seen) && /event: result\ndata: .*"text":"([^"]+)"/.exec(seen)?.[1];
};
const users = Array.from({ length: 20 }, (_, index) => `user-${index}`);
const said = await Promise.all(
  users.map((user, index) => visit(user, index % 2 ? { type: "deny" } : { type: "allow", for: "call" })),
);
console.log(
  said.filter((text) => text === "Tea is ordered.").length,
  "have tea,",
  new Set(orders).size,
  "sessions ordered",
);
console.log(
  said.filter((text) => text === "No tea then.").length,
  "have none; without a login:",
  (await app.request("/approvals")).status,
);
