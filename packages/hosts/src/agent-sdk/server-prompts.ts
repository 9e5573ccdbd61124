import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { UserMessage } from "@retinue/core/conversation/message.ts";
import type { SessionPorts } from "@retinue/core/kernel/session-ports.ts";

/** The connected MCP servers of a session. */
export type ServerConnections = Parameters<NonNullable<SessionPorts["serversConnected"]>>[0];
type ServerPrompt = Awaited<ReturnType<ServerConnections["prompts"]>>[number];

/** The prompts of MCP servers, which people call like commands: `/mcp__server__prompt words`. */
export interface ServerPrompts {
  /** Asks the connected servers for what they offer. */
  load(signal: AbortSignal): Promise<void>;
  /** As commands that a host may offer. */
  commands(): readonly (JsonRecord & { readonly name: string })[];
  /** What the server makes of a prompt; undefined where the name is none of theirs. */
  expand(name: string, words: string, signal: AbortSignal): Promise<UserMessage["content"]> | undefined;
}

export function createServerPrompts(connections: () => ServerConnections | undefined): ServerPrompts {
  let known: readonly ServerPrompt[] = [];
  return {
    async load(signal) {
      known = (await connections()?.prompts({ signal })) ?? [];
    },
    commands: () =>
      known.map((prompt) => ({
        name: prompt.command,
        description: prompt.description,
        argumentHint: prompt.arguments.map((each) => `[${each}]`).join(" "),
      })),
    expand(name, words, signal) {
      const prompt = known.find((each) => each.command === name);
      const open = connections();
      return prompt === undefined || open === undefined ? undefined : read(prompt, words, { open, signal });
    },
  };
}

async function read(
  { server, name, arguments: names }: ServerPrompt,
  words: string,
  { open, signal }: { readonly open: Pick<ServerConnections, "request">; readonly signal: AbortSignal },
): Promise<UserMessage["content"]> {
  const given = words.split(/\s+/).filter((word) => word !== "");
  const last = names.length - 1;
  // The last argument takes all words that are left.
  const values = names.map((_, at) => (at === last ? given.slice(at).join(" ") : given[at]));
  const filled = names.flatMap((each, at) => (values[at] ? [[each, values[at]] as const] : []));
  const end = await open.request(
    server,
    "prompts/get",
    { name, arguments: Object.fromEntries(filled) },
    { signal },
  );
  if (end.type !== "answered") throw new RetinueError("prompt-failed", end.reason);
  const messages = isRecord(end.result) ? end.result["messages"] : undefined;
  const blocks = (Array.isArray(messages) ? messages.filter(isRecord) : []).flatMap(({ content }) =>
    isRecord(content) && content["type"] === "text" && typeof content["text"] === "string"
      ? [{ type: "text", text: content["text"] } as const]
      : [],
  );
  if (blocks.length === 0)
    throw new RetinueError("prompt-failed", `The prompt ${name} of the MCP server ${server} has no text.`);
  return blocks;
}
