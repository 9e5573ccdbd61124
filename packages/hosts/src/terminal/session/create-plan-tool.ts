import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type { PermissionMode } from "@retinue/base/foundation/option-words.ts";
import { defineTool, type Tool } from "../../../../../src/index.ts";
import type { PlanDecision } from "./session-questions.ts";

/** Accompanies each message while the mode is `plan`. */
export const planReminder = `<system-reminder>
The session is in plan mode: read and search as much as you need, and change nothing. When you know what to do, call ExitPlanMode with the whole plan; the person decides whether it is carried out.
</system-reminder>`;

export interface PlanToolOptions {
  readonly mode: () => string;
  readonly ask: (plan: string, signal: AbortSignal) => Promise<PlanDecision>;
  /** The mode in which the plan is carried out. */
  readonly approved: (mode: string) => void;
}

/** ExitPlanMode: shows the finished plan to the person, who approves, edits or rejects it. */
export function createPlanTool({ mode, ask, approved }: PlanToolOptions): Tool {
  return defineTool<unknown>({
    name: "ExitPlanMode",
    description:
      "Ends plan mode: shows your finished plan to the person and asks whether it shall be carried out. Call it only in plan mode, when the plan is complete.",
    effect: "interact",
    inputSchema: {
      type: "object",
      properties: { plan: { type: "string", description: "The whole plan, as Markdown." } },
      required: ["plan"],
    },
    async call(input, { signal, agent }) {
      const plan = isRecord(input) && typeof input["plan"] === "string" ? input["plan"] : "";
      if (agent.id !== "main")
        return failed("Only the main agent can end plan mode; put the plan into your answer.");
      if (mode() !== "plan")
        return failed("The session is not in plan mode; there is nothing to approve. Continue.");
      if (plan.trim() === "") return failed("The plan is empty; call ExitPlanMode with the whole plan.");
      const decision = await ask(plan, signal);
      if (!decision.isApproved) {
        const words = decision.message === "" ? "" : ` They say: ${decision.message}`;
        return { content: `The person did not approve the plan.${words} Stay in plan mode and revise it.` };
      }
      approved(decision.mode);
      const changed =
        decision.plan === plan ? "" : `\nThey changed it; this is what counts:\n\n${decision.plan}`;
      return { content: `The person approved the plan; carry it out now.${changed}` };
    },
  });
}

function failed(content: string): { readonly content: string; readonly isError: true } {
  return { content, isError: true };
}

const modes: readonly PermissionMode[] = ["default", "acceptEdits", "plan"];

/** What Shift+Tab goes through. */
export function modesFrom(
  start: PermissionMode,
  { canBypass }: { readonly canBypass: boolean },
): readonly PermissionMode[] {
  const all = canBypass || start === "bypassPermissions" ? [...modes, "bypassPermissions" as const] : modes;
  return all.includes(start) ? all : [start, ...all];
}
