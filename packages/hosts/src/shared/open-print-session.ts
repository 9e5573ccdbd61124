import { abortable } from "@retinue/base/foundation/abortable.ts";
import { defined } from "@retinue/base/foundation/defined.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { type AgentTree, openTree, type TreeOptions } from "@retinue/core/kernel/agent-tree.ts";
import { noCredentials } from "@retinue/core/kernel/choose-model.ts";
import {
  createHostedRuntime,
  type HostedRuntime,
  type Runtime,
} from "@retinue/core/kernel/create-runtime.ts";
import type { RuntimeOptions, SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { Session } from "@retinue/core/kernel/session.ts";
import type { SessionPorts } from "@retinue/core/kernel/session-ports.ts";
import type { CliHost } from "./cli-host.ts";
import type { CommandContext } from "./command-context.ts";
import { type RunFlags, runtimeOptionsOf } from "./flags.ts";
import { folderOptions } from "./folder-options.ts";
import { refuseBrokenOption } from "./load-agents-option.ts";
import { misuse } from "./misuse.ts";
import { stripControlCharacters } from "./strip-control-characters.ts";

/** The runtime that the options of the command line ask for. */
export function createPrintRuntime(
  context: CommandContext,
  options: RunFlags,
  { live, ...more }: RuntimeOptions & { readonly live?: SessionPorts } = {},
): HostedRuntime {
  const { host } = context;
  const { given, option } = folderOptions(context);
  if (option?.isBroken === true) throw refuseBrokenOption(option);
  const whole: RuntimeOptions = {
    // The command obeys settings files in full, unless it is called with fewer of them.
    settingSources: ["user", "project", "local"],
    ...defined(given),
    entrypoint: "cli",
    transcripts: true,
    onWarning: createNotice(host),
    telemetry: "environment",
    ...defined(runtimeOptionsOf(options, host.environment)),
    ...defined(more),
  };
  return createHostedRuntime(whole, live);
}

/** Shows what goes wrong beside the work, and keeps it in `reported`. */
export function createNotice({ stderr }: CliHost, reported = new Set<string>()): (text: string) => void {
  return (text) => {
    reported.add(text);
    stderr.write(`retinue: ${stripControlCharacters(text)}\n`);
  };
}

/** What the runtime finds wrong with a value of an option is a misuse of the command. */
const misuseCodes: ReadonlySet<string> = new Set([
  "bad-session-id",
  "invalid-rule",
  "invalid-schema",
  "invalid-mcp-config",
  "invalid-settings",
  "session-conflict",
  "unclear-model",
  "unusable-limit",
  "unusable-tools",
]);

export async function openPrintSession(
  runtime: Runtime,
  options: SessionOptions,
  signal: AbortSignal,
): Promise<Session> {
  return refusingMisuse(() => abortable(runtime.open(options), signal));
}

/** The same as a tree of agents, which is driven by ops and events. */
export function openPrintTree(options: TreeOptions): Promise<AgentTree> {
  return refusingMisuse(() => openTree(options));
}

async function refusingMisuse<Opened>(open: () => Promise<Opened>): Promise<Opened> {
  try {
    return await open();
  } catch (error) {
    if (isRetinueError(error) && misuseCodes.has(error.code)) throw misuse(error.message, error.advice);
    throw error;
  }
}

/** Refuses an answer of the offline model where it replaces a missing key instead of being chosen by name. */
export function refuseOffline(
  { model, discovered }: Pick<Session, "model" | "discovered">,
  {
    model: chosen,
    environment,
  }: { readonly model: string | undefined; readonly environment: CliHost["environment"] },
): void {
  if (model.provider !== "offline") return;
  const named = [chosen, environment["ANTHROPIC_MODEL"], discovered.settings.settings.plain.model];
  if (named.some((name) => name !== undefined && /^offline(\/|$)/i.test(name.trim()))) return;
  throw noCredentials(chosen);
}

/** Refuses to ask Anthropic without a credential, which would only be a worse error, or none at all behind a proxy. */
export function refuseKeyless(
  { model, discovered }: Pick<Session, "model" | "discovered">,
  environment: CliHost["environment"],
): void {
  if (model.provider !== "anthropic") return;
  if (keySourceOf({ model, discovered }, environment) !== "none") return;
  throw new RetinueError("no-credentials", "No API key is configured for the model.", {
    advice:
      "Save one with `retinue auth login`, or set ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or the setting apiKeyHelper.",
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
