import type { RuntimeOptions } from "../options/runtime-options.ts";
import type { RuntimeContext } from "../runtime-context.ts";

/** Options of a runtime that hold in another process as they do here; plain JSON. */
const portable = [
  "settings",
  "settingSources",
  "pluginDirectories",
  "additionalDirectories",
  "mcpServers",
  "mcpConfig",
  "strictMcpConfig",
  "disallowedTools",
  "approvals",
  "transcripts",
  "durability",
  "entrypoint",
  "managedDirectory",
] as const satisfies readonly (keyof RuntimeOptions)[];

export type PortableOptions = Pick<RuntimeOptions, (typeof portable)[number]>;

/** What a member in a process of its own is started with, so that it finds what its lead has found. */
export function portableOptions(options: RuntimeOptions): PortableOptions {
  const { mcpServers = {}, telemetry } = options;
  // Those that are objects of the program are named by the plan, where a member needs one.
  const configured = Object.entries(mcpServers).filter(([, server]) => !("instance" in Object(server)));
  return {
    ...Object.fromEntries(
      portable.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]])),
    ),
    ...(options.mcpServers === undefined ? {} : { mcpServers: Object.fromEntries(configured) }),
    ...(telemetry === "environment" ? { telemetry } : {}),
  };
}

/** What the program does around agents that only holds in its own process; undefined when nothing of it was asked for. */
export function refusePorting({
  wrapsModels,
  wrapExecutor,
  idempotencyKey,
  live,
}: Pick<RuntimeContext, "wrapsModels" | "wrapExecutor" | "idempotencyKey" | "live">): string | undefined {
  const reasons = [
    wrapsModels === true ? "wrapModel" : undefined,
    wrapExecutor === undefined ? undefined : "wrapExecutor",
    idempotencyKey === undefined ? undefined : "idempotencyKey",
    live?.policy === undefined ? undefined : "rules that change while the session runs",
  ].filter((reason) => reason !== undefined);
  if (reasons.length === 0) return undefined;
  return `what this program does around its agents does not reach another process (${reasons.join(", ")}); use teammateMode "in-process"`;
}
