/** A promise of the specification. Tests cite its id in brackets in their titles. */
export interface Requirement {
  readonly id: string;
  readonly title: string;
  /** `partly` is cited like `built`; its note says what is still missing. */
  readonly state: "built" | "partly" | "not-yet";
  readonly note?: string;
}

export const requirements: readonly Requirement[] = [
  built("DEF-1", "A definition is a Markdown file with YAML frontmatter whose body is the system prompt."),
  built("DEF-2", "All nineteen fields are known and each takes effect."),
  built("DEF-3", "List fields take lists or comma strings, and commas inside parentheses do not split."),
  built(
    "DEF-4",
    "The name identifies the agent, falls back to the file's name, and may not escape a directory.",
  ),
  built("DEF-5", "A file without a description does not load and says so."),
  built("DEF-6", "The reader repairs what real files get wrong and warns of each repair."),
  built("DEF-7", "An unreadable file is a problem with a place and a way out, and hides no good file."),
  built("DEF-8", "Unknown keys are warned of, and near misses name the key that was meant."),
  built("DEF-9", "`--agents` takes a JSON object or a path to one, and bad JSON ends the process clearly."),
  built("DEF-10", "Programs register definitions at any time."),
  built("DEF-11", "A changed file is seen without a restart."),
  built("DEF-12", "`model` is an alias, a full id, or a provider with its model."),

  built("SCP-1", "Scopes are ranked from managed to built-in, and the higher definition wins by name."),
  built(
    "SCP-2",
    "Definitions are found in project, user, plugin and managed places, and the nearer folder wins.",
  ),
  built("SCP-3", "The registry shows which definition won, from where, and whom it shadows."),
  built("SCP-4", "Plugin agents carry their plugin's name and may not bring hooks, servers or a mode."),
  built("SCP-5", "A deny rule hides an agent and refuses its spawn."),
  built("SCP-6", "Listing never puts bodies into a prompt."),

  built("BLT-1", "`general-purpose` has all tools and is the default."),
  built("BLT-2", "`Explore` reads on a small model and changes nothing."),
  built("BLT-3", "`Plan` designs with the tools of Explore."),
  built("BLT-4", "`Bash` has the Bash tool alone."),
  partly(
    "BLT-5",
    "`statusline-setup` turns a shell prompt into a setting.",
    "Runs like every agent; not tried on a real prompt.",
  ),
  built("BLT-6", "`claude-code-guide` answers questions and is absent under SDK entry points."),
  built("BLT-7", "A higher scope replaces a built-in by name."),

  built(
    "TLS-1",
    "Without `tools` a child has its parent's tools, with it those of the list that the session has.",
  ),
  built("TLS-2", "`disallowedTools` is applied first and wins."),
  built("TLS-3", "A specifier narrows a grant or a denial to matching calls."),
  built("TLS-4", "MCP patterns and old tool names resolve, with a note."),
  built("TLS-5", "A `tools` list that resolves to nothing refuses the spawn."),
  built("TLS-6", "`Task` in the main agent's tools says whom it may spawn."),
  built("TLS-7", "A subagent can never spawn, but where NST-1 says so."),
  built("TLS-8", "`memory` adds file tools, confined to its directory where not granted."),
  built("TLS-9", "A background agent has no MCP tools and cannot ask the user."),
  built("TLS-10", "The model sees only its tools, and a call to another is answered with what there is."),

  built(
    "MDL-1",
    "The model comes from the call, the definition, the environment or the parent, in that order.",
  ),
  built("MDL-2", "Aliases are a configured table that environment and settings override."),
  built("MDL-3", "Anthropic and any AI SDK provider work, also mixed in one tree."),
  built(
    "MDL-4",
    "An openly labelled offline model serves where it is named or a person takes the demo; a program without a key fails.",
  ),
  built("MDL-5", "The scripted model for tests is public and injects errors."),
  built("MDL-6", "Retries obey the server, never repeat acted-on output, and share one cool-down."),
  built("MDL-7", "Prompts are cached and their order stays stable."),
  built("MDL-8", "A fallback model takes over when a model is overloaded or gone, for children too."),

  built(
    "PRM-1",
    "A call passes grant, hooks, deny, ask, mode and allow in that order, and deny always wins.",
  ),
  built("PRM-2", "Each of the six modes allows, asks or refuses as described."),
  built("PRM-3", "A child's mode never widens what its parent may do."),
  built("PRM-4", "A parent's deny and ask rules hold in the child."),
  built("PRM-5", "In the background nobody is asked, and what is not allowed is refused clearly."),
  built("PRM-6", "Before a background start the caller can be asked once for the tools."),
  built("PRM-7", "An agent that was missing permission in the background can be resumed in front."),
  built("PRM-8", "Rules have a grammar per tool, and scopes merge."),
  built("PRM-9", "Every command of a shell line must be allowed on its own."),
  built("PRM-10", "Paths are made canonical before they are matched."),
  built("PRM-11", "Project files run nothing until the folder is trusted."),
  built("PRM-12", "A program can decide calls itself."),

  built("HKS-1", "All sixteen hook events fire."),
  built("HKS-2", "Hooks of every source fire inside subagents, an agent's own only for itself."),
  built("HKS-3", "Frontmatter hooks live as long as their agent, and the flat form is accepted."),
  built("HKS-4", "Matchers are names, alternatives, expressions or everything."),
  built("HKS-5", "A command hook reads the event as JSON."),
  built("HKS-6", "Exit codes decide, and a broken guard lets nothing through."),
  built("HKS-7", "Hooks are commands, requests, prompts, agents or functions."),
  built("HKS-8", "Every start has exactly one stop, and a stop hook can send the agent on."),
  built("HKS-9", "Hooks of one event run together under a time limit."),

  built("SKL-1", "Named skills are in full in the child's prompt."),
  built("SKL-2", "Skills are not inherited, and an unknown one is a warning."),
  built("SKL-3", "The Skill tool loads on demand, and a skill may fork into a subagent."),

  built("MEM-1", "`memory` gives an agent a directory of its scope."),
  built("MEM-2", "The start of the memory file is in the prompt once, and cuts are said."),

  built("SPN-1", "A spawn goes through its steps in order, each visible."),
  built("SPN-2", "An unknown type is answered with the known ones and the nearest."),
  built("SPN-3", "The child starts with its own context and not its parent's conversation."),
  built("SPN-4", "A run is decided completely beforehand, as data that can be shown."),
  built("SPN-5", "Agent calls of one message run together."),
  built("SPN-6", "Whatever the end, everything held is released."),
  built("SPN-7", "A worktree isolates, is kept when changed, and is never faked."),

  built("AGT-1", "The Agent tool takes its input under both names and explains bad values."),
  built("AGT-2", "Its description lists the available agents with their tools."),
  built("AGT-3", "Its output is completed, launched or entered."),
  built("AGT-4", "The parent gets bounded text, the id and the totals."),
  built("AGT-5", "Every ending has one shape, and no success is empty."),
  built("AGT-6", "A child's text cannot pose as control text."),

  built("TSK-1", "TaskOutput reads what there is, or waits up to its limit."),
  built("TSK-2", "TaskStop ends an agent with all its processes and keeps its work."),
  built("TSK-3", "An unknown id is answered with the known ones, and stopping twice is fine."),
  built("TSK-4", "A program lists all tasks with their state and last sign of life."),

  built("BGR-1", "A background start returns immediately with an id and a growing file."),
  built("BGR-2", "The parent is informed of the end in its next turn."),
  built("BGR-3", "A running agent can be moved to the background."),
  built("BGR-4", "One environment variable switches the background off."),
  built("BGR-5", "A printing run waits for its background agents."),
  built("BGR-6", "By setting, agents in the background keep MCP tools and may ask."),

  built("TRN-1", "Transcripts are where existing viewers look for them."),
  built("TRN-2", "Each message is on disk before the next step, and a torn line is survived."),
  built("TRN-3", "Resuming continues the same agent and repeats no call in silence."),
  built("TRN-4", "After a crash, running children are found and can be resumed."),
  built("TRN-5", "Compacting the main conversation leaves children alone."),
  built("TRN-6", "Old transcripts are removed, running ones never."),
  built("TRN-7", "What is not an id is refused."),

  built("CMP-1", "A child compacts itself near the end of its window."),
  built("CMP-2", "Compaction leaves a boundary line."),
  built("CMP-3", "Compaction parts no call from its result and keeps the task."),
  built("CMP-4", "A conversation the provider finds too long is compacted and tried once more."),

  built("LIM-1", "The number of concurrent agents is limited."),
  built("LIM-2", "At the turn limit an agent hands in what it has."),
  built("LIM-3", "Time, tokens and money are limited per agent and tree, reserved beforehand."),
  built("LIM-4", "Every task counts its tokens, tools, time and cost."),
  built("LIM-5", "A silent agent is reported, then stopped."),
  built("LIM-6", "Repetition is pointed out, ends a run only at a high limit, and polling is work."),
  built("LIM-7", "Where a quota is used up, agents hand in their state, wait, and continue after the reset."),

  built("MCP-1", "Servers come from every usual place over every transport."),
  built("MCP-2", "An agent's own server lives as long as the agent, and a dead one is restarted."),
  built("MCP-3", "Retinue itself serves its agents over MCP."),
  built("MCP-4", "Servers that need OAuth work, and tokens stay secret."),
  built("MCP-5", "Many MCP tools are loaded on demand, with any provider."),

  built("TEA-1", "A team is a lead with lasting teammates."),
  built("TEA-2", "Teams keep their state in the known files."),
  built("TEA-3", "Seven tools run a team."),
  built("TEA-4", "Two members never hold the same task."),
  built("TEA-5", "Mail arrives once and in order and wakes the idle."),
  built("TEA-6", "Team hooks can send a teammate back to work."),
  built("TEA-7", "A teammate honours its definition and cannot spawn."),
  built("TEA-8", "Teammates run here, as processes or as panes."),
  built("TEA-9", "Work is handed in by text, file or message, and failure as failure."),

  built("CLI-1", "The command line is interactive or prints, with the flags people know."),
  built("CLI-2", "`retinue agents` lists, shows, makes and checks definitions, and rates descriptions."),
  built("CLI-3", "Plans and tasks can be seen and steered from any terminal."),
  built("CLI-4", "The terminal shows the tree of agents live."),
  built("CLI-5", "`retinue doctor` checks the set-up and says what to do."),
  built("CLI-6", "Errors are one sentence and an exit code, without stack traces."),
  built("CLI-7", "An unknown command is an error with the nearest one, and a run without a key fails."),
  built(
    "CLI-8",
    "Sessions are listed and found by a part of their names; after Ctrl+C it says what was stopped and how to continue.",
  ),

  built("SDK-1", "Two lines spawn an agent, and its handle streams, stops and takes messages."),
  built("SDK-2", "The tools can be handed to a program's own loop."),
  built("SDK-3", "Everything ends by signal or disposal."),
  built("SDK-4", "An agent's output can be checked against a schema."),

  partly("DRP-1", "Programs on the Claude Agent SDK run unchanged.", "docs/agent-sdk.md names what differs."),
  built("DRP-2", "What a host asked for and is not honoured ends the start with an error."),
  partly(
    "DRP-3",
    "Shell lines written for `claude` work.",
    "Worktrees, the cloud and installing plugins are refused by name.",
  ),
  built("DRP-4", "Editors are served over the Agent Client Protocol."),

  built(
    "CLU-1",
    "A store is in files or in PostgreSQL behind one contract, and without one nothing of it is loaded.",
  ),
  built("CLU-2", "A plan is plain JSON that another process can carry out."),
  built(
    "CLU-3",
    "A worker that dies or freezes is replaced; nothing is lost or repeated; a revived one is refused.",
  ),
  built("CLU-4", "An agent that waits for a person, a message or a child holds no slot and no process."),
  built("CLU-5", "Limits, budgets and cool-downs hold over all workers."),
  built("CLU-6", "The workspace of an agent follows it, or the plan says that it cannot."),
  built(
    "CLU-7",
    "No unknown error and none of a machine or the store is final: the agent is given back, and a dead letter can be revived.",
  ),

  built(
    "APR-1",
    "Where the user chose it, a question without a person waits, holds no slot, and is answered from anywhere, also after a restart.",
  ),
  built(
    "APR-2",
    "A grant has a scope, is listed, revoked and journaled, and is never wider than the person's own settings.",
  ),
  built(
    "APR-3",
    "A call is judged again after an answer; what differs from what was asked about, down to the scripts it runs, is asked again.",
  ),

  built(
    "RPL-1",
    "A recorded run is replayed without a model, with the same requests, and becomes a test in one command.",
  ),
  built("RPL-2", "From any message on a replay can differ, and it shows where."),

  built(
    "OTL-1",
    "Spans and metrics follow the GenAI conventions, contents are off by default, and context reaches processes.",
  ),

  built(
    "STU-1",
    "`retinue studio` shows running and past sessions live in a browser, on loopback with a token; the HTML export is the same page.",
  ),
  built("STU-2", "Everything that the page does goes through the runtime and is journaled with who did it."),

  built(
    "VRF-1",
    "Checks that a definition, call, setting or step names are run by the runtime after the last turn.",
  ),
  built("VRF-2", "Every result has a status and a receipt, the same everywhere."),
  built(
    "VRF-3",
    "A failed check goes back to the agent, a limited number of times; one that cannot run is no pass.",
  ),
  built("VRF-4", "Facts from the journal stand beside the result."),

  built("BIL-1", "Before children start, a band of money and tokens is shown beside their rights."),
  built("BIL-2", "Above a threshold a batch is asked about once, before anything starts."),
  built("BIL-3", "Inspection shows what was quoted and what it came to."),

  built("WFL-1", "Workflow scripts run unchanged."),
  built("WFL-2", "A script has only its arguments and its functions, and runs apart, under limits."),
  built("WFL-3", "Finished steps are keyed by content and never paid twice."),
  built("WFL-4", "A workflow has one budget, limits, a breaker and one question."),
  built(
    "WFL-5",
    "Workflows can be planned, run, resumed, listed and shown, from the command line, in code and on a store.",
  ),

  built("PRT-1", "Agent files of other products are read with the omission rules of their product."),
  built("PRT-2", "Agent files are converted between all formats, and canonical files survive a round trip."),
  built("PRT-3", "No conversion widens rights silently."),
  built("PRT-4", "A lock file holds hashes and computed rights, and a check reports what changed."),

  built("FRN-1", "An agent of another vendor runs as a child over the Agent Client Protocol."),
  built(
    "FRN-2",
    "Rules hold for it as far as the protocol lets us, the plan says what it can do unasked, and the sandbox of the settings holds it.",
  ),

  built(
    "NST-1",
    "A subagent starts agents only where its definition names them and the settings allow a depth.",
  ),

  built(
    "MRG-1",
    "The worktrees of a session's children are brought back by one command, checked and in order.",
  ),

  built("PUB-1", "JSON Schemas are generated from the tables of the source."),
  built("PUB-2", "The docs are a site with search, and every example on it runs."),
  partly(
    "PUB-3",
    "What people expect of a public project: security and privacy statements, forms, a release procedure, a container, an action, registry entries.",
    "The workflows and the container image have not run anywhere yet.",
  ),
];

function built(id: string, title: string): Requirement {
  return { id, title, state: "built" };
}

function partly(id: string, title: string, note: string): Requirement {
  return { id, title, state: "partly", note };
}
