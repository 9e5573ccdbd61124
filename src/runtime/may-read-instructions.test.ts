import { describe, expect, it } from "vitest";
import { parseRule } from "../permissions/parse-rule.ts";
import { createSampleRuntime } from "../testing/sample-runtime.ts";
import { mayReadInstructions } from "./may-read-instructions.ts";

function mayRead(texts: readonly string[], platform = "linux") {
  const rules = texts.flatMap((text) => {
    const reading = parseRule(text, { list: "deny" });
    return reading.type === "rule" ? [{ rule: reading.rule, anchor: "/app" }] : [];
  });
  return mayReadInstructions(rules, { cwd: "/app", home: "/home/me", platform });
}

describe("[PRM-1] deny rules over instruction files", () => {
  it.each<[string, readonly string[], boolean]>([
    ["Read(./.env)", ["/app/.env"], false],
    ["Read(./.env)", ["/app/plain.md", "/app/.env"], false],
    ["Read(./.env)", ["/app/notes.md"], true],
    ["Read(~/.ssh/**)", ["/home/me/.ssh/id_rsa"], false],
    ["Read(//etc/**)", ["/app/x", "/etc/passwd"], false],
  ])("%s and %j: %s", (rule, forms, expected) => {
    expect(mayRead([rule])?.(forms)).toBe(expected);
  });

  it("without a path only take tools away, so all instructions stay", () => {
    expect(mayRead(["Read", "Bash", "Edit(./notes.md)"])).toBeUndefined();
  });

  it("compare without case where files do", () => {
    expect(mayRead(["Read(./.env)"], "darwin")?.(["/app/.ENV"])).toBe(false);
  });
});

describe("[PRM-1, SPN-3] a session whose rules forbid a file", () => {
  const spawn = {
    calls: [{ name: "Agent", input: { description: "d", prompt: "p", subagent_type: "general-purpose" } }],
  };

  it("tells neither its agent nor a child what an import of it holds, and says so", async () => {
    await using sample = await createSampleRuntime([spawn, "Done.", "Done."], {
      disallowedTools: ["Read(./.env)"],
    });
    await sample.workspace.write(".env", "SECRET=42");
    await sample.workspace.write("AGENTS.md", "Be kind.\n@./.env\n");
    await using session = await sample.runtime.open();
    await session.prompt("Work.");
    expect(sample.requests.length).toBe(3);
    for (const { system } of sample.requests) {
      expect(system.join("\n")).toContain("Be kind.");
      expect(system.join("\n")).not.toContain("SECRET");
    }
    expect(session.plan.notes.join("\n")).toContain("AGENTS.md:2: A rule forbids to read");
  });
});
