import { expect, it } from "vitest";
import { bash } from "./builtin-agents.ts";

it("Bash has the Bash tool alone and the parent's model [BLT-4]", () => {
  expect(bash).toMatchObject({ name: "Bash", tools: ["Bash"], model: "inherit" });
  expect(bash.disallowedTools).toBeUndefined();
});

it("Bash reports commands with their exit codes [BLT-4]", () => {
  expect(bash.prompt.slice(bash.prompt.indexOf("# Your last message"))).toContain("exit code");
});
