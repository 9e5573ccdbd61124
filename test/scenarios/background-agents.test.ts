import { existsSync } from "node:fs";
import { join } from "node:path";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import type { ApprovalAnswer } from "@retinue/gate/approver.ts";
import { createFakeMcpServer } from "@retinue/testing/fake-mcp-server.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { ScriptedCall, Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";
import { countedServer } from "./counted-server.ts";

const calling = (...calls: ScriptedCall[]): Step => ({ calls });
const touch = calling({ name: "Bash", input: { command: "touch made" } });
const question = calling({
  name: "AskUserQuestion",
  input: {
    questions: [
      {
        question: "Which one?",
        header: "Which",
        multiSelect: false,
        options: [
          { label: "This", description: "d" },
          { label: "That", description: "d" },
        ],
      },
    ],
  },
});
const look = calling({ name: "mcp__docs__look", input: {} });
const served = (request: ModelRequest | undefined) =>
  (request?.tools ?? []).map(({ name }) => name).filter((name) => /^mcp__/.test(name));
const reported = (request: ModelRequest | undefined) => JSON.stringify(request?.messages.at(-1));
const worker = { name: "worker", description: "Works.", prompt: "You work.", background: true };
const docs = () =>
  ({ type: "sdk", instance: createFakeMcpServer([{ name: "look", call: () => "seen it" }]) }) as const;
const bothKept = { backgroundAgents: { mcpTools: true, questions: "ask" } } as const;

/** A person who is asked, answers on request, and is not asked any more once the signal is aborted. */
function createPerson(answer?: ApprovalAnswer) {
  const asked: { tool: string; path: string; isWithdrawn: () => boolean }[] = [];
  const first = Promise.withResolvers<void>();
  const later = Promise.withResolvers<ApprovalAnswer>();
  const approver: NonNullable<RuntimeOptions["approver"]> = {
    approve: ({ tool, agentPath }, { signal }) => {
      asked.push({
        tool,
        path: agentPath.map(({ name }) => name).join(" > "),
        isWithdrawn: () => signal.aborted,
      });
      first.resolve();
      if (answer !== undefined) return Promise.resolve(answer);
      return new Promise((resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
        void later.promise.then(resolve);
      });
    },
  };
  return { approver, asked, first: first.promise, answer: later.resolve };
}

