import type { DiscoveredAgents } from "../definitions/discover-agents.ts";
import type { MayLoad } from "../permissions/may-load.ts";
import { readEnvironment } from "../settings/read-environment.ts";
import type { Instructions } from "./instructions.ts";
import { loadInstructions } from "./load-instructions.ts";

/** The instruction files of a place, as its settings and variables want them. */
export function loadSessionInstructions(
  { paths, settings }: Pick<DiscoveredAgents, "paths" | "settings">,
  environment: Readonly<Record<string, string | undefined>>,
  mayLoad: MayLoad | undefined,
  sources?: readonly ("user" | "project" | "local")[],
): Promise<Instructions> {
  const { claudeMdExcludes: excludes } = settings.settings.plain;
  return loadInstructions({
    ...paths,
    disabled: readEnvironment(environment).options.claudeMdDisabled === true,
    ...(excludes === undefined ? {} : { excludes }),
    ...(mayLoad === undefined ? {} : { mayLoad }),
    ...(sources === undefined ? {} : { sources }),
  });
}
