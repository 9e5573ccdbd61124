import { shellWord } from "@retinue/base/foundation/shell-word.ts";
import type { MergeQueue } from "@retinue/core/protocol/merge-step.ts";
import { plural } from "./format.ts";

/** What the merge as a whole has come to, and what a person may do now; commands of their own lines are indented. Not fit for a terminal yet. */
export function mergeOutcome(
  queue: MergeQueue,
  { applyWith }: { readonly applyWith?: string },
): readonly string[] {
  const { entries, into, applied, notApplied, status, checks } = queue;
  const inCount = entries.filter(({ state }) => state === "integrated" || state === "merged").length;
  const leftCount = entries.filter(({ state }) => state === "left").length;
  const left =
    leftCount === 0
      ? []
      : [`${plural(leftCount, "agent")} left; each branch stays until it is merged or discarded.`];
  if (status === "stopped") return ["Stopped; another merge continues."];
  const untested =
    checks.length === 0
      ? ["No checks are named, so nothing was tested; `--check 'npm test'` names one."]
      : [];
  if (applied !== undefined)
    return [
      `${applied.branch} is now at ${applied.to.slice(0, 12)}, with the changes of ${plural(inCount, "agent")}.`,
      ...untested,
      `\`git reset --keep ${applied.from.slice(0, 12)}\` takes it back to where it was.`,
      ...left,
    ];
  if (notApplied !== undefined)
    return [
      `Your branch was not brought forward: ${notApplied.reason}.`,
      ...notApplied.commands.map((command) => `  ${command}`),
      ...left,
    ];
  if (inCount === 0) return [...(leftCount === 0 ? ["There is nothing to merge."] : []), ...left];
  if (entries.every(({ state }) => state !== "integrated")) return ["Everything is in your branch.", ...left];
  const next =
    leftCount > 0
      ? `\`git merge --ff-only ${shellWord(into)}\` takes over what is there.`
      : `\`${applyWith}\` brings your branch forward to it.`;
  const head = `${into} has the changes of ${plural(inCount, "agent")}.`;
  return [head, ...untested, ...(applyWith === undefined ? [] : [next]), ...left];
}
