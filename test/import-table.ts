/**
 * The order inside the packages that have one: each folder with the folders of its own package that it may import besides
 * itself. What a package may import of others is in its package.json. ARCHITECTURE.md shows the same table, and a test
 * compares the two.
 */
export const importTable = readTable(`
  base/foundation     |
  base/storage        | base/foundation
  config/mcp          |
  config/hooks        |
  config/lock         |
  config/models       |
  config/tools        | config/mcp
  config/settings     | all of config/tools, config/tools, config/hooks, config/models
  config/plugins      | all of config/settings, config/settings
  config/agents       | all of config/plugins, config/plugins
  config/formats      | all of config/agents, config/agents
  config/discovery    | all of config/formats, config/formats
  config/workflows    | all of config/plugins, config/plugins
  config/skills       | all of config/discovery, config/discovery
  config/schemas      | all of config/skills, config/skills, config/workflows, config/lock
  config/instructions | all of config/skills, config/skills
  core/conversation   |
  core/protocol       | core/conversation
  core/hooks          |
  core/models         | core/conversation, core/protocol, core/hooks
  core/tools          | all of core/models, core/models
  core/mcp            | all of core/tools, core/tools
  core/context        | all of core/mcp, core/mcp
  core/skills         | all of core/mcp, core/mcp
  core/planning       | all of core/context, core/context
  core/journal        | all of core/planning, core/planning
  core/loop           | core/conversation, core/hooks, core/models, core/tools
  core/tasks          | all of core/journal, core/journal, core/loop
  core/runners        | all of core/tasks, core/tasks
  core/workflows      | all of core/tasks, core/tasks, core/protocol
  core/teams          | all of core/tasks, core/tasks
  core/inspection     | all of core/tasks, core/tasks
  core/replay         | all of core/inspection, core/inspection
  core/kernel         | all of core/replay, core/replay, core/teams, core/skills, core/workflows, core/runners
`);

/** What of core hosts may import: they are users of the kernel, and show what it reports of sessions. */
export const hostImports: readonly string[] = [
  "core/kernel",
  "core/conversation",
  "core/protocol",
  "core/inspection",
];

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
