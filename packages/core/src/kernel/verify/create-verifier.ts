import { isAbsolute } from "node:path";
import { escapeNames } from "@retinue/base/foundation/escape-control-tags.ts";
import type { UserMessage } from "../../conversation/message.ts";
import {
  type ChangedFile,
  type CheckRun,
  changesOfChecks,
  factsOf,
  maxChangedFiles,
  type Receipt,
  type RunFacts,
  statusOf,
  whyFailed,
  withFlaky,
} from "../../conversation/receipt.ts";
import type { Authorization, CallRequest, VerifyPort } from "../../loop/loop-ports.ts";
import type { AgentPlan, PlannedCheck } from "../../planning/agent-plan.ts";
import type { Tool, ToolContext } from "../../tools/tool.ts";
import type { Capability } from "../agent/open-agent.ts";
import type { TypedOutput } from "../options/typed-output.ts";
import { createCheckRunner, notRun } from "./create-check-runner.ts";
import type { TreeView } from "./look-at-tree.ts";

export interface VerifierParts {
  readonly plan: AgentPlan;
  /** Over the definition; absent for an agent without one. */
  readonly definition?: string | undefined;
  /** The session's shell. */
  readonly bash: Tool | undefined;
  /** Decides about a check as about a command of whom named it. */
  readonly authorize: (
    check: PlannedCheck,
    request: CallRequest,
    options: { readonly signal: AbortSignal },
  ) => Promise<Authorization>;
  readonly context: (callId: string, signal: AbortSignal) => ToolContext;
  readonly look: (changed: readonly string[], signal: AbortSignal, base?: TreeView) => Promise<TreeView>;
  readonly changedBetween: (
    before: TreeView,
    after: TreeView,
    signal: AbortSignal,
  ) => Promise<readonly ChangedFile[] | undefined>;
  readonly now: () => number;
  readonly output?: Pick<TypedOutput, "value" | "begin"> | undefined;
}

export type Verifier = Capability & {
  readonly verify: VerifyPort;
  /** The receipt as it is now, for listeners that are notified of the end before it is there. */
  readonly current: (text?: string) => Receipt;
  /** Runs the checks on the work as it is now; a text says which do not pass. Nothing goes back to the agent for it. */
  readonly refuseUnchecked: (signal: AbortSignal) => Promise<string | undefined>;
};

/** How often a failed check goes back to the agent by default. */
const defaultRetries = 2;

/** Collects what a receipt reports about a run, and runs the checks of its plan after the last turn. */
export function createVerifier(parts: VerifierParts): Verifier {
  const { plan, output } = parts;
  const checks = plan.verify?.checks ?? [];
  const tracked = trackCalls(plan);
  const runner = createCheckRunner(parts);
  let state: VerifierState = { retries: 0 };
  const look = (signal: AbortSignal) => parts.look(tracked.changed(), signal, state.base);

  /** Not run again where nothing was done since they passed. */
  async function checkNow(signal: AbortSignal): Promise<Checked> {
    const { last } = state;
    if (last !== undefined && !tracked.isDirty) {
      const now = await look(signal);
      if (now.mark === last.tree.mark && isGood(last)) return last;
    }
    tracked.isDirty = false;
    const changedBetween: Between = (before, after) => parts.changedBetween(before, after, signal);
    const run = await runAll(checks, {
      run: (check) => runner.run(check, signal),
      look: () => look(signal),
      changedBetween,
      failedBefore: state.failed,
    });
    const { base } = state;
    const changes = base === undefined ? undefined : await changedBetween(base, run.tree);
    state = { ...state, last: run, changes, ...(hasFailed(run) ? { failed: run } : {}) };
    return run;
  }

  const check: VerifyPort["check"] = async (_text, { signal }) => {
    if (checks.length === 0) return undefined;
    const checked = await checkNow(signal);
    // What was cut off is not given back.
    signal.throwIfAborted();
    if (isGood(checked) || state.retries >= (plan.verify?.retries ?? defaultRetries)) return undefined;
    const fixable = checked.runs.filter(({ passed, notRun: isLeft }) => !passed && isLeft !== true);
    // The agent cannot do anything about a check that is not allowed to run.
    if (checked.isStable && fixable.length === 0) return undefined;
    state = { ...state, retries: state.retries + 1 };
    output?.begin();
    return feedback({ ...checked, runs: fixable });
  };

  function receiptOf(runs: readonly CheckRun[], text: string): Receipt {
    const all = [...runs, ...typedCheck(output)];
    const { last, retries } = state;
    const isStale = last !== undefined && (!last.isStable || tracked.isDirty);
    const { changedFiles, notes } = changesIn(state, { tracked, runs, text });
    return {
      status: statusOf(all, isStale),
      checks: all,
      ...(last === undefined ? {} : { tree: { kind: last.tree.kind, digest: last.tree.digest } }),
      retries,
      changedFiles: changedFiles.slice(0, maxChangedFiles),
      tools: tracked.tools(),
      model: plan.model.value,
      definition: parts.definition,
      notes,
    };
  }

  const current = (text = ""): Receipt =>
    receiptOf(state.last?.runs ?? checks.map((one) => notRun(one, "it has not run yet")), text);

  /** Nothing that ran before counts, because it does not reflect the present state. */
  function withoutChecks(why: string, text: string): Receipt {
    state = { retries: state.retries };
    return receiptOf(
      checks.map((one) => notRun(one, why)),
      text,
    );
  }

  const receipt: VerifyPort["receipt"] = async ({ status, text }, { signal }) => {
    if (checks.length === 0) return receiptOf([], text);
    if (status === "failed") return withoutChecks("the agent failed before", text);
    if (signal.aborted || status === "stopped") return withoutChecks("the agent was stopped before", text);
    try {
      const { last } = state;
      const now = last === undefined ? undefined : await look(signal);
      if (now === undefined || tracked.isDirty || now.mark !== last?.tree.mark) await checkNow(signal);
      return current(text);
    } catch (error) {
      return withoutChecks(error instanceof Error ? error.message : String(error), text);
    }
  };

  async function begin(signal: AbortSignal): Promise<void> {
    tracked.reset();
    if (checks.length === 0) return;
    state = { retries: 0, base: await parts.look([], signal) };
    await runner.askAll(checks, signal);
  }

  async function refuseUnchecked(signal: AbortSignal): Promise<string | undefined> {
    if (checks.length === 0) return undefined;
    const checked = await checkNow(signal);
    return isGood(checked) ? undefined : `the checks of this work do not pass.\n\n${failuresOf(checked)}`;
  }

  return {
    refuseUnchecked,
    verify: { begin, check, receipt },
    current,
    beforeEnd: check,
    async prepare(content, signal) {
      await begin(signal);
      return { type: "ready", content };
    },
    async afterCall(request, outcome) {
      tracked.add(request, outcome.isError === true);
      return outcome;
    },
  };
}

