// The same page served by Hono: `node examples/web/hono-server.ts`, then open http://localhost:3000.
import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { serve } from "@hono/node-server";
import { build } from "esbuild";
import { Hono } from "hono";
import { getCookie, setCookie } from "hono/cookie";
import { isRetinueError, promptFromUiMessages } from "retinue";
import { approver, sessionOf } from "./agent.ts";

const entry = fileURLToPath(new URL("page/main.tsx", import.meta.url));
const bundled = build({ entryPoints: [entry], bundle: true, write: false, jsx: "automatic", minify: true });

export const app = new Hono();

app.get("/", (c) => {
  if (getCookie(c, "user") === undefined)
    setCookie(c, "user", randomUUID(), { httpOnly: true, sameSite: "Strict" });
  return c.html('<!doctype html><title>Shop</title><body><script src="/page.js"></script>');
});
app.get("/page.js", async (c) =>
  c.body((await bundled).outputFiles[0]?.text ?? "", 200, { "content-type": "text/javascript" }),
);
app.post("/api/chat", async (c) => {
  const session = await sessionOf(c.req.raw);
  const { messages } = await c.req.json();
  const run = session.run(promptFromUiMessages(messages), { signal: c.req.raw.signal });
  return run.toResponse({ format: "ui-messages", approvals: approver });
});
app.post("/api/approvals", async (c) => {
  const session = await sessionOf(c.req.raw);
  const { id, answer } = await c.req.json();
  approver.answer(id, answer, { sessionId: session.id });
  return c.json({ answered: true });
});
// What is wrong with a request is reported; what is wrong inside stays inside.
app.onError((error, c) => (isRetinueError(error) ? c.text(error.message, 400) : c.text("Failed.", 500)));

if (import.meta.main) serve({ fetch: app.fetch, port: 3000 });