describe("[BGR-6] tools of MCP servers in the background", () => {
  test("stay by setting: those of the session, and those of servers that the definition brings", async () => {
    await using sample = await createSampleRuntime([]);
    const server = countedServer(sample.workspace.root, "server-everything");
    const { runtime, requests } = sample.restart(
      [look, calling({ name: "mcp__mine__echo", input: { message: "hello" } }), "Worked."],
      {
        settings: {
          backgroundAgents: { mcpTools: true },
          permissions: { allow: ["mcp__docs", "mcp__mine"] },
        },
        mcpServers: { docs: docs() },
        agents: [{ ...worker, mcpServers: ["docs", { mine: server.config }] }],
      },
    );
    await using session = await runtime.open();
    expect(await session.spawn("worker", "Work.").result).toMatchObject({ status: "completed", denials: [] });
    expect(served(requests[0])).toEqual(expect.arrayContaining(["mcp__docs__look", "mcp__mine__echo"]));
    expect(reported(requests[1])).toContain("seen it");
    expect(reported(requests[2])).toContain("Echo: hello");
    expect(server.left()).toEqual([]);
  });

  test("stay when the child is moved there in the middle of its work", async () => {
    const [working, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const first: Step = {
      async respond() {
        working.resolve();
        await gate.promise;
        return { calls: [{ name: "Bash", input: { command: "touch made" } }] };
      },
    };
    await using sample = await createSampleRuntime([first, "Worked."], {
      settings: { backgroundAgents: { mcpTools: true }, permissions: { allow: ["Bash(touch *)"] } },
      mcpServers: { docs: docs() },
    });
    await using session = await sample.runtime.open();
    const handle = session.spawn("general-purpose", "Work.");
    await working.promise;
    await handle.detach();
    gate.resolve();
    expect(await handle.result).toMatchObject({ status: "completed" });
    expect(served(sample.requests.at(-1))).toContain("mcp__docs__look");
  });

  test("are used only as far as rules go: without questions, what would be asked is refused, and denied tools are not there", async () => {
    const person = createPerson({ type: "allow", for: "call" });
    await using sample = await createSampleRuntime([look, "Refused.", "Nothing there."], {
      settings: { backgroundAgents: { mcpTools: true } },
      mcpServers: { docs: docs() },
      agents: [worker, { ...worker, name: "other", disallowedTools: ["mcp__docs"] }],
      canUseTool: async () => ({ behavior: "allow" }),
    });
    await using session = await sample.runtime.open();
    const result = await session.spawn("worker", "Work.").result;
    expect(result.denials).toMatchObject([{ call: { name: "mcp__docs__look" } }]);
    expect(JSON.stringify(result.denials)).toContain("no one can be asked here");
    await session.spawn("other", "Work.").result;
    expect(served(sample.requests.at(-1))).toEqual([]);
    expect(person.asked).toEqual([]);
  });

  test("[TLS-9] without the setting, or with only questions, there are none", async () => {
    for (const settings of [{}, { backgroundAgents: { questions: "ask" } } as const]) {
      await using sample = await createSampleRuntime(["Worked."], {
        settings,
        mcpServers: { docs: docs() },
        agents: [worker],
      });
      await using session = await sample.runtime.open();
      await session.spawn("worker", "Work.").result;
      expect(served(sample.requests[0])).toEqual([]);
    }
  });
});

describe("[BGR-6] questions in the background", () => {
  test("go to the person when they come up, with the path of the agent; nothing is asked before the start", async () => {
    const person = createPerson({ type: "allow", for: "call" });
    await using sample = await createSampleRuntime([touch, "Made it."], {
      settings: bothKept,
      agents: [worker],
      approver: person.approver,
    });
    const result = await sample.runtime.spawn("worker", "Work.").result;
    expect(result).toMatchObject({ text: "Made it.", denials: [] });
    expect(person.asked).toMatchObject([{ tool: "Bash", path: "main > worker" }]);
    expect(existsSync(join(sample.workspace.project, "made"))).toBe(true);
  });

  test("go to canUseTool of a program, and those of a tool to its host", async () => {
    const asked: string[] = [];
    await using sample = await createSampleRuntime([touch, question, "Done."], {
      settings: bothKept,
      agents: [worker],
      canUseTool: async (tool, _input, { agentPath }) => {
        asked.push(`${agentPath.map(({ name }) => name).join(" > ")}: ${tool}`);
        return { behavior: "allow" };
      },
      host: { ask: async () => ({ "Which one?": "That" }) },
    });
    expect(await sample.runtime.spawn("worker", "Work.").result).toMatchObject({ denials: [] });
    expect(asked).toContain("main > worker: Bash");
    expect(reported(sample.requests[2])).toContain("That");
  });

  test("[BGR-3] stay open when the child is moved there, and the answer counts", async () => {
    const person = createPerson();
    await using sample = await createSampleRuntime([touch, "Made it."], {
      settings: { backgroundAgents: { questions: "ask" } },
      approver: person.approver,
    });
    const handle = sample.runtime.spawn("general-purpose", "Work.");
    await person.first;
    await handle.detach();
    expect(person.asked.map(({ isWithdrawn }) => isWithdrawn())).toEqual([false]);
    person.answer({ type: "allow", for: "call" });
    expect(await handle.result).toMatchObject({ text: "Made it.", denials: [] });
  });

  test("wait in the inbox where no one attends, and are refused where there is none", async () => {
    await using sample = await createSampleRuntime([touch, "Refused."], {
      settings: bothKept,
      agents: [worker],
    });
    const refused = await sample.runtime.spawn("worker", "Work.").result;
    expect(JSON.stringify(refused.denials)).toContain("no one can be asked");
    const { runtime } = sample.restart([touch, "Made it."], {
      settings: bothKept,
      agents: [worker],
      approvals: "inbox",
      transcripts: true,
    });
    const waiting = runtime.spawn("worker", "Work.").result;
    await expect.poll(async () => (await runtime.approvals.list()).length).toBe(1);
    const [entry] = await runtime.approvals.list();
    await runtime.approvals.answer(entry?.question.id ?? "", { type: "allow" });
    expect(await waiting).toMatchObject({ text: "Made it.", denials: [] });
  });

  test("keep the meaning of modes and deny rules", async () => {
    const person = createPerson({ type: "allow", for: "call" });
    await using sample = await createSampleRuntime([touch, "No.", touch, "No."], {
      settings: { ...bothKept, permissions: { deny: ["Bash(touch denied)"] } },
      agents: [
        { ...worker, name: "silent", permissionMode: "dontAsk" },
        { ...worker, name: "planner", permissionMode: "plan" },
      ],
      approver: person.approver,
    });
    for (const name of ["silent", "planner"])
      expect((await sample.runtime.spawn(name, "Work.").result).denials).toHaveLength(1);
    expect(person.asked).toEqual([]);
  });

  test("[PRM-5] with only tools kept, what is open when the child is moved is answered no", async () => {
    const person = createPerson();
    await using sample = await createSampleRuntime([touch, "Refused."], {
      settings: { backgroundAgents: { mcpTools: true, questions: "refuse" } },
      approver: person.approver,
    });
    const handle = sample.runtime.spawn("general-purpose", "Work.");
    await person.first;
    await handle.detach();
    expect((await handle.result).denials).toHaveLength(1);
  });
});

test("[BGR-6] a project's own files cannot say it, also in a trusted folder; nonsense is named with what to write", async () => {
  const person = createPerson({ type: "deny" });
  await using sample = await createSampleRuntime([touch, "Refused."], {
    agents: [worker],
    approver: person.approver,
    trusted: true,
  });
  await sample.workspace.write(".claude/settings.json", JSON.stringify(bothKept));
  const { runtime } = sample.restart([touch, "Refused."], {
    agents: [worker],
    approver: person.approver,
    trusted: true,
    mcpServers: { docs: docs() },
  });
  await runtime.spawn("worker", "Work.").result;
  expect(person.asked.map(({ tool }) => tool)).toEqual(["Agent"]);
});
