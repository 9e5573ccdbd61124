import { toolFacts } from "@retinue/base/foundation/tool-table.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { knownRunners } from "@retinue/config/agents/agent-runner.ts";
import { mayWiden } from "@retinue/config/agents/agent-source.ts";
import type { PolicyRule } from "@retinue/gate/permission-policy.ts";
import { formatRule } from "@retinue/gate/rules/parse-rule.ts";
import type { AgentPlan, AgentTask, PlannedRunner, RunLimits } from "./agent-plan.ts";
import type { AgentRequest, EarlierRun } from "./agent-request.ts";

export type RunnerPlanned =
  | { readonly type: "none" }
  | { readonly type: "planned"; readonly runner: PlannedRunner; readonly notes: readonly string[] }
  | { readonly type: "refused"; readonly reason: string };

export interface RunnerFacts {
  readonly request: Pick<AgentRequest, "model" | "effort">;
  readonly definition: AgentDefinition | undefined;
  readonly trusted: boolean;
  /** Absent for a main agent. */
  readonly task: AgentTask | undefined;
  readonly rights: Pick<AgentPlan, "policy" | "tools" | "mcpServers">;
  readonly limits: RunLimits | undefined;
  /** Whether calls whose price is not known are refused where money is limited. */
  readonly refusesUnknownPrice: boolean;
  /** Settings want processes in a sandbox. */
  readonly sandboxed: boolean;
  readonly earlier: Pick<EarlierRun, "runnerSession"> | undefined;
}

/**
 * Decides about the program of another vendor that does an agent's work. Rules reach what it asks us; what it does without
 * asking they do not, so it starts only where they say nothing that it could get around, or where a sandbox or a person
 * takes their place. Pure.
 */
export function planRunner(facts: RunnerFacts): RunnerPlanned {
  const { definition, task, limits, earlier } = facts;
  const runner = definition?.runner;
  if (runner === undefined || definition === undefined) return { type: "none" };
  const known = knownRunners.get(runner.name);
  const refuse = (why: string): RunnerPlanned => ({ type: "refused", reason: why });
  const misfit = refuseMisfit(facts, definition);
  if (misfit !== undefined) return refuse(misfit);
  const open = openRules(facts.rights, facts.sandboxed);
  // A person accepts that of the main agent's children. A subagent starts nothing that can do more than itself.
  const isNested = (task?.ancestors ?? []).length > 0;
  const unguarded = runner.unguarded === true && !isNested;
  if (open.length > 0 && !unguarded)
    return refuse(
      `${definition.name} runs in ${runner.name}, which also acts without asking Retinue, and could get around what is denied or limited: ${listShort(open)}. ${waysOut(facts.sandboxed, isNested)}`,
    );
  if (limits?.costUsd !== undefined && facts.refusesUnknownPrice)
    return refuse(
      `What ${runner.name} costs is known only afterwards, and the settings refuse calls of unknown price where money is limited (limits.unknownPrice).`,
    );
  if (task?.resumed === true && earlier !== undefined && earlier.runnerSession === undefined)
    return refuse(
      `${definition.name} cannot be resumed: its conversation is kept by ${runner.name}, which had not started one yet. Start the agent again.`,
    );
  const session = task?.resumed === true ? earlier?.runnerSession : undefined;
  const { model } = definition;
  return {
    type: "planned",
    runner: {
      name: runner.name,
      command: runner.command,
      env: runner.env ?? [],
      ...(known?.mode === undefined ? {} : { mode: known.mode }),
      state: known?.state,
      ...(model === undefined || model === "inherit" ? {} : { model }),
      ...(session === undefined ? {} : { session }),
      ...(unguarded ? { unguarded: true } : {}),
      ...(facts.sandboxed ? { sandboxed: true } : {}),
    },
    notes: notesOf(facts, { open, name: runner.name, unasked: known?.unasked }),
  };
}

function waysOut(sandboxed: boolean, isNested: boolean): string {
  const why = sandboxed ? "The sandbox does not keep it from that" : "There is no sandbox for it";
  const ways = [
    ...(sandboxed ? [] : ["set `sandbox.enabled` to true in the settings"]),
    isNested
      ? "have the main agent start it: an agent that a subagent starts has no more rights than the subagent, even with `unguarded: true`"
      : "write `unguarded: true` under `runner` if that is acceptable",
  ].join(", or ");
  return `${why}. ${ways[0]?.toUpperCase()}${ways.slice(1)}.`;
}

