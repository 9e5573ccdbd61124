import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { expect, test } from "vitest";
import { holdConnections } from "./hold-connections.ts";

test("all who hold connections use the same ones, and they are closed when the last lets go [SDK-3]", async () => {
  await using provider = await startFakeProvider({ respond: () => ({ text: "hello" }) });
  const [first, second] = [holdConnections(), holdConnections()];
  expect(second.fetch).toBe(first.fetch);
  for (const { fetch } of [first, second]) await (await fetch(provider.url)).text();
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  const third = holdConnections();
  expect(third.fetch).toBe(first.fetch);
  second[Symbol.dispose]();
  third[Symbol.dispose]();
  using fourth = holdConnections();
  expect(fourth.fetch).not.toBe(first.fetch);
  // A request that comes too late is answered all the same.
  expect((await first.fetch(provider.url)).status).toBe(404);
});

test("a hundred runtimes of one process leave no descriptors behind, also where few are allowed [SDK-3]", async () => {
  await using provider = await startFakeProvider({
    respond: () => ({ text: "hello" }),
    keepsRequests: false,
  });
  const home = mkdtempSync(join(tmpdir(), "many-runtimes-"));
  try {
    const entry = JSON.stringify(new URL("../kernel/create-runtime.ts", import.meta.url).href);
    const program = `
      import { readdirSync } from "node:fs";
      const { createRuntime } = await import(${entry});
      const count = () => readdirSync("/proc/self/fd").length;
      const env = { PATH: process.env.PATH, ANTHROPIC_BASE_URL: ${JSON.stringify(provider.url)}, ANTHROPIC_API_KEY: "k" };
      const once = async () => {
        await using runtime = createRuntime({ cwd: ${JSON.stringify(home)}, home: ${JSON.stringify(home)}, env });
        const result = await runtime.run("hello").result;
        if (result.status !== "completed") throw new Error(JSON.stringify(result));
      };
      const counts = [];
      for (let round = 0; round < 20; round += 1) {
        await Promise.all(Array.from({ length: 5 }, once));
        if (process.platform === "linux") counts.push(count());
      }
      console.log(JSON.stringify({ early: Math.max(...counts.slice(0, 5)), late: Math.max(...counts.slice(-5)) }));`;
    const child = spawn(
      "/bin/sh",
      ["-c", 'ulimit -n 128; exec "$0" "$@"', process.execPath, "--input-type=module", "-e", program],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    const [printed, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
    expect(code).toBe(0);
    const { early, late }: { early: number; late: number } = JSON.parse(printed);
    if (process.platform === "linux") expect(late).toBeLessThanOrEqual(early + 5);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}, 300_000);
