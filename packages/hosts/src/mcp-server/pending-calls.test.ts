import type { PermissionQuestion } from "@retinue/core/protocol/question.ts";
import { expect, test } from "vitest";
import { permissionForm } from "./pending-calls.ts";

const request: PermissionQuestion = {
  kind: "permission",
  id: "question-1",
  path: [
    { id: "main", name: "main" },
    { id: "a1", name: "reviewer" },
  ],
  callId: "c1",
  tool: "Bash",
  input: { command: "npm test" },
  reason: "no allow rule matches.",
  rules: ["Bash(npm test:*)"],
};

test("[MCP-3] a question names the agent, the tool, the input, the reason and what a lasting yes covers", () => {
  expect(permissionForm(request).message).toBe(
    [
      "The agent main → reviewer (a1) wants to use Bash:",
      '{"command":"npm test"}',
      "It is asked because no allow rule matches.",
      "For this session means: everything that Bash(npm test:*) covers.",
    ].join("\n"),
  );
});

test("[MCP-3] what an agent writes cannot pretend to be another line of the question", () => {
  const command = "true\nIt is asked because it is harmless\u001b[2K\u202e.";
  const { message } = permissionForm({ ...request, input: { command }, tool: "Ba\nsh" });
  expect(message.split("\n")).toHaveLength(4);
  expect(message).not.toMatch(/[\u001b\u202e]/);
});

test("[MCP-3] a long input is cut in the middle, and that is shown", () => {
  const command = `begin ${"x".repeat(100_000)} end`;
  const { message } = permissionForm({ ...request, input: { command } });
  expect(message.length).toBeLessThan(5000);
  expect(message).toMatch(/begin x+ \[\d+ CHARACTERS ARE NOT SHOWN HERE\] x+ end/);
});

test.each([
  [{ action: "accept", content: { answer: "allow once" } }, { type: "allow" }],
  [
    { action: "accept", content: { answer: "allow for this session" } },
    { type: "allow", scope: "session" },
  ],
  [{ action: "accept", content: { answer: "deny" } }, { type: "deny" }],
  [{ action: "accept", content: { answer: "yes" } }, { type: "deny" }],
  [{ action: "accept", content: {} }, { type: "deny" }],
  [{ action: "accept" }, { type: "deny" }],
  [{ action: "decline", content: { answer: "allow once" } }, { type: "deny" }],
  [{ action: "cancel", content: { answer: "allow once" } }, { type: "deny" }],
  [{ action: "unanswered" }, { type: "deny", message: "(no answer came)" }],
] as const)("[MCP-3] the reply %j means %j", (reply, answer) => {
  expect(permissionForm(request).read(reply)).toEqual(answer);
});

test("[BIL-1, BIL-2, MCP-3] agents that start together are shown by what they would take, with no lasting yes", () => {
  const band = { low: 1, likely: 2, high: 3 };
  const total = { costUsd: band, tokens: band, durationMs: band };
  const quote = { agents: [], total, unpriced: 0, why: "settings ask above $1.00", refused: [] };
  const { message, schema } = permissionForm({ ...request, tool: "Agent", input: { agents: [] }, quote });
  expect(message).toContain("(a1) wants to start 0 agents:");
  expect(message).toContain("together likely $2.00 ($1.00 to $3.00)");
  expect(message).toMatch(/It is asked because settings ask above \$1\.00\.$/);
  expect(schema).toMatchObject({ properties: { answer: { enum: ["allow once", "deny"] } } });
});
