import type { ServerContext } from "@modelcontextprotocol/server";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import { contextTokens } from "@retinue/core/conversation/usage.ts";
import type { SessionTasks, TaskState } from "../../../../src/index.ts";
import { describeCall } from "../shared/describe-call.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";

/** Clients give a silent call up after a minute; so much more often they hear that it still runs. */
const heartbeatMs = 15_000;
const maxMessage = 200;

/** Reports to the client what an agent does while its call is open, if it asked for that. Returns how to end it. */
export function reportProgress(
  { mcpReq }: ServerContext,
  tasks: SessionTasks,
  isMeant: (state: TaskState) => boolean,
): () => void {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return () => undefined;
  const news = tasks.watch();
  let latest: string | undefined;
  // Who asks about one that runs already hears first what it does.
  const known = tasks.list().find(isMeant);
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
  void (async () => {
    for await (const { event, state } of news) {
      if (isOver) return;
      const message = isMeant(state) ? describeEvent(event, state) : undefined;
      if (message !== undefined) report(message);
    }
  })();
  return () => {
    isOver = true;
    clearInterval(timer);
    void news.return?.();
  };
}

/** One line: what it does now, turns, tokens. Undefined for events that change nothing of it. */
function describeEvent(event: RunEvent, state: TaskState): string | undefined {
  const doing = activityOf(event, state);
  return doing === undefined ? undefined : describe(state, doing);
}

function describe(state: TaskState, doing: string): string {
  const tokens = contextTokens(state.usage) + state.usage.outputTokens;
  const text = `${state.agentType}: ${doing}`.slice(0, maxMessage).toWellFormed();
  return stripControlCharacters(`${text} (turns ${state.turns}, tokens ${tokens})`);
}

function activityOf(event: RunEvent, state: TaskState): string | undefined {
  switch (event.type) {
    case "call-started":
      return describeCall(event.call);
    case "turn-started":
    case "model-retried":
      return state.activity;
    default:
      return undefined;
  }
}
