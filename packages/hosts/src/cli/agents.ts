import type { ListOptions } from "../commands/agents/agents-list.ts";
import type { CommandContext } from "../shared/command-context.ts";

/** `retinue agents`: a browser where a person sits at a terminal, else the list; as JSON the sessions that are open. */
export async function agents(
  context: CommandContext,
  options: ListOptions & { readonly cwd?: string },
): Promise<number> {
  if (options.json === true)
    return (await import("../commands/agents/agents-live.ts")).agentsLive(context, options);
  const isList = options.all === true || !context.host.canAsk;
  const code = isList
    ? undefined
    : await (await import("../terminal/browse-agents.ts")).browseAgents(context);
  return code ?? (await import("../commands/agents/agents-list.ts")).agentsList(context, options);
}
