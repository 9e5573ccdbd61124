import type { RunEnding } from "@retinue/core/conversation/run-event.ts";

/** 0 where the run is completed and none of the commands that check it has failed. */
export function codeOfEnding({ status, receipt }: Pick<RunEnding, "status" | "receipt">): 0 | 1 {
  const isChecked = receipt?.checks.some(({ kind }) => kind === "command") === true;
  const isGood = status === "completed" && !(isChecked && receipt.status === "failed-check");
  return isGood ? 0 : 1;
}
