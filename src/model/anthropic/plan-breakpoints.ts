import type { WireMessage } from "./to-wire-message.ts";

/** Where a cache entry ends: a block of a message. */
export interface Breakpoint {
  readonly message: number;
  readonly block: number;
}

interface BreakpointPlan {
  readonly tools: boolean;
  readonly system: boolean;
  readonly conversation: readonly Breakpoint[];
}

const allowed = 4;
/** The provider looks this far back from a breakpoint for an entry written earlier; a little less, to be sure. */
const reach = 15;

/**
 * Chooses at most four cache breakpoints: the end of the tools, the end of the system prompt, the end of the
 * conversation, and where the conversation ended when it was last sent, so that the entry written then is met exactly,
 * however many blocks came since. A spare one marks the sending before that. When that lies out of reach behind a long
 * message, the tools give up theirs, since the system prompt's covers them.
 */
export function planBreakpoints(
  messages: readonly WireMessage[],
  has: { readonly tools: boolean; readonly system: boolean },
): BreakpointPlan {
  const ends = endsOfSendings(messages);
  const [, second, third] = ends;
  const isFar = second !== undefined && third !== undefined && blocksBetween(messages, third, second) > reach;
  const tools = has.tools && !(isFar && has.system);
  const spare = allowed - Number(tools) - Number(has.system);
  return { tools, system: has.system, conversation: ends.slice(0, spare) };
}

/** The last blocks of this sending and of those before it, newest first. Each sending ended where an answer began. */
function endsOfSendings(messages: readonly WireMessage[]): readonly Breakpoint[] {
  const ends: Breakpoint[] = [];
  let isWanted = true;
  for (let index = messages.length - 1; index >= 0 && ends.length < allowed; index -= 1) {
    const message = messages[index];
    if (message === undefined) continue;
    const block = isWanted ? lastCacheable(message) : -1;
    if (block >= 0) {
      ends.push({ message: index, block });
      isWanted = false;
    }
    if (message.role === "assistant") isWanted = true;
  }
  return ends;
}

function lastCacheable({ content }: WireMessage): number {
  return content.findLastIndex(({ type }) => cacheable.has(type));
}

const cacheable: ReadonlySet<string> = new Set([
  "text",
  "tool_use",
  "tool_result",
  "image",
  "document",
  "server_tool_use",
  "web_search_tool_result",
  "web_fetch_tool_result",
]);

function blocksBetween(messages: readonly WireMessage[], from: Breakpoint, to: Breakpoint): number {
  let count = to.block - from.block;
  for (let index = from.message; index < to.message; index += 1)
    count += messages[index]?.content.length ?? 0;
  return count;
}
