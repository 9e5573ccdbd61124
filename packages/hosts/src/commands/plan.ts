import { placeText } from "@retinue/base/foundation/diagnostic.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import {
  describeBasis,
  describeMoney,
  describeRange,
  describeTime,
  describeTokenCount,
  type QuotedAgent,
} from "@retinue/core/inspection/describe-quote.ts";
import { describeTask } from "@retinue/core/kernel/options/spawn-options.ts";
import {
  type AgentDefinition,
  type ChildPlan,
  type Decided,
  describeRule,
  type Overridden,
  type PlanOrigin,
  planOrigins,
  type RunLimits,
  type RunPlan,
} from "@retinue/core/kernel/project/plan-origins.ts";
import { scopeWords } from "@retinue/core/kernel/project/project-agents.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { displayPath } from "../shared/display-path.ts";
import type { RunFlags } from "../shared/flags.ts";
import { misuse } from "../shared/misuse.ts";
import { createPrintRuntime, openPrintSession } from "../shared/open-print-session.ts";
import { createPaint } from "../shared/paint.ts";
import { readPrintOptions } from "../shared/print-options.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";
import { sourceAsJson } from "./agents/source-as-json.ts";
import { renderFields, type ShownField } from "./views/render-fields.ts";

export interface PlanOptions extends RunFlags {
  readonly background?: boolean;
  readonly task?: string;
  /** Also what it would take, and what it may do. */
  readonly cost?: boolean;
  readonly json?: boolean;
}

/** `retinue plan NAME`: what a child agent would be if the main agent started it now. Starts nothing, writes nothing. */
export async function plan(
  context: CommandContext,
  name: string | undefined,
  options: PlanOptions,
): Promise<number> {
  const { host } = context;
  if (name === undefined)
    throw misuse("Which agent?", "Write its name, as in `retinue plan Explore`, or --tree for all of them.");
  const { model, ...others } = options;
  const request = readPrintOptions(others, { words: [], cwd: host.cwd, session: context.session });
  await using runtime = createPrintRuntime(context, { sessionPersistence: false });
  const sessionOptions = { ...request.session, planOnly: true };
  await using session = await openPrintSession(runtime, sessionOptions, new AbortController().signal);
  const planned = await session.planAgent({
    agentType: name,
    description: options.task === undefined ? "a plan" : describeTask(name, options.task),
    prompt: options.task ?? "",
    origin: "model",
    model,
    ...(options.background === true ? { background: true } : {}),
  });
  if (planned.type === "refused") throw new RetinueError("agent-refused", planned.reason);
  const found = session.discovered.registry.find(name);
  if (found.type === "unknown")
    throw new RetinueError("unknown-agent", `There is no agent ${JSON.stringify(name)}.`);
  const { definition, shadowed } = found.agent;
  const shadows = shadowed.map(({ source }) => source.file ?? source.scope);
  const origins = planOrigins(planned.plan, definition);
  const quote = options.cost === true ? await session.quote([planned.plan]) : undefined;
  if (options.json === true) {
    const quoted = quote === undefined ? {} : { quote };
    const answer = {
      version: 1,
      definition: sourceAsJson(definition),
      plan: planned.plan,
      origins,
      shadows,
      ...quoted,
    };
    host.stdout.write(`${JSON.stringify(answer, undefined, 2)}\n`);
    return 0;
  }
  const nameOf = (file: string): string => displayPath(file, host);
  const paint = createPaint(host.stdout.isColourAllowed);
  const width = Math.min(host.stdout.columns ?? 100, 120);
  const fields = [
    ...(quote?.agents ?? []).flatMap(describeQuotedAgent),
    ...describePlan(planned.plan, nameOf, origins),
    {
      label: "definition",
      value: nameOfSource(definition, nameOf),
      origin: scopeWords[definition.source.scope],
    },
    ...shadows.map((value) => ({ label: "shadows", value: nameOf(value) })),
  ];
  host.stdout.write(
    `${paint.bold(stripControlCharacters(planned.plan.task.agentType))}\n${renderFields(fields, paint, width)}`,
  );
  return 0;
}

/** What it would take, from what that is known, and what it may do. */
function describeQuotedAgent({
  costUsd,
  tokens,
  durationMs,
  basis,
  rights,
}: QuotedAgent): readonly ShownField[] {
  const origin =
    basis.from === "estimate"
      ? "estimated from its prompt, tools, turns and prices; no run of it is recorded here"
      : `from ${describeBasis(basis)}`;
  const right = (label: string, { level, tools }: QuotedAgent["rights"]["write"]): ShownField => ({
    label,
    value: level === "none" ? "nothing" : tools.join(", "),
  });
  return [
    {
      label: "cost",
      value:
        costUsd === undefined
          ? "unknown: its model has no known price"
          : describeRange(costUsd, describeMoney),
      origin,
    },
    { label: "tokens taken", value: describeRange(tokens, describeTokenCount) },
    { label: "time taken", value: describeRange(durationMs, describeTime) },
    right("may write", rights.write),
    right("may run", rights.run),
    right("may reach", rights.reach),
  ];
}

