import { describeStep } from "../../../inspection/describe-step.ts";
import { describeDuration, describeOffset } from "../../../inspection/figures.ts";
import type { InspectedAgent, Step } from "../../../inspection/inspection.ts";
import type { Paint } from "./colour.ts";
import { cutTo, stripControlCharacters, pad, wrap } from "./text-width.ts";

const maxText = 6;

/** What one agent did, step by step, one line each, then what it said last. */
export function renderAgentSteps(
  agent: InspectedAgent,
  { paint, width }: { readonly paint: Paint; readonly width: number },
): string {
  const { id, agentType, steps, startedAt = 0, result } = agent;
  const heading = id === "main" ? "STEPS OF main" : `STEPS OF ${id} (${agentType})`;
  const lines = steps.map((step) => renderStep(step, startedAt, { paint, width }));
  const said = result === undefined ? [] : [paint.dim("SAID LAST"), ...firstLines(result, width)];
  return `${[paint.dim(cutTo(stripControlCharacters(heading), width)), ...lines, ...said].join("\n")}\n`;
}

function renderStep(
  step: Step,
  start: number,
  { paint, width }: { readonly paint: Paint; readonly width: number },
): string {
  const { what, detail, isBad } = describeStep(step);
  const offset = step.at === undefined ? "?" : describeOffset(step.at - start);
  const duration = "durationMs" in step ? describeDuration(step.durationMs) : "";
  const lead = `${offset.padStart(7)} ${duration.padStart(9)}  `;
  const name = pad(cutTo(stripControlCharacters(what), 14), 14);
  const rest = cutTo(stripControlCharacters(detail), Math.max(8, width - lead.length - 15));
  return `${paint.dim(lead)}${isBad ? paint.error(name) : paint.name(name)} ${rest}`.trimEnd();
}

function firstLines(text: string, width: number): readonly string[] {
  const lines = text
    .split("\n")
    .flatMap((line) => wrap(stripControlCharacters(line), width - 2))
    .map((line) => `  ${line}`.trimEnd());
  return lines.length <= maxText ? lines : [...lines.slice(0, maxText), "  …"];
}
