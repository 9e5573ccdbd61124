import type { CommandContext } from "../../session-options.ts";
import type { ListOptions } from "./agents-list.ts";

/** `retinue agents`: a browser where a person sits at a terminal, else the list. */
export async function agents(context: CommandContext, options: ListOptions): Promise<number> {
  const isList = options.json === true || options.all === true || !context.host.canAsk;
  const code = isList
    ? undefined
    : await (await import("../../../terminal/browse-agents.ts")).browseAgents(context);
  return code ?? (await import("./agents-list.ts")).agentsList(context, options);
}
