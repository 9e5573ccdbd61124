import { randomBytes } from "node:crypto";
import type { Model, ServerTool } from "../model/model.ts";
import { createBuiltinTools } from "../tools/builtin/builtin-tool-set.ts";
import { createShellDirectories } from "../tools/builtin/shell-directories.ts";
import { webSearchServerTool } from "../tools/builtin/web-search.ts";
import type { AvailableTool } from "../tools/match-tools.ts";
import { createShells } from "../tools/shells.ts";
import type { Tool } from "../tools/tool.ts";
import type { SessionWorld } from "./open-session.ts";

export interface AssembledTools {
  readonly tools: readonly Tool[];
  /** What a plan may grant: the tools, and those the provider runs itself. */
  readonly available: readonly AvailableTool[];
  readonly webSearch?: ServerTool;
  /** The folder an agent's last command ended in. */
  readonly directory: (agentId: string) => string | undefined;
  /** Ends what is still running in the background. */
  readonly dispose: () => Promise<void>;
}

/** Makes the tools of one session; background shells belong to it and end with it. */
export function assembleTools({
  world,
  model,
}: {
  readonly world: SessionWorld;
  readonly model: Model;
}): AssembledTools {
  const shells = createShells({ newId: () => randomBytes(4).toString("hex"), now: world.now });
  const directories = createShellDirectories();
  const builtin = createBuiltinTools({ shells, directories, now: world.now });
  const tools = [...builtin, ...world.extraTools];
  const webSearch = webSearchServerTool(model.facts);
  return {
    tools,
    available: [
      ...tools.map(({ name, effect, origin }) => ({ name, effect, origin })),
      ...(webSearch === undefined
        ? []
        : [{ name: "WebSearch", effect: "network", origin: "builtin" } as const]),
    ],
    ...(webSearch === undefined ? {} : { webSearch }),
    directory: directories.of,
    dispose: async () => shells[Symbol.asyncDispose](),
  };
}