/** What was asked for and cannot be had in such a program. */
function refuseMisfit(
  { request, task, trusted }: RunnerFacts,
  definition: AgentDefinition,
): string | undefined {
  const { name, runner, source } = definition;
  const vendor = runner?.name ?? "";
  if (source.scope === "plugin") return `${name} comes from a plugin, and plugins cannot set a runner.`;
  if (!mayWiden(source, trusted))
    return `${name} would start ${vendor}, and its file is in a folder that is not trusted. Read the file, then trust the folder.`;
  if (task === undefined)
    return `${name} runs in ${vendor} and cannot be the main agent; only another agent or a program can start it.`;
  if (task.forksContext)
    return `${name} runs in ${vendor}, which cannot start with an existing conversation; leave out \`forkContext\`.`;
  if (definition.memory !== undefined)
    return `${name} runs in ${vendor}, which has no access to Retinue's memory; leave out \`memory\`.`;
  if (definition.tools?.some((entry) => /^(?:Agent|Task)\b/.test(entry)) === true)
    return `${name} runs in ${vendor}, which cannot start Retinue's agents; leave Agent out of \`tools\`.`;
  const unsupported = [
    ...(request.model !== undefined && request.model !== definition.model ? ["model"] : []),
    ...(request.effort !== undefined || definition.effort !== undefined ? ["effort"] : []),
  ];
  if (unsupported.length === 0) return undefined;
  return `${name} runs in ${vendor}, which chooses these itself; leave out \`${unsupported.join("` and `")}\`.`;
}

/** Tools without which an agent is limited in a way that the program need not respect. */
const actingTools: readonly string[] = ["Read", "Edit", "Write", "Bash"];
/** What such a program does not do by itself, because it does not have it: our agents, skills, questions and tasks. */
const ours: ReadonlySet<string | undefined> = new Set(["agent", "skill", "interact", "spawn", "coordinate"]);

/** What denies or limits and could be got around, each in a few words. A sandbox enforces the rules about files. */
export function openRules(
  { policy, tools, mcpServers = [] }: RunnerFacts["rights"],
  sandboxed: boolean,
): readonly string[] {
  const granted = new Map(tools.map((tool) => [tool.name, tool]));
  const servers = new Set(mcpServers.map(({ name }) => name));
  const missing = actingTools.filter((name) => !granted.has(name));
  const narrowed = tools.filter(
    ({ name, allowOnly, deny = [] }) =>
      actingTools.includes(name) && (allowOnly !== undefined || deny.length > 0),
  );
  return [
    ...[...policy.deny, ...policy.ask].filter((rule) => isOpen(rule, sandboxed, servers)).map(textOf),
    ...missing.map((name) => `no ${name}`),
    ...narrowed.map(({ name }) => `${name} only in part`),
    ...(policy.toolScopes ?? []).flatMap(({ deny = [], removes = [] }) => [...deny, ...removes]),
    ...mcpServers.flatMap(({ name, tools: only }) =>
      only === undefined ? [] : [`only some tools of the MCP server ${name}`],
    ),
    ...(policy.mode === "plan" ? ["the mode plan"] : []),
    ...(policy.confinement !== undefined && !sandboxed ? ["the confinement to the working directories"] : []),
  ];
}

function isOpen({ rule }: PolicyRule, sandboxed: boolean, servers: ReadonlySet<string>): boolean {
  const facts = toolFacts.get(rule.canonicalTool);
  const { specifier } = rule;
  if (rule.canonicalTool.startsWith("mcp__"))
    return [...servers].some((name) => rule.canonicalTool.startsWith(`mcp__${name}`));
  if (ours.has(facts?.effect) || ours.has(facts?.subject)) return false;
  // What a sandbox enforces: files by path, of rules that mean reading or writing.
  return !(sandboxed && specifier.type === "path" && facts?.restrictsUse !== undefined);
}

function textOf({ rule }: PolicyRule): string {
  return formatRule(rule);
}

function notesOf(
  { rights, limits, sandboxed }: RunnerFacts,
  {
    open,
    name,
    unasked,
  }: { readonly open: readonly string[]; readonly name: string; readonly unasked: string | undefined },
): readonly string[] {
  const acts = unasked ?? "may read, change and run whatever it has tools for";
  const where = sandboxed ? "in the sandbox of the settings" : "without a sandbox";
  return [
    `It runs in ${name}, ${where}. What ${name} asks about passes the rules here; without asking it ${acts}.`,
    ...(open.length === 0
      ? []
      : [`It is unguarded: ${name} could get around ${listShort(open)} where it does not ask.`]),
    ...(rights.mcpServers ?? []).map(
      (server) => `${name} calls the MCP server ${server.name} itself, with the values of its configuration.`,
    ),
    ...(limits?.costUsd === undefined && limits?.tokens === undefined
      ? []
      : [`Money and tokens of ${name} count as far as it reports them, after they were spent.`]),
  ];
}

const shown = 6;

function listShort(entries: readonly string[]): string {
  const unique = [...new Set(entries)];
  const more = unique.length > shown ? ` and ${unique.length - shown} more` : "";
  return `${unique.slice(0, shown).join(", ")}${more}`;
}
