import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { measureInTurn, printTable } from "./measure.ts";
import { writeSampleAgents } from "./sample-agents.ts";

const bin = fileURLToPath(new URL("../bin/retinue.js", import.meta.url));

/** Whole processes, from start to end, against a Node that does nothing. */
export async function benchColdStart(): Promise<boolean> {
  const home = mkdtempSync(join(tmpdir(), "retinue-home-"));
  const project = join(home, "project");
  try {
    mkdirSync(join(project, ".git"), { recursive: true });
    writeSampleAgents(join(project, ".claude", "agents"), 100, { clean: false });
    const run =
      (...args: readonly string[]) =>
      () => {
        const { status, stderr } = spawnSync(process.execPath, args, {
          cwd: project,
          env: { PATH: process.env["PATH"], HOME: home },
        });
        if (status !== 0) throw new Error(`${args.join(" ")} ended with ${status}: ${stderr}`);
      };
    const times = await measureInTurn(
      {
        bare: run("-e", "0"),
        version: run(bin, "--version"),
        help: run(bin, "--help"),
        agents: run(bin, "agents"),
      },
      { rounds: 21, warmUp: 3 },
    );
    const against = "node -e 0";
    const row = (what: string, milliseconds: number) => ({
      what,
      milliseconds,
      against,
      ratio: milliseconds / times.bare,
    });
    return printTable("Cold start", [
      row(against, times.bare),
      { ...row("retinue --version", times.version), limit: 2 },
      { ...row("retinue --help", times.help), limit: 1.6 },
      { ...row("retinue agents, 100 files", times.agents), limit: 4 },
    ]);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
