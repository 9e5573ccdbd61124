import type { PermissionMode } from "@retinue/base/foundation/option-words.ts";
import type { RuleUpdate } from "../protocol/op.ts";
import * as t from "../tools/input-type.ts";
import { defineTool, type Tool } from "../tools/tool.ts";
import type { QuestionRegistry } from "./question-registry.ts";

/** Accompanies each prompt while a session with a person is in the mode `plan`. */
export const planReminder = `<system-reminder>
The session is in plan mode: read and search as much as you need, and change nothing. When you know what to do, call ExitPlanMode with the whole plan; the person decides whether it is carried out.
</system-reminder>`;

export interface PlanToolOptions {
  readonly ask: QuestionRegistry["ask"];
  readonly mode: () => PermissionMode;
  readonly setMode: (mode: PermissionMode) => void;
  readonly update: (update: RuleUpdate) => Promise<void>;
  /** The mode the session was opened with. */
  readonly initialMode: () => PermissionMode;
  /** A person is in plan mode or not and reads every plan; a program may be asked at any time. */
  readonly asks: "person" | "program";
}

/** ExitPlanMode shows a finished plan, which is approved, changed or refused. For programs, EnterPlanMode begins planning. */
export function createPlanTools(options: PlanToolOptions): readonly Tool[] {
  const { ask, mode, setMode, update, initialMode, asks } = options;
  let modeBefore: PermissionMode | undefined;
  const isForPerson = asks === "person";
  const exit = defineTool<{ plan?: string | undefined }>({
    name: "ExitPlanMode",
    description: isForPerson
      ? "Ends plan mode: shows your finished plan to the person and asks whether it shall be carried out. Call it only in plan mode, when the plan is complete."
      : "Shows your finished plan and asks to carry it out. Call it only in plan mode, when the plan is complete; until it is approved, change nothing.",
    effect: "interact",
    ...(isForPerson
      ? {
          inputSchema: {
            type: "object",
            properties: { plan: { type: "string", description: "The whole plan, as Markdown." } },
            required: ["plan"],
          },
        }
      : { input: t.object({ plan: t.string().optional().describe("The plan, as Markdown.") }) }),
    async call({ plan }, { callId, signal, agent }) {
      const text = plan ?? "";
      if (isForPerson) {
        if (agent.id !== "main")
          return failed("Only the main agent can end plan mode; put the plan into your answer.");
        if (mode() !== "plan")
          return failed("The session is not in plan mode; there is nothing to approve. Continue.");
        if (text.trim() === "") return failed("The plan is empty; call ExitPlanMode with the whole plan.");
      }
      const answer = await ask(
        { kind: "plan", path: [{ id: agent.id, name: agent.id }], callId, plan },
        signal,
      );
      if (answer.type !== "approve") {
        const message = answer.type === "deny" ? (answer.message ?? "") : "";
        if (!isForPerson) return failed(message === "" ? "The host refused it." : message);
        const words = message === "" ? "" : ` They say: ${message}`;
        return { content: `The person did not approve the plan.${words} Stay in plan mode and revise it.` };
      }
      const started = initialMode();
      setMode(answer.mode ?? modeBefore ?? (started === "plan" ? "default" : started));
      for (const each of answer.updates ?? []) await update(each);
      const changed = answer.plan ?? text;
      if (!isForPerson)
        return {
          content: `The plan was approved. Carry it out now.\n\n${changed}`.trim(),
          data: { plan: changed, isAgent: false },
        };
      const note = changed === text ? "" : `\nThey changed it; this is what counts:\n\n${changed}`;
      return { content: `The person approved the plan; carry it out now.${note}` };
    },
  });
  if (isForPerson) return [exit];
  const enter = defineTool<Record<string, never>>({
    name: "EnterPlanMode",
    description: "Switches to planning: only looking, no changes, until a plan is approved.",
    effect: "interact",
    input: t.object({}),
    async call() {
      modeBefore = mode();
      setMode("plan");
      const message = "You are in plan mode now: look, change nothing, and end with ExitPlanMode.";
      return { content: message, data: { message } };
    },
  });
  return [exit, enter];
}

function failed(content: string): { readonly content: string; readonly isError: true } {
  return { content, isError: true };
}
