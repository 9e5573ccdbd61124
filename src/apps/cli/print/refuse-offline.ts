import { RetinueError } from "../../../foundation/retinue-error.ts";
import type { Session } from "../../../runtime/session.ts";
import type { CliHost } from "../cli-host.ts";

/** What a run was asked for that the offline model, standing in for a missing key, must not pretend to give. */
export interface OfflineFacts {
  /** The value of `--model`. */
  readonly model: string | undefined;
  /** Whether a program reads the output. */
  readonly isForProgram: boolean;
  readonly environment: CliHost["environment"];
}

/** Refuses an answer of the offline model where it was not chosen by name and would be taken for a real one. */
export function refuseOffline(
  { model, discovered }: Pick<Session, "model" | "discovered">,
  facts: OfflineFacts,
): void {
  if (model.provider !== "offline") return;
  const { environment } = facts;
  const named = [facts.model, environment["ANTHROPIC_MODEL"], discovered.settings.settings.plain.model];
  if (named.some((name) => name !== undefined && /^offline(\/|$)/i.test(name.trim()))) return;
  const reason = refusalReason(facts);
  if (reason === undefined) return;
  throw new RetinueError("no-credentials", `There is no key for a model, and ${reason}.`, {
    advice:
      "Set ANTHROPIC_API_KEY or the key of another provider, or choose the offline model with --model offline.",
  });
}

function refusalReason({ model, isForProgram, environment }: OfflineFacts): string | undefined {
  if (model !== undefined && model.trim() !== "") return `the model ${JSON.stringify(model)} was asked for`;
  if (isForProgram) return "a program reads the result";
  const ci = (environment["CI"] ?? "").trim().toLowerCase();
  return ci === "" || ci === "0" || ci === "false" ? undefined : "this runs in CI";
}