interface VerifierState {
  /** How often a failed check went back to the agent. */
  readonly retries: number;
  /** The tree when the work began. */
  readonly base?: TreeView;
  readonly last?: Checked;
  /** The last time that a check failed. */
  readonly failed?: Checked;
  /** The files that differ from `base`. */
  readonly changes?: readonly ChangedFile[] | undefined;
}

interface Checked {
  readonly runs: readonly CheckRun[];
  readonly tree: TreeView;
  /** The tree was the same before and after the checks. */
  readonly isStable: boolean;
  /** What was changed while they ran. */
  readonly meanwhile?: readonly ChangedFile[] | undefined;
}

type Between = (before: TreeView, after: TreeView) => Promise<readonly ChangedFile[] | undefined>;

/** Runs all checks. What they themselves leave behind is checked once more; a tree that still changes was never checked as it is. */
async function runAll(
  checks: readonly PlannedCheck[],
  {
    run,
    look,
    changedBetween,
    failedBefore,
  }: {
    readonly run: (check: PlannedCheck) => Promise<CheckRun>;
    readonly look: () => Promise<TreeView>;
    readonly changedBetween: Between;
    readonly failedBefore: Checked | undefined;
  },
): Promise<Checked> {
  let before = await look();
  for (let pass = 1; ; pass += 1) {
    const runs: CheckRun[] = [];
    for (const check of checks) {
      const isSameTree = failedBefore?.tree.mark === before.mark;
      runs.push(withFlaky(await run(check), isSameTree ? failedBefore.runs : []));
    }
    const tree = await look();
    const isStable = before.mark === tree.mark;
    const meanwhile = isStable ? undefined : await changedBetween(before, tree);
    const checked = { runs, tree, isStable, meanwhile };
    if (isStable || pass === 2 || hasFailed(checked)) return checked;
    before = tree;
  }
}

/** The files that the work has changed, and what to report beside the result. */
function changesIn(
  { last, changes }: VerifierState,
  {
    tracked,
    runs,
    text,
  }: { readonly tracked: TrackedCalls; readonly runs: readonly CheckRun[]; readonly text: string },
): Pick<Receipt, "changedFiles" | "notes"> {
  const edited = tracked.changedInside();
  // A tree shows the outcome of all edits; what is outside it only the calls show.
  const beside = last?.tree.kind === "files" ? edited : edited.filter(isAbsolute);
  const changedFiles =
    changes === undefined ? edited : [...new Set([...changes.map(({ path }) => path), ...beside])];
  const commands = runs.map(({ run }) => run);
  const notes = [
    ...factsOf(tracked.facts(text)),
    ...changesOfChecks(commands, changes ?? edited.map((path) => ({ path, isNew: false }))),
    ...(last?.isStable === false ? [staleNote(last)] : []),
    ...(last?.tree.isCut === true ? [cutNote] : []),
    ...(changedFiles.length > maxChangedFiles
      ? [`${changedFiles.length} files were changed; the first ${maxChangedFiles} are named.`]
      : []),
  ];
  return { changedFiles, notes };
}

