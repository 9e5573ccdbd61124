import { behindParents } from "../../shared/behind-parents.ts";
import { plural } from "../../shared/format.ts";
import { type Row, span } from "../screen/row.ts";
import { dim } from "../screen/style.ts";
import type { AgentSnapshot } from "../session/terminal-session.ts";
import { agentRows, isRunning } from "../text/agent-rows.ts";

export interface BoardView {
  readonly width: number;
  readonly now: number;
  readonly asking: ReadonlySet<string>;
  readonly maxRows: number;
}

const maxEnded = 100;

/** The agents of the conversation. Those that run are shown; those that ended can still be opened. */
export class AgentBoard {
  readonly #agents = new Map<string, AgentSnapshot>();
  /** Runs of workflows, whose agents are in rows of their own. */
  readonly #workflows = new Set<string>();
  #selected: string | undefined;

  get selected(): string | undefined {
    return this.#selected;
  }

  get(id: string): AgentSnapshot | undefined {
    return this.#agents.get(id);
  }

  all(): readonly AgentSnapshot[] {
    return [...this.#agents.values()];
  }

  running(): readonly AgentSnapshot[] {
    return this.all().filter(isRunning);
  }

  hasWorkflow(runId: string): void {
    this.#workflows.add(runId);
  }

  /** It works for a workflow. */
  isStep({ id }: AgentSnapshot): boolean {
    return [...this.#workflows].some((runId) => id.startsWith(`${runId}-`));
  }

  /** True when this is how the agent ended. */
  onEvent(agent: AgentSnapshot): boolean {
    const before = this.#agents.get(agent.id);
    this.#agents.set(agent.id, agent);
    this.#forgetOldest();
    const hasEnded = !isRunning(agent) && (before === undefined || isRunning(before));
    if (hasEnded && this.#selected === agent.id) this.#selected = this.running()[0]?.id;
    return hasEnded;
  }

  clear(): void {
    this.#agents.clear();
    this.#selected = undefined;
  }

  /** Moves the selection; false when it would leave the list upwards. */
  select(step: "first" | 1 | -1): boolean {
    const agents = this.running();
    const at = step === "first" ? 0 : agents.findIndex(({ id }) => id === this.#selected) + step;
    if (at < 0 || agents.length === 0) return false;
    this.#selected = agents[Math.min(at, agents.length - 1)]?.id;
    return true;
  }

  unselect(): void {
    this.#selected = undefined;
  }

  rows({ width, now, asking, maxRows }: BoardView): readonly Row[] {
    const agents = this.#inOrder(asking);
    if (agents.length === 0) return [];
    const chosen = agents.findIndex(({ id }) => id === this.#selected);
    const first = Math.max(0, Math.min(chosen - maxRows + 1, agents.length - maxRows));
    const shown = agents.slice(first, first + maxRows);
    const left = agents.length - shown.length;
    const rows = agentRows(shown, { width, now, asking, selected: this.#selected });
    return left > 0
      ? [...rows, [span(`    and ${plural(left, "more agent")} (ctrl+t shows all)`, dim)]]
      : rows;
  }

  /** Who waits for an answer comes first, then what is waited for, then the background; each with those it has started. */
  #inOrder(asking: ReadonlySet<string>): readonly AgentSnapshot[] {
    const rank = ({ id, state, isBackground }: AgentSnapshot): number => {
      if (asking.has(id)) return 0;
      if (state === "queued") return 3;
      return isBackground ? 2 : 1;
    };
    const shown = this.running().filter((agent) => asking.has(agent.id) || !this.isStep(agent));
    return behindParents(shown.toSorted((a, b) => rank(a) - rank(b)));
  }

  #forgetOldest(): void {
    const ended = this.all().filter((agent) => !isRunning(agent));
    for (const { id } of ended.slice(0, Math.max(0, ended.length - maxEnded))) this.#agents.delete(id);
  }
}
