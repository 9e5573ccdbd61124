import { allTokens, describeCost, describeDuration, describeTokens } from "./describe-duration.ts";
import { describeQuoted } from "./describe-quote.ts";
import type { InspectedReceipt, Step } from "./inspection.ts";

export interface DescribedStep {
  /** One word for what happened. */
  readonly what: string;
  readonly detail: string;
  readonly isBad: boolean;
}

/** A step in words, the same in the terminal and on the page. The texts in it are still those of the transcript. */
export function describeStep(step: Step): DescribedStep {
  switch (step.type) {
    case "prompt":
      return { what: step.isMeta ? "reported" : "asked", detail: step.text, isBad: false };
    case "turn": {
      const { usage, model, costUsd: cost, text } = step;
      const tokens = `${describeTokens(allTokens(usage) - usage.outputTokens)} in, ${describeTokens(usage.outputTokens)} out`;
      const detail = `${model}, ${tokens}, ${describeCost(cost)}${text === "" ? "" : `: ${text}`}`;
      return { what: "model", detail, isBad: false };
    }
    case "call": {
      const asked = step.asked === true ? ` [asked, ${describeDuration(step.decidedMs ?? 0)}]` : "";
      const agent = step.agentId === undefined ? "" : ` [agent ${step.agentId}]`;
      const outcome = step.outcome === "ok" ? "" : ` ${step.outcome}`;
      const reason = step.reason === undefined ? "" : `: ${step.reason}`;
      const allowed = step.allowed === undefined ? "" : ` (allowed: ${step.allowed})`;
      return {
        what: step.tool,
        detail: `${step.about}${agent}${asked}${outcome}${reason}${allowed}`.trim(),
        isBad: step.outcome !== "ok" && step.outcome !== "running",
      };
    }
    case "retry": {
      const wait = step.waitMs === undefined ? "" : `, again after ${describeDuration(step.waitMs)}`;
      return { what: "retry", detail: `${step.code}${wait}: ${step.text}`, isBad: true };
    }
    case "lost": {
      const tokens = `${describeTokens(allTokens(step.usage))} tokens`;
      return {
        what: "lost",
        detail: `an answer that broke off, ${tokens}, ${describeCost(step.costUsd)}`,
        isBad: true,
      };
    }
    case "error":
      return { what: "error", detail: step.text, isBad: true };
    case "compaction": {
      const size = [step.preTokens, step.postTokens].map((tokens) =>
        tokens === undefined ? "?" : describeTokens(tokens),
      );
      const by = step.by === undefined ? "" : `, summary by ${step.by}`;
      return {
        what: "compacted",
        detail: `${step.trigger}, ${size.join(" to ")} tokens${by}`,
        isBad: false,
      };
    }
    case "ending": {
      const error = step.error === undefined ? "" : `: ${step.error}`;
      return {
        what: "ended",
        detail: `${step.status} (${step.reason})${error}${describeReceipt(step.receipt)}${step.quote === undefined ? "" : `; ${describeQuoted(step.quote)}`}`,
        isBad: step.status === "failed" || step.receipt?.status === "failed-check",
      };
    }
  }
}

/** What the runtime vouched for, and which checks did not pass. */
function describeReceipt(receipt: InspectedReceipt | undefined): string {
  if (receipt === undefined || (receipt.checks.length === 0 && receipt.notes.length === 0)) return "";
  const failed = receipt.checks.flatMap(({ run, passed, flaky }) => {
    if (!passed) return [`failed: ${run}`];
    return flaky ? [`flaky: ${run}`] : [];
  });
  return [`; ${receipt.status}`, ...failed, ...receipt.notes].join(", ");
}
