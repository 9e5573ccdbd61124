import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { getRequestListener } from "@hono/node-server";
import { createApprovalQueue } from "@retinue/core/kernel/web/create-approval-queue.ts";
import type { UiMetadata, UiParts } from "@retinue/core/kernel/web/to-response.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { UIMessage } from "ai";
import { parseJsonEventStream, readUIMessageStream, uiMessageChunkSchema } from "ai";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { projectRoot } from "./project-files.ts";
import { launchBrowser, missingBrowser } from "./studio/sample-sessions.ts";

type Handler = (request: Request) => Response | Promise<Response>;

/** The examples as users have them: they import the package that was built. */
const example = (file: string): Promise<Record<string, unknown>> =>
  import(join(projectRoot, "examples/web", file));

describe("the UI message stream [SDK-1]", () => {
  test("is what the AI SDK's own reader takes, chunk by chunk, with children, questions, errors and the end", async () => {
    await using sample = await createSampleRuntime([
      { match: "CHILD: look", calls: [{ name: "Bash", input: { command: "touch made" } }] },
      {
        thinking: "Who could look?",
        text: "I send someone.",
        calls: [{ name: "Agent", input: { description: "look", prompt: "CHILD: look" } }],
      },
      "Child done.",
      { calls: [{ name: "Bash", input: { command: "touch other" } }] },
      "Main done.",
    ]);
    const approvals = createApprovalQueue();
    approvals.onChange((change) => {
      if (change.type !== "asked") return;
      const isFirst = change.approval.agentId !== "main";
      approvals.answer(change.approval.id, isFirst ? { type: "allow", for: "call" } : { type: "deny" });
    });
    const run = sample.runtime.run("Go.", { approver: approvals });
    const body = run.toResponse({ format: "ui-messages", approvals }).body;
    if (body === null) throw new Error("There is no body.");
    const problems: unknown[] = [];
    const chunks = parseJsonEventStream({ stream: body, schema: uiMessageChunkSchema }).pipeThrough(
      new TransformStream({
        transform(read, controller) {
          if (read.success) controller.enqueue(read.value);
          else problems.push(read.error);
        },
      }),
    );
    let last: UIMessage<UiMetadata, UiParts> | undefined;
    const onError = (error: unknown) => void problems.push(error);
    for await (const message of readUIMessageStream<UIMessage<UiMetadata, UiParts>>({
      stream: chunks,
      onError,
    }))
      last = message;
    expect(problems).toEqual([]);
    expect(last?.metadata).toMatchObject({ sessionId: run.sessionId, status: "completed" });
    const parts = last?.parts ?? [];
    expect(parts.filter(({ type }) => type === "data-agent")).toMatchObject([
      { data: { agentType: "general-purpose", status: "completed", text: "Child done.", toolUses: 1 } },
    ]);
    expect(parts.filter(({ type }) => type === "data-approval")).toMatchObject([
      { data: { tool: "Bash", state: "allowed" } },
      { data: { tool: "Bash", state: "denied", agentId: "main" } },
    ]);
    expect(parts.filter(({ type }) => type === "text")).toMatchObject([
      { text: "I send someone.", state: "done" },
      { text: "Main done.", state: "done" },
    ]);
    expect(parts.filter(({ type }) => type === "reasoning")).toMatchObject([{ text: "Who could look?" }]);
    expect(parts.filter(({ type }) => type === "dynamic-tool")).toMatchObject([
      { toolName: "Agent", state: "output-available" },
      { toolName: "Bash", state: "output-error" },
    ]);
  });
});

describe.skipIf(missingBrowser !== undefined)(
  "pages with useChat in a browser (needs Chromium) [SDK-1]",
  () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await launchBrowser();
    });
    afterAll(() => browser?.close());

    /** Listens for a function from requests to responses. */
    async function listen(fetch: Handler): Promise<string> {
      const server = createServer(getRequestListener(fetch)).listen(0, "127.0.0.1");
      await once(server, "listening");
      onTestFinished(() => {
        server.closeAllConnections();
        server.close();
      });
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    }

    async function open(address: string): Promise<Page> {
      const context = await browser.newContext();
      onTestFinished(() => context.close());
      const page = await context.newPage();
      const wrong: string[] = [];
      page.on("pageerror", (error) => wrong.push(error.message));
      onTestFinished(() => expect(wrong).toEqual([]));
      await page.goto(address);
      return page;
    }

    const hono = async (): Promise<Handler> => {
      const { app } = (await example("hono-server.ts")) as { app: { fetch: Handler } };
      return (request) => app.fetch(request);
    };

    /** The routes of a Next application by their files, and the page of the other example. */
    const next = async (): Promise<Handler> => {
      const page = await hono();
      const routes = new Map<string, Handler>(
        await Promise.all(
          ["chat", "approvals"].map(async (name) => {
            const { POST } = (await example(`next/app/api/${name}/route.ts`)) as { POST: Handler };
            return [`/api/${name}`, POST] as const;
          }),
        ),
      );
      return (request) => (routes.get(new URL(request.url).pathname) ?? page)(request);
    };

    const ask = async (page: Page): Promise<void> => {
      await page.getByLabel("prompt").fill("We need paper.");
      await page.getByRole("button", { name: "Send" }).click();
      await page.getByText('buyer wants order {"article":"paper"}: waiting').waitFor();
    };

    test.each([
      ["Hono", hono],
      ["route handlers as in Next", next],
    ])("%s: children and questions are seen, and the answer of a person decides", async (_name, handler) => {
      const address = await listen(await handler());
      const [ada, bob] = [await open(address), await open(address)];
      await Promise.all([ask(ada), ask(bob)]);
      await ada.getByText("buyer running order").waitFor();
      expect(await ada.locator("fieldset").count()).toBe(1);
      await ada.getByRole("button", { name: "Allow" }).click();
      await ada.getByText("The buyer has ordered").waitFor();
      await ada.getByText("wants order").getByText(": allowed").waitFor();
      await ada.getByText("buyer completed").waitFor();
      // The other user's question is still there, and only theirs to answer.
      expect(await bob.getByText(": waiting").count()).toBe(1);
      await bob.getByRole("button", { name: "Deny" }).click();
      await bob.getByText("There will be no paper.").waitFor();
      await bob.getByText(": denied").waitFor();
    });

    test("a person without a login gets neither an agent nor an answer", async () => {
      const address = await listen(await hono());
      for (const path of ["chat", "approvals"]) {
        const response = await fetch(`${address}/api/${path}`, { method: "POST", body: "{}" });
        expect([response.status, await response.text()]).toEqual([500, "Failed."]);
      }
    });
  },
);
