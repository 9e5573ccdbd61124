import type { RunFacts } from "../../conversation/receipt.ts";
import type { CallRequest } from "../../loop/loop-ports.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";

/** What the calls of a run add up to. */
export interface TrackedCalls {
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

export function trackCalls(plan: AgentPlan): TrackedCalls {
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
      calls.push({ tool: name, effect, ...(command === undefined ? {} : { command }) });
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
