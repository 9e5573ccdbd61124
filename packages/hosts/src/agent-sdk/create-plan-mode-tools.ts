import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type { PermissionMode } from "@retinue/base/foundation/option-words.ts";
import type { LivePolicy } from "@retinue/core/kernel/live/live-policy.ts";
import * as z from "zod";
import { defineTool, type Tool } from "../../../../src/index.ts";
import type { ControlChannel } from "./control-channel.ts";

export interface PlanModeOptions {
  readonly channel: Pick<ControlChannel, "ask">;
  readonly policy: Pick<LivePolicy, "setMode" | "update" | "mode">;
  readonly waiting: (isWaiting: boolean) => void;
  /** The mode that planning began in. */
  readonly before: () => PermissionMode;
}

interface Planning extends PlanModeOptions {
  modeBefore: PermissionMode | undefined;
}

/** The tools by which the main agent begins planning, which only takes rights away, and asks the host to carry a plan out. */
export function createPlanModeTools(options: PlanModeOptions): readonly Tool[] {
  const planning: Planning = { ...options, modeBefore: undefined };
  return [exitTool(planning), enterTool(planning)];
}

function exitTool(planning: Planning): Tool {
  return defineTool<{ plan?: string | undefined }>({
    name: "ExitPlanMode",
    description:
      "Shows your finished plan and asks to carry it out. Call it only in plan mode, when the plan is complete; until it is approved, change nothing.",
    effect: "interact",
    input: z.object({ plan: z.string().optional().describe("The plan, as Markdown.") }),
    async call(input, { callId, signal }) {
      const answer = await ask("ExitPlanMode", { input: { ...input }, callId, signal, planning });
      if (answer["behavior"] !== "allow") return { content: refusal(answer["message"]), isError: true };
      const updates = answer["updatedPermissions"];
      const before = planning.before();
      planning.policy.setMode(planning.modeBefore ?? (before === "plan" ? "default" : before));
      for (const update of Array.isArray(updates) ? updates : []) await planning.policy.update(update);
      const changed = isRecord(answer["updatedInput"]) ? answer["updatedInput"]["plan"] : undefined;
      const plan = typeof changed === "string" ? changed : (input.plan ?? "");
      return {
        content: `The plan was approved. Carry it out now.\n\n${plan}`.trim(),
        data: { plan, isAgent: false },
      };
    },
  });
}

function enterTool(planning: Planning): Tool {
  return defineTool<Record<string, never>>({
    name: "EnterPlanMode",
    description: "Switches to planning: only looking, no changes, until a plan is approved.",
    effect: "interact",
    input: z.object({}),
    async call() {
      planning.modeBefore = planning.policy.mode() ?? planning.before();
      planning.policy.setMode("plan");
      const message = "You are in plan mode now: look, change nothing, and end with ExitPlanMode.";
      return { content: message, data: { message } };
    },
  });
}

interface PlanQuestion {
  readonly input: Readonly<Record<string, unknown>>;
  readonly callId: string;
  readonly signal: AbortSignal;
  readonly planning: Planning;
}

async function ask(
  tool: string,
  { input, callId, signal, planning }: PlanQuestion,
): Promise<Readonly<Record<string, unknown>>> {
  planning.waiting(true);
  try {
    return await planning.channel.ask(
      {
        subtype: "can_use_tool",
        tool_name: tool,
        input,
        tool_use_id: callId,
        display_name: tool,
        requires_user_interaction: true,
      },
      signal,
    );
  } finally {
    planning.waiting(false);
  }
}

function refusal(message: unknown): string {
  return typeof message === "string" && message !== "" ? message : "The host refused it.";
}
