import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { agentFormats } from "@retinue/config/formats/agent-formats.ts";
import { formatFacts, formatIds } from "@retinue/config/formats/format-facts.ts";
import { measureInTurn, printTable } from "./measure.ts";
import { writeSampleAgents } from "./sample-agents.ts";

const bin = fileURLToPath(new URL("../bin/retinue.js", import.meta.url));
const count = 200;

/** A start with the files of every product, against one with as many of our own. */
export async function benchAgentFormats(): Promise<boolean> {
  const home = mkdtempSync(join(tmpdir(), "retinue-formats-"));
  const [own, mixed] = [join(home, "own"), join(home, "mixed")];
  try {
    for (const project of [own, mixed]) mkdirSync(join(project, ".git"), { recursive: true });
    const folder = join(own, ".claude", "agents");
    writeSampleAgents(folder, count, { clean: true });
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
      name.endsWith(".md"),
    );
    writeMixed(
      mixed,
      files.map((name) => join(folder, name)),
    );
    const run =
      (cwd: string, ...flags: readonly string[]) =>
      () => {
        const { status, stderr } = spawnSync(process.execPath, [bin, "agents", "list", ...flags], {
          cwd,
          env: { PATH: process.env["PATH"], HOME: home },
        });
        if (status !== 0) throw new Error(`The list of agents ended with ${status}: ${stderr}`);
      };
    const sources = [...new Set(formatIds.map((id) => formatFacts[id].source))].join(",");
    const times = await measureInTurn(
      { own: run(own), mixed: run(mixed, "--agents-from", sources) },
      { rounds: 21, warmUp: 3 },
    );
    const against = `${count} files of .claude/agents`;
    return printTable("Agents of every format", [
      { what: against, milliseconds: times.own, against, ratio: 1 },
      {
        what: `${count} files of all formats`,
        milliseconds: times.mixed,
        against,
        ratio: times.mixed / times.own,
      },
    ]);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** The same agents in turn in every format that has a file for each. */
function writeMixed(project: string, files: readonly string[]): void {
  const formats = formatIds.filter((id) => formatFacts[id].areFiles !== true);
  for (const [index, file] of files.entries()) {
    const id = formats[index % formats.length] ?? "claude";
    const text = readFileSync(file, "utf8");
    const [read] = agentFormats.claude.read(text, { file, relative: file }).agents;
    if (read === undefined) throw new Error(`${file} holds no agent.`);
    const output = join(project, formatFacts[id].project[0] ?? "", agentFormats[id].fileName(read.agent));
    mkdirSync(dirname(output), { recursive: true });
    writeFileSync(output, agentFormats[id].write(read.agent));
  }
}