function nameOfSource({ source }: AgentDefinition, nameOf: (file: string) => string): string {
  if (source.file === undefined) return "no file";
  const line = source.line === undefined ? "" : `:${source.line}`;
  return `${nameOf(source.file)}${line}${source.format === undefined ? "" : `, format ${source.format}`}`;
}

/** Every decided field, where it came from, and what was specified too but did not count. */
export function describePlan(
  plan: ChildPlan,
  nameOf: (file: string) => string,
  origins: Readonly<Record<string, PlanOrigin>> = {},
): readonly ShownField[] {
  const { task, policy, overrode } = plan;
  const originOf = (key: string, description: string): string =>
    describeOrigin(origins[key], description, nameOf);
  const toolsFrom = origins["tools"]?.from;
  return [
    ...describeRunner(plan, originOf),
    { label: "model", value: modelName(plan), origin: originOf("model", plan.model.from) },
    { label: "mode", value: policy.mode, origin: originOf("permissionMode", plan.modeFrom) },
    { label: "runs", value: describeRun(plan) },
    {
      label: "tools",
      value: plan.tools.map(describeTool).join(", ") || "none",
      origin: toolsFrom === undefined ? undefined : originOf("tools", toolsFrom),
    },
    describeSpawn(plan),
    ...describeChecks(plan),
    ...describeLimits(plan),
    ...describeEffort(plan, originOf),
    {
      label: "folder",
      value: [
        plan.directory,
        ...policy.workingDirectories.filter((folder) => folder !== plan.directory),
      ].join("\n"),
    },
    ...describePlace(plan, originOf),
    ...(["deny", "ask", "allow"] as const).flatMap((list) => describeRules(list, plan, nameOf)),
    { label: "starts with", value: task.forksContext ? "its parent's conversation" : "the task alone" },
    ...(plan.memory === undefined
      ? []
      : [{ label: "memory", value: nameOf(plan.memory.directory), origin: plan.memory.scope }]),
    ...(plan.skills === undefined ? [] : [{ label: "skills", value: plan.skills.join(", ") }]),
    ...describeServers(plan),
    { label: "system prompt", value: `${plan.system.join("\n").length} characters` },
    ...(plan.reminder === undefined ? [] : [{ label: "reminder", value: plan.reminder }]),
    ...overrode.map(describeOverridden),
    ...plan.notes.map((value) => ({ label: "note", value })),
  ];
}

function describeRun({ task, policy: { backgroundKeeps = [] } }: ChildPlan): string {
  if (!task.background) return "in the foreground";
  const asks = backgroundKeeps.includes("questions") ? "it may ask" : "nobody is asked";
  return `in the background; ${asks}${backgroundKeeps.includes("mcpTools") ? ", with MCP tools" : ""}`;
}

/** Whom it may start, and how many levels there are. */
function describeSpawn({ spawn, nesting }: ChildPlan): ShownField {
  const label = "starts agents";
  if (spawn === "none" || nesting === undefined)
    return { label, value: "never", origin: "a child starts none" };
  const { depth, agents } = nesting;
  return {
    label,
    value: `${spawn === "any" ? "any" : spawn.only.join(", ")}; ${depth.value} levels, at most ${agents.value} agents`,
    origin: depth.from,
  };
}

function describeOrigin(
  { file, line, column }: Partial<PlanOrigin> = {},
  description: string,
  nameOf: (file: string) => string,
): string {
  if (file === undefined || line === undefined) return description;
  return `${description}, ${placeText({ file, line, column }, nameOf)}`;
}

/** Where it starts, and the variables of its commands. */
function describePlace(
  { cwd, env = {} }: ChildPlan,
  originOf: (key: string, said: string) => string,
): readonly ShownField[] {
  return [
    ...(cwd === undefined
      ? []
      : [{ label: "starts in", value: cwd.value, origin: originOf("cwd", cwd.from) }]),
    ...Object.entries(env).map(([name, { value, from }]) => ({
      label: "variable",
      value: `${name}=${value}`,
      origin: originOf(`env.${name}`, from),
    })),
  ];
}

