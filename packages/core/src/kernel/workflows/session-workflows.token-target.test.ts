import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { expect, it } from "vitest";
import type { Message } from "../../conversation/message.ts";
import { tokenTarget } from "./session-workflows.ts";

const said = (text: string): Message => ({ role: "user", content: [{ type: "text", text }] });

it.each<[string, number | undefined]>([
  ["+500k review everything", 500_000],
  ["review everything +1.5M", 1_500_000],
  ["review everything\n+20k.", 20_000],
  ["+100k", 100_000],
  ["add +100k rows to the table", undefined],
  ["a+100k", undefined],
  ["+100 things", undefined],
  ["+100kilos", undefined],
  ["nothing", undefined],
])("%j gives %j output tokens [WFL-4]", (text, tokens) => {
  expect(tokenTarget([said("+7k before"), { role: "assistant", content: [] }, said(text)])).toBe(tokens);
});

it("only what a person wrote last counts [WFL-4]", () => {
  const result = { type: "tool_result", tool_use_id: "1", content: "x +9k" } as const;
  const messages: Message[] = [
    said("+7k go"),
    { role: "user", content: [result] },
    said("<task-notification>done</task-notification>"),
  ];
  expect(tokenTarget(messages)).toBe(7_000);
  expect(tokenTarget([])).toBeUndefined();
});

it("a workflow of such a turn has it as its budget [WFL-4]", async () => {
  const script =
    "export const meta = { name: 'w', description: 'd' }\nreturn [budget.total, budget.remaining()]";
  await using sample = await createSampleRuntime([
    { calls: [{ name: "Workflow", input: { script } }] },
    { text: "Started." },
    { text: "Done." },
  ]);
  const { status } = await sample.runtime.run("Do it +20k", { skipPermissions: true }).result;
  expect(status).toBe("completed");
  expect(JSON.stringify(sample.requests.at(-1)?.messages)).toContain("<result>[20000,20000]</result>");
});
