import type { ServerContext } from "@modelcontextprotocol/server";
import { contextTokens } from "@retinue/core/conversation/usage.ts";
import type { AgentEvent } from "@retinue/core/protocol/agent-event.ts";
import type { AgentState } from "@retinue/core/protocol/agent-state.ts";
import { describeCall } from "../shared/describe-call.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";
import type { HubAgents } from "./pending-call.ts";

/** Clients give a silent call up after a minute; so much more often they are notified that it still runs. */
const heartbeatMs = 15_000;
const maxMessage = 200;

/** Reports to the client what an agent does while its call is open, if it asked for that. Returns how to end it. */
export function reportProgress(
  { mcpReq }: ServerContext,
  agents: HubAgents,
  isMeant: (state: AgentState) => boolean,
): () => void {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return () => undefined;
  let latest: string | undefined;
  // A client that asks about a running one is notified first of what it does.
  const known = agents.list().find(isMeant);
  let last = known === undefined ? "starting" : describe(known, known.activity);
  let isSending = false;
  let isOver = false;
  let progress = 0;

  /** Sends the newest only: a client that reads slowly gets fewer messages, not a long queue. */
  async function send(): Promise<void> {
    if (isSending) return;
    isSending = true;
    while (latest !== undefined && !isOver) {
      const message = latest;
      latest = undefined;
      progress += 1;
      const params = { progressToken, progress, message };
      await mcpReq.notify({ method: "notifications/progress", params }).catch(() => {
        isOver = true;
      });
    }
    isSending = false;
  }

  function report(message: string): void {
    last = message;
    latest = message;
    void send();
  }

  if (known !== undefined) report(last);
  const timer = setInterval(() => report(last), heartbeatMs).unref();
  const forget = agents.onEvent((event) => {
    const state = isSign(event) ? agents.get(event.agentId)?.state() : undefined;
    if (state === undefined || isOver || !isMeant(state)) return;
    report(describe(state, event.type === "call-started" ? describeCall(event.call) : state.activity));
  });
  return () => {
    isOver = true;
    clearInterval(timer);
    forget();
  };
}

/** Other events change nothing of what is reported. */
function isSign({ type }: AgentEvent): boolean {
  return type === "call-started" || type === "turn-started" || type === "model-retried";
}

/** One line: what it does now, turns, tokens. */
function describe(state: AgentState, doing: string): string {
  const tokens = contextTokens(state.usage) + state.usage.outputTokens;
  const text = `${state.agentType}: ${doing}`.slice(0, maxMessage).toWellFormed();
  return stripControlCharacters(`${text} (turns ${state.turns}, tokens ${tokens})`);
}
