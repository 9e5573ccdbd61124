import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRegistry } from "@retinue/config/agents/agent-registry.ts";
import { createAgentFileLoader } from "@retinue/config/discovery/find-agent-files.ts";
import fastGlob from "fast-glob";
import matter from "gray-matter";
import { measureInTurn, printTable } from "./measure.ts";

const count = 5000;

/** Finding, parsing and registering 5,000 files, against listing and parsing them with fast-glob and gray-matter. */
export async function benchDefinitionLoading(): Promise<boolean> {
  const { writeSampleAgents } = await import("./sample-agents.ts");
  const folder = mkdtempSync(join(tmpdir(), "retinue-bench-"));
  try {
    writeSampleAgents(folder, count, { clean: true });
    const warm = createAgentFileLoader();
    const places = [{ scope: "project", path: folder } as const];
    await warm.load(places);
    const times = await measureInTurn(
      {
        plain: async () => {
          const files = await fastGlob("**/*.md", { cwd: folder, absolute: true });
          return files.map(
            (
              file, // Options switch off the cache that gray-matter keeps by content.
            ) => matter(readFileSync(file, "utf8"), {}),
          );
        },
        retinue: async () => {
          const { definitions } = await createAgentFileLoader().load(places);
          const registry = createRegistry({ definitions });
          if (registry.list().length !== count)
            throw new Error(`only ${registry.list().length} agents were loaded`);
        },
        again: async () => createRegistry({ definitions: (await warm.load(places)).definitions }),
      },
      { rounds: 7, warmUp: 2 },
    );
    const against = "fast-glob + gray-matter";
    return printTable(`${count} definition files`, [
      { what: against, milliseconds: times.plain, against, ratio: 1 },
      {
        what: "find, parse, register",
        milliseconds: times.retinue,
        against,
        ratio: times.retinue / times.plain,
        limit: 1.5,
      },
      {
        what: "the same with nothing changed",
        milliseconds: times.again,
        against,
        ratio: times.again / times.plain,
      },
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
