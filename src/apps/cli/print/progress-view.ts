import type { ToolUseBlock } from "../../../conversation/message.ts";
import type { RunEnding, RunEvent } from "../../../conversation/run-event.ts";
import type { RunPlan } from "../../../planning/run-plan.ts";
import type { CliHost } from "../cli-host.ts";
import { createPaint } from "../views/colour.ts";
import { harmless } from "../views/text-width.ts";

/** What a person at a terminal sees of a run before its result; on stderr, so that stdout stays the result alone. */
export interface ProgressView {
  begin(plan: RunPlan): void;
  show(event: RunEvent): void;
  end(ending: RunEnding): void;
}

export function createProgressView({ stderr }: CliHost): ProgressView {
  const paint = createPaint(stderr.isColourAllowed);
  const say = (text: string): void => stderr.write(`${paint.dim(harmless(text))}\n`);
  return {
    begin(plan) {
      for (const note of plan.notes) say(`note: ${note}`);
    },
    show(event) {
      if (event.type === "model-retried") {
        say(`the model did not answer (${event.code}); trying again in ${Math.ceil(event.delayMs / 1000)} s`);
      }
      if (!stderr.isTerminal) return;
      if (event.type === "call-started") say(`· ${describeCall(event.call)}`);
      if (event.type === "call-finished" && event.denied !== undefined) say(`  refused: ${event.denied}`);
    },
    end(ending) {
      if (ending.error !== undefined) stderr.write(`${paint.error("retinue:")} ${harmless(ending.error)}\n`);
      if (ending.denials.length > 0) stderr.write(`${harmless(describeDenials(ending))}\n`);
    },
  };
}

/** The tool and the one argument that tells most. */
export function describeCall({ name, input }: ToolUseBlock): string {
  const fields = typeof input === "object" && input !== null ? Object.entries(input) : [];
  const telling = ["file_path", "path", "pattern", "command", "url", "query", "description"];
  const [, value] = fields.find(([key]) => telling.includes(key)) ?? [];
  return typeof value === "string" ? `${name} ${value.split("\n")[0]?.slice(0, 100)}` : name;
}

function describeDenials({ denials }: RunEnding): string {
  const tools = [...new Set(denials.map(({ call }) => call.name))].join(",");
  const count = denials.length === 1 ? "1 call was" : `${denials.length} calls were`;
  return `${count} not allowed; unless a rule denies it, --allowedTools "${tools}" allows it.`;
}
