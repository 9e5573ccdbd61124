import type { WorkflowPhase } from "@retinue/config/workflows/workflow-meta.ts";
import type { CallPreview } from "@retinue/gate/approver.ts";
import type { BatchQuote } from "@retinue/gate/batch-quote.ts";
import { describeMoney, quoteRows } from "../../inspection/describe-quote.ts";
import type { SpawnRequest } from "../../planning/agent-request.ts";
import { quoteBatch } from "../../planning/quote-agent.ts";
import type { ChildSession } from "../agent/child-session.ts";
import { planChild } from "../agent/plan-child.ts";
import { stepRequest } from "./open-workflow-steps.ts";
import type { FoundWorkflow } from "./session-workflows.ts";

/** What a run of a workflow is expected to take, as far as its script and arguments say before it starts. */
export interface WorkflowBill {
  /** Its agents in the order of the script; where their number is open, one of each. */
  readonly requests: readonly SpawnRequest[];
  readonly quote: BatchQuote;
  readonly phases: readonly BilledPhase[];
  /** The commands of `verify` in its steps; undefined where one is decided while it runs. */
  readonly checks: readonly (string | undefined)[];
  /** How many agents start is decided while it runs. */
  readonly isOpen: boolean;
  /** What the run can cost at most. */
  readonly most: { readonly usd?: number; readonly from?: string; readonly agents: number };
}

export interface BilledPhase {
  /** Absent for agents outside of every phase. */
  readonly title?: string;
  readonly detail?: string;
  readonly agents: number;
  readonly isOpen: boolean;
  readonly total: BatchQuote["total"];
}

/** A run starts no more. */
const maxAgents = 1000;

export interface BillLimits {
  readonly usd?: number | undefined;
  readonly from?: string;
}

/** Undefined for a function of a program, which cannot be read before. */
export async function billWorkflow(
  { meta, text }: FoundWorkflow,
  {
    args,
    session,
    limits,
  }: { readonly args: unknown; readonly session: ChildSession; readonly limits: BillLimits },
): Promise<WorkflowBill | undefined> {
  if (text === "") return undefined;
  const { plannedSteps } = await import("@retinue/config/workflows/planned-steps.ts");
  const { steps, startsWorkflows } = plannedSteps(text, args);
  const byTitle = new Map(
    (Array.isArray(meta.phases) ? meta.phases : []).map((phase) => [phase.title, phase]),
  );
  const placed = steps.map((step) => {
    const most = byTitle.get(step.phase ?? "")?.maxAgents;
    const isBounded = step.isOpen && most !== undefined;
    return {
      phase: step.phase,
      times: Math.min(maxAgents, isBounded ? Math.max(step.times, most) : step.times),
      isOpen: step.isOpen && !isBounded,
      request: {
        ...stepRequest(step.options, "wf_00000000-000", step.phase),
        description: step.options.label ?? "step",
        prompt: step.prompt,
      } satisfies SpawnRequest,
    };
  });
  const requests = placed
    .flatMap(({ times, request }) => Array.from({ length: times }, () => request))
    .slice(0, maxAgents);
  const { quote, quoted } = await session.quotes.batch(requests, (request) => planChild(request, session));
  const phases = [...new Set([...byTitle.keys(), ...placed.map(({ phase }) => phase)])].map(
    (title): BilledPhase => {
      const own = placed.filter(({ phase }) => phase === title);
      const agents = requests.flatMap((request, at) => {
        const agent = own.some((step) => step.request === request) ? quoted[at] : undefined;
        return agent === undefined ? [] : [agent];
      });
      const { detail } = byTitle.get(title ?? "") ?? ({} as Partial<WorkflowPhase>);
      return {
        title,
        detail,
        agents: own.reduce((sum, { times }) => sum + times, 0),
        isOpen: own.some(({ isOpen }) => isOpen),
        total: quoteBatch(agents).total,
      };
    },
  );
  const { usd, from } = limits;
  return {
    requests,
    quote,
    checks: [...new Set(steps.flatMap(({ checks }) => checks))],
    phases: phases.filter(({ title, agents }) => title !== undefined || agents > 0),
    isOpen: startsWorkflows || placed.some(({ isOpen }) => isOpen),
    most: {
      agents: maxAgents,
      usd,
      ...(usd === undefined || from === undefined ? {} : { from }),
    },
  };
}

/** A workflow as people are shown it before it starts: its phases, the bill, and the whole script behind it. */
export function previewWorkflow({ meta, text, file, saved }: FoundWorkflow, bill: WorkflowBill): CallPreview {
  const place = file ?? saved?.file;
  return {
    rows: [
      `${meta.name}: ${meta.description}`,
      ...(place === undefined ? [] : [place]),
      "",
      ...billRows(bill),
    ],
    text,
  };
}

/** The bill as rows of at most 74 columns. */
export function billRows({ phases, quote, checks, isOpen, most }: WorkflowBill): readonly string[] {
  const table = phases.map(({ title, agents, isOpen: isMore, total: { costUsd } }) => [
    title === undefined ? "no phase" : `phase ${cut(title, 28)}`,
    `${agents} agent${agents === 1 ? "" : "s"}${isMore ? " or more" : ""}`,
    agents === 0 || costUsd === undefined
      ? ""
      : `likely ${describeMoney(costUsd.likely)} (${describeMoney(costUsd.low)} to ${describeMoney(costUsd.high)})`,
  ]);
  const widths = [0, 1].map((at) => Math.max(0, ...table.map((row) => row[at]?.length ?? 0)));
  // What decides comes first: where there is no room for all, the rest is cut.
  const [money = "", tokens = "", ...rest] = quoteRows(quote);
  return [
    money,
    tokens,
    ...(isOpen
      ? [
          "How many agents start is decided while it runs;",
          "of each kind that is open, the figures count one.",
        ]
      : []),
    ...(most.usd === undefined
      ? []
      : [
          `It may take at most ${describeMoney(most.usd)}${most.from === undefined ? "" : ` (${most.from})`}.`,
        ]),
    ...table.map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join("  ")
        .trimEnd(),
    ),
    ...checkRows(checks),
    ...rest,
  ];
}

/** The commands that steps are checked with. */
function checkRows(checks: WorkflowBill["checks"]): readonly string[] {
  const shown = checks
    .slice(0, maxShownChecks)
    .map((run) => cut(run ?? "a command that is decided while it runs", 62));
  const more = checks.length - shown.length;
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].map(
    (row, at) => `${at === 0 ? "checks:    " : " ".repeat(11)}${row}`,
  );
}

const maxShownChecks = 8;

function cut(text: string, width: number): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length <= width ? line : `${line.slice(0, width - 1)}…`;
}
