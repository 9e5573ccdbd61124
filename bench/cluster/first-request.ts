import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { waitForEnd } from "../../src/cluster/agent-client.ts";
import { openStore } from "../../src/cluster/open-store.ts";
import { startSession } from "../../src/cluster/start-session.ts";
import { startFakeProvider } from "../../src/testing/fake-provider.ts";
import { emptyStore } from "../../test/cluster/test-database.ts";
import type { TestPostgres } from "../../test/cluster/test-postgres.ts";
import { median, milliseconds, quantile } from "./fleet-scene.ts";

const program = fileURLToPath(new URL("../../bin/retinue.js", import.meta.url));

/** From handing a session to the store until its worker, an idle `retinue serve`, asks the model. */
export async function measureFirstRequest({ url }: TestPostgres): Promise<string> {
  await emptyStore(url);
  let askedAt = 0;
  const respond = (): string => {
    askedAt = performance.now();
    return "Done.";
  };
  await using provider = await startFakeProvider({ respond });
  const folder = mkdtempSync(join(tmpdir(), "figures-session-"));
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x", RETINUE_STORE: url };
  const worker = spawn(process.execPath, [program, "serve", "--folder", folder, "--workspaces", folder], {
    cwd: folder,
    env: { HOME: folder, PATH: process.env["PATH"], RETINUE_LOCAL_MODELS: "0", ...environment },
    stdio: ["ignore", "ignore", "pipe"],
  });
  try {
    await new Promise<void>((resolve) => {
      worker.stderr.on("data", (text) => String(text).includes("serves") && resolve());
    });
    await using store = await openStore(url);
    const [starts, ends]: [number[], number[]] = [[], []];
    for (let round = 0; round < 33; round += 1) {
      const began = performance.now();
      const workspace = { type: "shared", directory: folder, root: folder } as const;
      const id = await startSession(store, { prompt: "Hello.", workspace });
      await waitForEnd(store, id, { timeoutMs: 20_000 });
      // The first ones load the modules.
      if (round < 3) continue;
      starts.push(askedAt - began);
      ends.push(performance.now() - began);
    }
    return `session to first request: median ${milliseconds(median(starts))}, p95 ${milliseconds(quantile(starts, 0.95))}; to its result: median ${milliseconds(median(ends))}`;
  } finally {
    worker.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}
