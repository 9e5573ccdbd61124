/**
 * Each folder of src with the folders it may import besides itself; `entry` means the files directly in src.
 * ARCHITECTURE.md shows the same table, and a test compares the two.
 */
export const importTable = readTable(`
  foundation   |
  storage      | foundation
  conversation | foundation
  permissions  | foundation
  hooks        | foundation
  model        | foundation, storage, conversation, permissions, hooks
  tools        | all of model, model
  mcp          | all of tools, tools
  settings     | all of mcp, mcp
  plugins      | all of settings, settings
  definitions  | all of plugins, plugins
  skills       | all of definitions, definitions
  context      | all of skills, skills
  planning     | all of context, context
  journal      | all of planning, planning
  loop         | foundation, conversation, permissions, hooks, model, tools
  tasks        | all of journal, journal, loop
  teams        | all of tasks, tasks
  inspection   | all of tasks, tasks
  replay       | all of inspection, inspection
  runtime      | all of teams, teams, inspection, replay
  cluster      | all of runtime, runtime
  apps         | all of cluster, cluster
  testing      | all of cluster, cluster
  entry        | all of cluster, cluster
`);

/** What the command line may import: it is the first user of the runtime. */
export const cliImports: readonly string[] = ["foundation", "conversation", "runtime", "cluster", "apps"];

/** Files and folders of src/apps/cli that import more until the runtime answers what they ask; this list only shrinks. */
export const cliExceptions = readTable(`
  commands/evaluate.ts          | storage
  commands/mcp/mcp-serve.ts     | mcp
  create-real-host.ts           | settings, storage
  eval                          | storage, tools
  views                         | inspection, journal
`);

/** Reads lines of `folder | folder, all of folder`; `all of x` is what the earlier line for x allows. */
export function readTable(text: string): ReadonlyMap<string, readonly string[]> {
  const table = new Map<string, readonly string[]>();
  for (const line of text.split("\n").filter((candidate) => candidate.includes("|"))) {
    const [folder = "", allowed = ""] = line.split("|").map((cell) => cell.trim());
    const names = allowed.split(",").map((name) => name.trim());
    table.set(
      folder,
      names.flatMap((name) => {
        if (name === "") return [];
        return name.startsWith("all of ") ? (table.get(name.slice(7)) ?? []) : [name];
      }),
    );
  }
  return table;
}
