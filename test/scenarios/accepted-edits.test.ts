import { execFileSync } from "node:child_process";
import { chmod, mkdir } from "node:fs/promises";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, test } from "vitest";
import type { ApprovalAnswer, ApprovalRequest, RuntimeOptions } from "../../src/index.ts";

const write = (file_path: string, content = "{}\n") => ({ name: "Write", input: { file_path, content } });
const bash = (command: string) => ({ name: "Bash", input: { command } });

/** A person who gives one answer to everything, and what they were asked. */
function personWho(answer: ApprovalAnswer) {
  const asked: ApprovalRequest[] = [];
  const approver: RuntimeOptions["approver"] = {
    async approve(request) {
      asked.push(request);
      return answer;
    },
  };
  return { asked, approver };
}

const yes: ApprovalAnswer = { type: "allow", for: "call" };
const accepting = { permissionMode: "acceptEdits" } as const;

describe("files that steer programs, while edits are accepted", () => {
  test("are asked about once for each file and session, with the rule that covers the file [PRM-1, PRM-8]", async () => {
    const person = personWho(yes);
    await using sample = await createSampleRuntime(
      [
        { calls: [write("src/a.ts"), write("package.json")] },
        { calls: [write("package.json", "{ }\n")] },
        { calls: [bash("cp src/a.ts package.json"), write("Makefile", "all:\n")] },
        "Done.",
      ],
      { approver: person.approver },
    );
    const run = sample.runtime.run("Go.", accepting);
    const events: RunEvent[] = [];
    for await (const event of run.events) events.push(event);
    expect((await run.result).denials).toEqual([]);
    expect(person.asked.map(({ input }) => String(input["file_path"]).split("/").at(-1))).toEqual([
      "package.json",
      "Makefile",
    ]);
    expect(person.asked[0]?.reason).toContain("accepting edits does not cover");
    expect(person.asked[0]?.suggestedRules).toEqual(["Edit(./package.json)"]);
    const finished = events.flatMap((event) =>
      event.type === "call-finished" ? [event.allowed?.reason] : [],
    );
    expect(finished.join()).toMatch(/allowed it, and further changes of \S+package\.json in this session/);
  });

  test("a yes to the main agent holds for its children, and one to a child not for the agent above [PRM-4]", async () => {
    const person = personWho(yes);
    const child = {
      name: "Agent",
      input: { description: "write", prompt: "Write it.", subagent_type: "writer" },
    };
    await using sample = await createSampleRuntime(
      [
        { calls: [write("package.json")] },
        { calls: [child] },
        { calls: [write("package.json", "{ }\n"), write("Makefile", "a:\n")] },
        "Child done.",
        { calls: [write("Makefile", "b:\n")] },
        "Done.",
      ],
      {
        approver: person.approver,
        agents: { writer: { description: "Writes.", prompt: "Write.", tools: ["Write"] } },
      },
    );
    const { denials } = await sample.runtime.run("Go.", accepting).result;
    expect(denials).toEqual([]);
    const names = person.asked.map(
      ({ input, agentPath }) => `${agentPath.length} ${String(input["file_path"]).split("/").at(-1)}`,
    );
    expect(names).toEqual(["1 package.json", "2 Makefile", "1 Makefile"]);
  });

  test("a protected file is asked about each time [PRM-1]", async () => {
    const person = personWho(yes);
    await using sample = await createSampleRuntime(
      [{ calls: [write(".npmrc", "a\n")] }, { calls: [write(".npmrc", "b\n")] }, "Done."],
      { approver: person.approver },
    );
    await sample.runtime.run("Go.", accepting).result;
    expect(person.asked).toHaveLength(2);
  });

  test("in unattended runs they are refused with the rule that allows them [PRM-5]", async () => {
    await using sample = await createSampleRuntime([{ calls: [write("package.json")] }, "Done."]);
    const { denials } = await sample.runtime.run("Go.", accepting).result;
    expect(denials[0]?.reason).toContain("`Edit(./package.json)`");
    await using allowed = await createSampleRuntime([{ calls: [write("package.json")] }, "Done."]);
    const second = await allowed.runtime.run("Go.", { ...accepting, allowedTools: ["Edit(./package.json)"] })
      .result;
    expect(second.denials).toEqual([]);
  });

  test.each([
    "echo x > Makefile",
    "echo x >> .github/workflows/ci.yml",
    "echo x > src/../AGENTS.md",
    "cp src/a.ts vite.config.ts",
    "mv src/a.ts conftest.py",
    "cp src/a.ts .github/",
    "mkdir .github",
    "mkdir -p .circleci/x",
    "touch .gitlab-ci.yml",
    "ln -s ../src/a.ts src/.envrc.local",
    "ln src/a.ts Makefile",
    "mv data .github",
    "cp -r data .github",
    "mv data conf",
    "cp -r data conf",
    "mv tools/run.ts tools/run",
    "echo x > tools/program.sh",
    "cp src/a.ts tools/program.sh",
    "rm .github/workflows/ci.yml",
    "cp src/a.ts PACKAGE.JSON",
    "cp src/a.ts 'package.json '",
    "echo x > link.ts",
    "cd .github && echo x > a.md",
    "echo x | cat > GEMINI.md",
  ])("every command that writes one is refused [PRM-1, PRM-10]: %s", async (command) => {
    const outcome = await tryCommand(command);
    expect(outcome.denials).toHaveLength(1);
  });

  test.each([
    "echo x > src/b.ts",
    "cp src/a.ts src/c.ts",
    "mv src/a.ts src/d.ts",
    "mkdir -p dist/sub",
    "cp -r src lib2",
    "mv src source",
    "touch notes.md",
    "rm src/a.ts",
    "rm -r dist2",
    "echo x > tools/run.ts",
    "mkdir new && cp src/a.ts new/",
  ])("commands that write others run [PRM-1]: %s", async (command) => {
    expect((await tryCommand(command)).denials).toEqual([]);
  });
});

async function tryCommand(command: string) {
  await using sample = await createSampleRuntime([{ calls: [bash(command)] }, "Done."]);
  const { workspace } = sample;
  await workspace.write("src/a.ts", "1\n");
  await workspace.write("data/x.yml", "a: 1\n");
  await workspace.write("tools/run.ts", "1\n");
  await workspace.write("tools/program.sh", "#!/bin/sh\n");
  await chmod(workspace.path("tools/program.sh"), 0o755);
  await workspace.write(".github/workflows/ci.yml", "a: 1\n");
  await workspace.write("Taskfile.yml", "a: 1\n");
  await mkdir(workspace.path("dist2"));
  execFileSync("ln", ["-s", "Taskfile.yml", workspace.path("link.ts")]);
  return await sample.runtime.run("Go.", accepting).result;
}
