import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentTree } from "@retinue/core/kernel/agent-tree.ts";
import { hasEnded } from "@retinue/core/protocol/agent-state.ts";

/** The sessions in which the agents of a server run: its own, and earlier ones whose agents are taken up again. */
export interface HubSessions {
  /** Opened with the first agent; one that could not be opened is tried again. */
  own(): Promise<AgentTree>;
  /** An earlier session, for its children only; closed again when `release` was called and none of them runs. */
  earlier(sessionId: string): Promise<{ readonly session: AgentTree; readonly release: () => void }>;
  /** Those that are open now. */
  list(): readonly AgentTree[];
  close(): Promise<void>;
}

export interface HubSessionsOptions {
  /** Without an id, a new session. */
  readonly open: (sessionId?: string) => Promise<AgentTree>;
  /** How many earlier sessions may be open at the same time. */
  readonly maxEarlier: number;
}

interface Earlier {
  readonly opening: Promise<AgentTree>;
  session?: AgentTree;
  users: number;
}

export function createHubSessions({ open, maxEarlier }: HubSessionsOptions): HubSessions {
  const earlier = new Map<string, Earlier>();
  let owning: Promise<AgentTree> | undefined;
  let owned: AgentTree | undefined;
  let isClosed = false;

  async function openOwn(): Promise<AgentTree> {
    try {
      owned = await open();
      return owned;
    } catch (error) {
      owning = undefined;
      throw error;
    }
  }

  function refuseWhenClosed(): void {
    if (isClosed)
      throw new RetinueError("server-closed", "The server is closing, so no agent can be started.");
  }

  return {
    own() {
      refuseWhenClosed();
      owning ??= openOwn();
      return owning;
    },
    async earlier(sessionId) {
      refuseWhenClosed();
      const known = earlier.get(sessionId);
      if (known === undefined && earlier.size >= maxEarlier) throw tooManySessions(maxEarlier);
      const entry: Earlier = known ?? { opening: open(sessionId), users: 0 };
      earlier.set(sessionId, entry);
      entry.users += 1;
      try {
        const session = await entry.opening;
        entry.session = session;
        return { session, release: () => void leave(earlier, sessionId, entry).catch(() => undefined) };
      } catch (error) {
        earlier.delete(sessionId);
        throw error;
      }
    },
    list: () => [
      ...(owned === undefined ? [] : [owned]),
      ...[...earlier.values()].flatMap(({ session }) => (session === undefined ? [] : [session])),
    ],
    async close() {
      isClosed = true;
      const others = [...earlier.values()].map(({ opening }) => opening);
      const openings = owning === undefined ? others : [owning, ...others];
      await Promise.allSettled(openings.map(async (opening) => (await opening)[Symbol.asyncDispose]()));
    },
  };
}

/** The last user closes the session, but only after the last child that runs in it. */
async function leave(earlier: Map<string, Earlier>, sessionId: string, entry: Earlier): Promise<void> {
  const session = await entry.opening.catch(() => undefined);
  for (const { id } of session?.list() ?? []) await session?.get(id)?.done;
  entry.users -= 1;
  if (entry.users > 0 || session?.list().some((task) => !hasEnded(task)) === true) return;
  if (earlier.get(sessionId) === entry) earlier.delete(sessionId);
  await session?.[Symbol.asyncDispose]();
}

function tooManySessions(max: number): RetinueError {
  return new RetinueError("too-many-sessions", `Agents of ${max} earlier sessions are running already.`, {
    advice: "Wait until some of them have ended, or stop them.",
  });
}
