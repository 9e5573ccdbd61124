import type { RuntimeOptions } from "../options/runtime-options.ts";

/** Options of a runtime that hold in another process as they do here; plain JSON. */
const portable = [
  "settings",
  "settingSources",
  "pluginDirectories",
  "agentSources",
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
