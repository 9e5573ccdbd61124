import { median, printTable } from "./measure.ts";
import { runSubject, subjectFile } from "./run-subject.ts";
import { createWorkplace } from "./workplace.ts";

const agents = Number(process.env["WORKFLOW_AGENTS"] ?? 1_000);
const rounds = Number(process.env["WORKFLOW_ROUNDS"] ?? 3);
const limit = 1.2;
/** From the 200th agent to the last; each leaves its place in the list of steps. */
const maxGrowthMiB = 12;

interface ManyAgents {
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly heaps: readonly number[];
}

/** A thousand agents as steps of a workflow, against as many children of a program, with a model that answers immediately. */
export async function benchWorkflow(): Promise<boolean> {
  const ways = { workflow: [] as ManyAgents[], spawn: [] as ManyAgents[] };
  for (let round = 0; round < rounds; round += 1) {
    // In turn, so that a busy moment of the machine hits both alike.
    for (const way of round % 2 === 0 ? (["workflow", "spawn"] as const) : (["spawn", "workflow"] as const)) {
      using place = createWorkplace();
      const file = subjectFile("many-agents.ts");
      const { output } = await runSubject(
        { arguments: ["--expose-gc", file, way, String(agents)], url: "http://127.0.0.1:9" },
        place,
      );
      // Written by subjects/many-agents.ts in this shape.
      ways[way].push(JSON.parse(output) as ManyAgents);
    }
  }
  const row = (what: string, pick: (run: ManyAgents) => number) => {
    const [workflow, spawn] = [median(ways.workflow.map(pick)), median(ways.spawn.map(pick))];
    return { what, milliseconds: workflow, against: "spawn", ratio: workflow / spawn, limit };
  };
  const isFast = printTable(`${agents} agents of a workflow, against ${agents} spawn calls of a program`, [
    row("elapsed", ({ wallMs }) => wallMs),
    row("processor", ({ cpuMs }) => cpuMs),
  ]);
  const growth = median(ways.workflow.map(({ heaps }) => (heaps.at(-1) ?? 0) - (heaps[0] ?? 0)));
  const isFlat = growth <= maxGrowthMiB;
  console.log(
    `  heap: ${growth.toFixed(1)} MiB more after the last agent than after a fifth of them, at most ${maxGrowthMiB}  ${isFlat ? "ok" : "TOO MUCH"}`,
  );
  return isFast && isFlat;
}
