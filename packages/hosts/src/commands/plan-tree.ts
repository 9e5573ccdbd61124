import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { ChildPlan } from "@retinue/core/kernel/project/plan-origins.ts";
import type { Session } from "@retinue/core/kernel/session.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { displayPath } from "../shared/display-path.ts";
import { misuse } from "../shared/misuse.ts";
import { createPrintRuntime, openPrintSession } from "../shared/open-print-session.ts";
import { createPaint } from "../shared/paint.ts";
import { readPrintOptions } from "../shared/print-options.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";
import { describeLimits, type PlanOptions } from "./plan.ts";

/** An agent and those that it may start; `refused` where it would not be started. */
interface PlannedNode {
  readonly agent: string;
  readonly level: number;
  readonly model?: string;
  readonly mode?: string;
  readonly tools?: readonly string[];
  readonly limits?: ChildPlan["limits"];
  readonly notes?: readonly string[];
  readonly refused?: string;
  readonly starts: readonly PlannedNode[];
}

/** Definitions that name each other branch at every level; what is more than this says nothing new. */
const maxNodes = 200;

/** `retinue plan --tree`: every agent that may be started, level by level, with what it would have. Starts nothing. */
export async function planTree(
  context: CommandContext,
  name: string | undefined,
  options: PlanOptions,
): Promise<number> {
  const { host } = context;
  if (options.cost === true)
    throw misuse("--cost is for one agent, and --tree shows many.", "Write `retinue plan NAME --cost`.");
  const { model: _model, ...others } = options;
  const request = readPrintOptions(others, { words: [], cwd: host.cwd, session: context.session });
  await using runtime = createPrintRuntime(context, { sessionPersistence: false });
  await using session = await openPrintSession(
    runtime,
    { ...request.session, planOnly: true },
    new AbortController().signal,
  );
  const { registry } = session.discovered;
  const names = name === undefined ? registry.list().map(({ id }) => id) : [name];
  const grower = { session, task: options.task ?? "", left: maxNodes };
  const tree: PlannedNode[] = [];
  for (const one of names) tree.push(await grow(one, grower));
  const [only] = tree;
  if (name !== undefined && only?.refused !== undefined)
    throw new RetinueError("agent-refused", only.refused);
  const isCut = grower.left <= 0;
  const { nesting } = session.plan;
  if (options.json === true) {
    const answer = { version: 1, nesting: nesting ?? null, tree, isCut };
    host.stdout.write(`${JSON.stringify(answer, undefined, 2)}\n`);
    return 0;
  }
  const paint = createPaint(host.stdout.isColourAllowed);
  const depth =
    nesting === undefined
      ? "only the main agent starts agents; the setting limits.depth changes that"
      : `${nesting.depth.value} levels (${displayPath(nesting.depth.from, host)}), at most ${nesting.agents.value} agents below the first (${displayPath(nesting.agents.from, host)})`;
  const lines = [`${paint.bold("main")}  ${paint.dim(depth)}`, ...linesOf(tree, "", paint)];
  if (isCut) lines.push(`There are more than ${maxNodes} agents in this tree; the rest is not shown.`);
  host.stdout.write(`${lines.join("\n")}\n`);
  return 0;
}

interface TreeContext {
  readonly session: Session;
  readonly task: string;
  left: number;
}

async function grow(agent: string, grower: TreeContext, below?: ChildPlan): Promise<PlannedNode> {
  const { session, task } = grower;
  const level = below === undefined ? 1 : (below.task.ancestors ?? []).length + 2;
  grower.left -= 1;
  const planned = await session.planAgent(
    { agentType: agent, description: "a plan", prompt: task, origin: "model" },
    { below },
  );
  if (planned.type === "refused") return { agent, level, refused: planned.reason, starts: [] };
  const { plan } = planned;
  const starts: PlannedNode[] = [];
  for (const named of plan.spawn === "none" || plan.spawn === "any" ? [] : plan.spawn.only)
    if (grower.left > 0) starts.push(await grow(named, grower, plan));
  return {
    agent,
    level,
    model: plan.model.value,
    mode: plan.policy.mode,
    tools: plan.tools.map(({ name, allowOnly }) =>
      allowOnly === undefined ? name : `${name}(${allowOnly.join(", ")})`,
    ),
    limits: plan.limits,
    ...(plan.notes.length === 0 ? {} : { notes: plan.notes }),
    starts,
  };
}

function linesOf(
  nodes: readonly PlannedNode[],
  indent: string,
  paint: ReturnType<typeof createPaint>,
): readonly string[] {
  return nodes.flatMap((node, at) => {
    const isLast = at === nodes.length - 1;
    const { agent, refused, model = "", mode = "", tools = [], notes = [], starts } = node;
    const limits = describeLimits({ limits: node.limits });
    const facts = [
      model,
      mode,
      tools.join(", ") || "no tools",
      ...limits.map(({ label, value }) => `${label} ${value}`),
    ];
    const text = refused === undefined ? facts.join(" · ") : `not started: ${refused}`;
    const inner = `${indent}${isLast ? "   " : "│  "}`;
    return [
      `${indent}${isLast ? "└─ " : "├─ "}${paint.name(stripControlCharacters(agent))}  ${stripControlCharacters(text)}`,
      ...notes.map((note) => `${inner}${paint.dim(stripControlCharacters(note))}`),
      ...linesOf(starts, inner, paint),
    ];
  });
}