function staleNote({ tree, meanwhile = [] }: Checked): string {
  const names = escapeNames(meanwhile.slice(0, 5).map(({ path }) => path));
  const which = names.length === 0 ? "" : ` (${names.join(", ")}${meanwhile.length > 5 ? ", …" : ""})`;
  const remedy =
    tree.kind === "git" ? "add what they write to .gitignore" : "make them write outside of this folder";
  return `The files change while the checks run${which}, so no check applies to their current state; ${remedy}.`;
}

const cutNote =
  "The folder has more files than can be checked without git, so an edit after the checks may be missed.";

function hasFailed({ runs }: Pick<Checked, "runs">): boolean {
  return runs.some(({ passed }) => !passed);
}

function isGood(checked: Checked): boolean {
  return checked.isStable && !hasFailed(checked);
}

function typedCheck(output: VerifierParts["output"]): readonly CheckRun[] {
  if (output === undefined) return [];
  const passed = output.value() !== undefined;
  const base = { kind: "output", run: "typed output", durationMs: 0, output: "" } as const;
  return [
    passed
      ? { ...base, passed }
      : { ...base, passed, reason: "no result that matches the schema was returned" },
  ];
}

/** Each check that failed with the end of its output. */
function failuresOf(checked: Checked): string {
  const { runs, isStable } = checked;
  const failed = runs.filter(({ passed }) => !passed);
  const parts = failed.map(
    (run) =>
      `\`${run.run}\` failed${whyFailed(run)}. The end of its output:\n${run.output === "" ? "(none)" : run.output}`,
  );
  return [...parts, ...(!isStable && failed.length === 0 ? [staleNote(checked)] : [])].join("\n\n");
}

function feedback(checked: Checked): UserMessage {
  const text = `The runtime has run the checks of this task on your working tree, and they do not pass.\n\n${failuresOf(checked)}\n\nFix the cause, then finish again; the checks are run anew after your last change. If it cannot be fixed, say what is wrong.`;
  return { role: "user", content: [{ type: "text", text }] };
}

/** What the calls of a run add up to. */
interface TrackedCalls {
  /** Something may have been edited since the last check. */
  isDirty: boolean;
  reset(): void;
  add(request: CallRequest, isError: boolean): void;
  /** The files that tools have changed, absolute. */
  changed(): readonly string[];
  /** The same from the agent's folder. */
  changedInside(): readonly string[];
  tools(): Readonly<Record<string, number>>;
  facts(text: string): RunFacts;
}

/** Effects of tools that leave the tree as it is. */
const harmless: ReadonlySet<string> = new Set(["read", "coordinate", "interact"]);

function trackCalls(plan: AgentPlan): TrackedCalls {
  const calls: RunFacts["calls"][number][] = [];
  const changed = new Set<string>();
  const read = new Set<string>();
  const inside = (path: string): string =>
    path.startsWith(`${plan.directory}/`) ? path.slice(plan.directory.length + 1) : path;
  return {
    isDirty: false,
    reset() {
      calls.length = 0;
      changed.clear();
      read.clear();
      this.isDirty = false;
    },
    add({ tool, input }, isError) {
      const { name, effect } = tool;
      // Only the shell's input has a command.
      const command =
        effect === "execute" && name === "Bash"
          ? (input as { readonly command?: string }).command
          : undefined;
      calls.push({ tool: name, effect, command });
      if (!harmless.has(effect)) this.isDirty = true;
      if (isError || (effect !== "edit" && effect !== "read")) return;
      for (const path of tool.pathsOf?.(input, plan.directory, plan.policy.home) ?? [])
        (effect === "edit" ? changed : read).add(path);
    },
    changed: () => [...changed],
    changedInside: () => [...changed].map(inside),
    tools() {
      const counts = new Map<string, number>();
      for (const { tool } of calls) counts.set(tool, (counts.get(tool) ?? 0) + 1);
      return Object.fromEntries(counts);
    },
    facts: (text) => ({
      calls,
      changedFiles: [...changed].map(inside),
      readFiles: [...read].map(inside),
      mayEdit: plan.tools.some(({ name }) => name === "Edit" || name === "Write"),
      text,
    }),
  };
}
