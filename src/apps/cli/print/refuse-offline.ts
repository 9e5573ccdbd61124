import { RetinueError } from "../../../foundation/retinue-error.ts";
import type { Session } from "../../../runtime/session.ts";
import type { CliHost } from "../cli-host.ts";

/** What a run was asked for that the offline model, standing in for a missing key, must not pretend to give. */
export interface OfflineFacts {
  /** The value of `--model`. */
  readonly model: string | undefined;
  /** Whether a program reads the output. */
  readonly isForProgram: boolean;
  /** Whether the answers are kept and compared with those of others. */
  readonly isEvaluated?: boolean;
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

function refusalReason({ model, isForProgram, isEvaluated, environment }: OfflineFacts): string | undefined {
  if (model !== undefined && model.trim() !== "") return `the model ${JSON.stringify(model)} was asked for`;
  if (isEvaluated === true) return "an evaluation keeps the results";
  if (isForProgram) return "a program reads the result";
  const ci = (environment["CI"] ?? "").trim().toLowerCase();
  return ci === "" || ci === "0" || ci === "false" ? undefined : "this runs in CI";
}

/** Refuses to ask Anthropic without a credential, which would only be a worse error, or none at all behind a proxy. */
export function refuseKeyless(
  { model, discovered }: Pick<Session, "model" | "discovered">,
  environment: CliHost["environment"],
): void {
  if (model.provider !== "anthropic") return;
  if (keySourceOf({ model, discovered }, environment) !== "none") return;
  throw new RetinueError("no-credentials", "There is no key for the model.", {
    advice: "Set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, or the setting apiKeyHelper.",
  });
}

/** Which of the places a key can come from has one; never the key. */
export function keySourceOf(
  { model, discovered }: Pick<Session, "model" | "discovered">,
  environment: CliHost["environment"],
): string {
  if (model.provider !== "anthropic") return "none";
  const { env, plain } = discovered.settings.settings;
  const isSet = (name: string): boolean => (env.get(name) ?? environment[name] ?? "").trim() !== "";
  const variable = ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"].find(isSet);
  return variable ?? (plain.apiKeyHelper === undefined ? "none" : "apiKeyHelper");
}
