/**
 * Each folder of src with the folders it may import besides itself; `entry` means the files directly in src.
 * ARCHITECTURE.md shows the same table, and a test compares the two.
 */
export const importTable = readTable(`
  foundation   |
  storage      | foundation
  conversation | foundation
  protocol     | foundation, conversation
  permissions  | foundation
  hooks        | foundation
  model        | foundation, storage, conversation, protocol, permissions, hooks
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
  kernel       | all of runtime, runtime
  cluster      | all of kernel, kernel
  entry        | all of cluster, cluster
  apps         | all of cluster, cluster, entry
  testing      | all of cluster, cluster
`);

/** What programs of packages/hosts/src may import besides each other: they are users of the runtime and of what the package exports (`entry`). */
export const appImports: readonly string[] = [
  "foundation",
  "conversation",
  "protocol",
  "runtime",
  "kernel",
  "cluster",
  "entry",
  "apps",
];

/** Files and folders of packages/hosts/src that import more until the runtime answers what they ask; this list only shrinks. */
export const appExceptions = readTable(`
  agent-sdk/host-hooks.ts               | hooks
  agent-sdk/observed-hooks.ts           | hooks
  mcp-server/mcp-serve.ts               | mcp
  cli/create-real-host.ts               | settings
  commands/eval                         | storage, tools
  commands/views                        | inspection
  mcp-server/pending-calls.ts           | permissions
  studio/page                           | inspection
  terminal/session/session-pages.ts     | model
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