/** What the runtime runs after its last turn. */
function describeChecks({ verify }: ChildPlan): readonly ShownField[] {
  return (verify?.checks ?? []).map(({ run, from, refused }) => ({
    label: "check",
    value: refused === undefined ? run : `${run} (does not run: ${refused})`,
    origin: from,
  }));
}

/** How many turns it may take, and how hard it thinks. */
function describeEffort(
  { maxTurns, effort }: ChildPlan,
  originOf: (key: string, said: string) => string,
): readonly ShownField[] {
  const turns = maxTurns && {
    label: "turns",
    value: `at most ${maxTurns.value}`,
    origin: originOf("maxTurns", maxTurns.from),
  };
  const thinks = effort && {
    label: "effort",
    value: String(effort.value),
    origin: originOf("effort", effort.from),
  };
  return [turns, thinks].filter((field) => field !== undefined);
}

/** Nothing is started for a plan, so of servers only the names are known. */
function describeServers({ mcpServers = [] }: ChildPlan): readonly ShownField[] {
  return mcpServers.map(({ name, own, tools }) => ({
    label: "server",
    value: tools === undefined ? name : `${name}, only ${tools.join(", ")}`,
    origin: own ? "the definition; runs as long as the agent" : "the session",
  }));
}

/** The program of another vendor, with what it gets and what keeps it. */
function describeRunner(
  { runner }: ChildPlan,
  originOf: (key: string, said: string) => string,
): readonly ShownField[] {
  if (runner === undefined) return [];
  const { name, command, env, session, sandboxed, unguarded } = runner;
  const guard = sandboxed === true ? "in the sandbox of the settings" : "without a sandbox";
  const parts = [
    `${name} by the Agent Client Protocol: ${command.join(" ")}`,
    `${guard}${unguarded === true ? ", unguarded" : ""}`,
    ...(env.length === 0 ? [] : [`gets ${env.join(", ")}`]),
    ...(session === undefined ? [] : [`continues ${session}`]),
  ];
  return [{ label: "runner", value: parts.join("\n"), origin: originOf("runner", "the definition") }];
}

function modelName({ chosenModel: { id, provider }, runner }: ChildPlan): string {
  if (runner !== undefined) return runner.model ?? "its own";
  return provider === undefined ? id : `${provider}/${id}`;
}

function describeTool({ name, allowOnly, deny, confinedTo, alsoIn }: ChildPlan["tools"][number]): string {
  const only = allowOnly === undefined ? "" : `(${allowOnly.join(", ")})`;
  const memory = confinedTo === undefined ? "" : " only in its memory";
  const also = alsoIn === undefined ? "" : " and in its memory";
  return `${name}${only}${memory}${also}${deny === undefined ? "" : ` but not ${deny.join(", ")}`}`;
}

function describeRules(
  list: "deny" | "ask" | "allow",
  { policy }: ChildPlan,
  nameOf: (file: string) => string,
): readonly ShownField[] {
  return policy[list].map(({ rule, anchor, from }) =>
    from === anchor
      ? { label: "may read", value: nameOf(anchor), origin: "output of the session" }
      : {
          label: list,
          value: describeRule({ rule, anchor }),
          origin: from === undefined ? "the call" : nameOf(from),
        },
  );
}

function describeOverridden({ field, value, from }: Overridden): ShownField {
  return { label: "did not count", value: `${field} ${value}`, origin: from };
}

/** What a run and its tree may take, each with where the number came from. */
export function describeLimits({
  limits = {},
  treeLimits = {},
}: Pick<RunPlan, "limits" | "treeLimits">): readonly ShownField[] {
  return [...describe(limits, ""), ...describe(treeLimits, " for the whole tree")];
}

const seconds = (milliseconds: number): string => `at most ${milliseconds / 1000} s`;

const rows: readonly [key: keyof RunLimits, label: string, show: (value: number) => string][] = [
  ["timeMs", "time", seconds],
  ["tokens", "tokens", (value) => `at most ${value}`],
  ["costUsd", "money", (value) => `at most ${value} US dollars`],
  ["toolCalls", "tool calls", (value) => `at most ${value}`],
  ["toolTimeMs", "one tool call", seconds],
  [
    "silenceMs",
    "silence",
    (value) => `reported after ${value / 1000} s, stopped after ${(2 * value) / 1000} s`,
  ],
  ["repeatedCalls", "repeated calls", (value) => `ends after ${value} equal calls without anything new`],
];

function describe(limits: RunLimits, whose: string): readonly ShownField[] {
  return rows.flatMap(([key, label, show]) => {
    const limit: Decided<number> | undefined = limits[key];
    return limit === undefined ? [] : [{ label, value: `${show(limit.value)}${whose}`, origin: limit.from }];
  });
}
