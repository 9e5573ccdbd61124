import type { ChildProcess } from "node:child_process";
import { pathToFileURL } from "node:url";
import { openFileStore } from "@retinue/cluster/files/open-file-store.ts";
import { serveSessions } from "@retinue/cluster/serve-sessions.ts";
import { waitForEnd } from "@retinue/cluster/start-agent.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { expect, onTestFinished, test } from "vitest";
import { createPlace, runCommand, runInProcess } from "./run-command.ts";

const script = `export const meta = { name: 'two', description: 'Two agents' }
const a = await agent('conv:a x', { label: 'first' })
const b = await agent('conv:b ' + a, { label: 'second' })
if (args && args.breaks) throw new Error('it breaks')
return { a, b, args }
`;

test("a workflow is given to a store, shown, and taken up again there [WFL-5]", {
  timeout: 180_000,
}, async () => {
  const counts = new Map<string, number>();
  const provider = await startFakeProvider({
    keepsRequests: false,
    respond({ messages }) {
      const label = /conv:(\w+)/.exec(JSON.stringify(messages[0]))?.[1] ?? "?";
      counts.set(label, (counts.get(label) ?? 0) + 1);
      return `R-${label}`;
    },
  });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  place.write(".claude/workflows/two.js", script);
  const url = pathToFileURL(`${place.home}/store`).href;
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x", RETINUE_LOCAL_MODELS: "0" };
  const run = (...words: string[]) => runInProcess(place, words, { environment });
  const broken = await run("workflow", "run", "two", "--args", '{"breaks":true}', "--store", url);
  expect([broken.code, broken.out]).toEqual([1, ""]);
  expect(broken.err).toContain("Error: it breaks");
  const id = /^two (\S+)$/m.exec(broken.err)?.[1] ?? "";
  const shown = await run("workflow", "show", id, "--store", url);
  expect(shown.out).toContain(`${id}  failed  2 agents`);
  expect(shown.out).toMatch(/done +second/);
  const resumed = await run("workflow", "resume", id, "--args", '{"n":1}', "--store", url, "--json");
  expect(resumed.code, resumed.err).toBe(0);
  expect(JSON.parse(resumed.out)).toMatchObject({
    status: "completed",
    result: { a: "R-a", b: "R-b", args: { n: 1 } },
  });
  expect(Object.fromEntries(counts)).toEqual({ a: 1, b: 1 });
  expect((await run("tasks", "--store", url)).out).toContain("workflow two");
  expect((await run("workflow", "show", "nothing", "--store", url)).err).toContain("There is no workflow");
  // With the store in the environment, what is about this folder stays about it.
  const listed = await runInProcess(place, ["workflow", "list"], {
    environment: { ...environment, RETINUE_STORE: url },
  });
  expect(listed.out).toContain("two  .claude/workflows/two.js");
});

test("a script whose worker was killed with -9 goes on in the next one, and no finished step runs again [WFL-5, WFL-3]", {
  timeout: 180_000,
}, async () => {
  const counts = new Map<string, number>();
  const gate = Promise.withResolvers<void>();
  let child: ChildProcess | undefined;
  const provider = await startFakeProvider({
    keepsRequests: false,
    async respond({ messages }) {
      const label = /conv:(\w+)/.exec(JSON.stringify(messages[0]))?.[1] ?? "?";
      counts.set(label, (counts.get(label) ?? 0) + 1);
      if (label === "slow") {
        child?.kill("SIGKILL");
        await gate.promise;
      }
      return `R-${label}`;
    },
  });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  place.write(
    ".claude/workflows/gated.js",
    `${script.split("\n")[0]?.replace("two", "gated")}\nconst a = await agent('conv:a x')\nconst [b, c] = await parallel([() => agent('conv:slow x'), () => agent('conv:c x')])\nreturn [a, b, c, await agent('conv:d ' + b)]\n`,
  );
  const folder = `${place.home}/store`;
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x", RETINUE_LOCAL_MODELS: "0" };
  const id = crypto.randomUUID();
  const words = ["workflow", "run", "gated", "--store", pathToFileURL(folder).href, "--session-id", id];
  const killed = await runCommand(place, words, {
    environment,
    started: (process) => {
      child = process;
    },
  });
  expect(killed.code).toBe(null);
  gate.resolve();
  const store = await openFileStore(folder);
  onTestFinished(() => store.close());
  const worker = await serveSessions(store, {
    slots: 4,
    runtime: { home: place.home, env: { ...process.env, ...environment } },
  });
  onTestFinished(() => worker.drain(0));
  const ended = await waitForEnd(store, id, { timeoutMs: 120_000 });
  expect(ended).toMatchObject({ status: "completed", result: { output: ["R-a", "R-slow", "R-c", "R-d"] } });
  expect([counts.get("a"), counts.get("d")]).toEqual([1, 1]);
});
