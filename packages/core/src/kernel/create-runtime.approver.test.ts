import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { ApprovalAnswer, ApprovalRequest, Approver } from "@retinue/gate/approver.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, it } from "vitest";

/** A person who gives these answers in order; then no more. */
function createPerson(...answers: ApprovalAnswer[]) {
  const asked: ApprovalRequest[] = [];
  const approver: Approver = {
    approve: async (request) => {
      asked.push(request);
      return answers[asked.length - 1] ?? { type: "deny" };
    },
  };
  return { approver, asked };
}

const write = (file_path: string, content = "new") => ({ name: "Write", input: { file_path, content } });

describe("the approver of a runtime", () => {
  it("is asked about what rules leave open, and its yes lets the call run", async () => {
    const { approver, asked } = createPerson({ type: "allow", for: "call" });
    await using sample = await createSampleRuntime([{ calls: [write("a.txt")] }, "Done."], { approver });
    const { denials } = await sample.runtime.run("Go.").result;
    expect(denials).toEqual([]);
    expect(await readFile(sample.workspace.path("a.txt"), "utf8")).toBe("new");
    expect(asked).toMatchObject([{ agentPath: [{ id: "main", name: "main" }], tool: "Write" }]);
  });

  it("is not asked again in the session about what it has allowed for it", async () => {
    const { approver, asked } = createPerson({ type: "allow", for: "session" });
    const script = [{ calls: [write("a.txt"), write("b.txt")] }, "Done."];
    await using sample = await createSampleRuntime(script, { approver });
    expect((await sample.runtime.run("Go.").result).denials).toEqual([]);
    expect(asked).toHaveLength(1);
  });

  it("saves a rule where the next session finds it", async () => {
    const { approver } = createPerson({ type: "allow", for: "save" });
    await using sample = await createSampleRuntime([{ calls: [write("a.txt")] }, "Done."], { approver });
    await sample.runtime.run("Go.").result;
    const saved = JSON.parse(await readFile(sample.workspace.path(".claude/settings.local.json"), "utf8"));
    expect(saved.permissions.allow).toContain("Edit(./**)");
  });

  it("shows the model what the person said, and ends the run when the person wants that", async () => {
    const { approver } = createPerson({ type: "deny", message: "use b.txt" });
    await using first = await createSampleRuntime([{ calls: [write("a.txt")] }, "Done."], { approver });
    expect(await first.runtime.run("Go.").result).toMatchObject({
      status: "completed",
      denials: [{ reason: expect.stringContaining("the person refused it and says: use b.txt") }],
    });
    const { approver: ending } = createPerson({ type: "deny-and-stop" });
    await using second = await createSampleRuntime([{ calls: [write("a.txt")] }, "Done."], {
      approver: ending,
    });
    expect(await second.runtime.run("Go.").result).toMatchObject({
      status: "stopped",
      reason: "stopped_by_person",
    });
    expect(second.requests).toHaveLength(1);
  });

  it("comes after the program's own answer, which may leave the call to it", async () => {
    const { approver, asked } = createPerson({ type: "allow", for: "call" });
    const script = [{ calls: [write("a.txt"), write("b.txt"), write("c.txt")] }, "Done."];
    await using sample = await createSampleRuntime(script, {
      approver,
      canUseTool: async (_, { file_path }) => {
        if (file_path === "a.txt") return { behavior: "allow" };
        return file_path === "b.txt" ? { behavior: "deny" } : { behavior: "ask" };
      },
    });
    const { denials } = await sample.runtime.run("Go.").result;
    expect(denials).toHaveLength(1);
    expect(asked.map(({ input }) => input["file_path"])).toEqual(["c.txt"]);
  });

  it("is not asked where a rule denies, or in a mode that asks nothing [PRM-1, PRM-2]", async () => {
    const { approver, asked } = createPerson({ type: "allow", for: "call" });
    await using sample = await createSampleRuntime(
      [{ calls: [write("a.txt")] }, "1", { calls: [write("a.txt")] }, "2"],
      {
        approver,
      },
    );
    await sample.runtime.run("Go.", { disallowedTools: ["Edit(a.txt)"] }).result;
    await sample.runtime.run("Go.", { permissionMode: "dontAsk" }).result;
    expect(asked).toEqual([]);
  });
});

describe("the sandbox of a runtime", () => {
  it("ends the start where settings want nothing without it and there is none [PRM-11]", async () => {
    await using sample = await createSampleRuntime(["Done."], { trusted: true });
    const sandbox = { enabled: true, failIfUnavailable: true };
    await sample.workspace.write(".claude/settings.json", JSON.stringify({ sandbox }));
    const there = await sample.runtime.run("Go.").result.catch((error: unknown) => error);
    if (isRetinueError(there)) expect(there.code).toBe("sandbox-unavailable");
    else expect(there).toMatchObject({ text: "Done." });
    expect(sample.requests).toHaveLength(isRetinueError(there) ? 0 : 1);
  });

  it("keeps an allowed command inside the work, or refuses it where there is no sandbox", async () => {
    const call = { name: "Bash", input: { command: "echo x > ../made; echo x > made" } };
    await using sample = await createSampleRuntime([{ calls: [call] }, "Done."]);
    await sample.workspace.write(".claude/settings.json", JSON.stringify({ sandbox: { enabled: true } }));
    await sample.runtime.run("Go.", { allowedTools: ["Bash"] }).result;
    const answer = JSON.stringify(sample.requests[1]?.messages.at(-1)?.content);
    expect(answer).toMatch(
      /Read-only file system|Operation not permitted|require a sandbox for commands, and there is none/,
    );
    expect(existsSync(join(sample.workspace.root, "made"))).toBe(false);
    expect(existsSync(sample.workspace.path("made"))).toBe(!answer.includes("there is none"));
  });
});
