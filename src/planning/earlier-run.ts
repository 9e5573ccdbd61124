import type { ChildWishes } from "../permissions/child-policy.ts";
import type { PermissionMode } from "../permissions/permission-policy.ts";
import type { GrantedTool, ToolGrant } from "../tools/grants/tool-grants.ts";
import type { SpawnRequest } from "./spawn-request.ts";

/** What was decided for a child before, as far as continuing with it respects that. */
export interface EarlierRun {
  /** Of its first run: going on never adds to them. */
  readonly tools?: readonly GrantedTool[];
  /** A mode of its own that it had; counts only where it is no wider than what it may have today. */
  readonly mode?: PermissionMode;
  readonly name?: string;
  /** The call of the main agent that first asked for it. */
  readonly callId?: string;
  readonly isolation?: "worktree";
  readonly maxTurns?: number;
  readonly effort?: string | number;
  /** The task of one that never got to its first words. */
  readonly unbegun?: string;
}

/** What an interrupted child is shown when no one gives it other words. */
export const continuePrompt =
  "You were interrupted: the process that ran you ended in the middle of your work. Continue where you stopped. Before you repeat something that changes anything, check whether it happened.";

/** What the call leaves open is as it was before; a task that was never begun comes before new words. */
export function withEarlier(request: SpawnRequest, earlier: EarlierRun | undefined): SpawnRequest {
  if (earlier === undefined) return request;
  const { name, callId, isolation, maxTurns, effort, unbegun } = earlier;
  return {
    ...(callId === undefined ? {} : { callId }),
    ...(name === undefined ? {} : { name }),
    ...(isolation === undefined ? {} : { isolation }),
    ...(maxTurns === undefined ? {} : { maxTurns }),
    ...(effort === undefined ? {} : { effort }),
    ...request,
    ...(unbegun === undefined ? {} : { prompt: taskFirst(unbegun, request.prompt) }),
  };
}

/** One that never began was not interrupted in anything, so the standard words mean nothing to it. */
function taskFirst(task: string, words: string): string {
  return words === continuePrompt ? task : `${task}\n\n${words}`;
}

/** A mode that the child had of its own stays, as if a model asked for it: where that is no wider than today's. */
export function callMode(
  { mode, origin }: Pick<SpawnRequest, "mode" | "origin">,
  earlier: Pick<EarlierRun, "mode"> | undefined,
): Pick<ChildWishes, "call"> {
  if (mode !== undefined) return { call: { mode, by: origin } };
  return earlier?.mode === undefined ? {} : { call: { mode: earlier.mode, by: "model" } };
}

/** What a resumed child is granted: never more than in its first run, unless a program says so. */
export function keptGrant(
  grant: ToolGrant,
  { keepTools, origin }: Pick<SpawnRequest, "keepTools" | "origin">,
  earlier: Pick<EarlierRun, "tools"> | undefined,
): ToolGrant {
  if (grant.type === "refused" || (keepTools === false && origin === "program")) return grant;
  return { ...grant, tools: withinEarlier(grant.tools, earlier?.tools) };
}

/** The tools of today that the child had before, each no further than it went then. */
function withinEarlier(
  tools: readonly GrantedTool[],
  earlier: readonly GrantedTool[] | undefined,
): readonly GrantedTool[] {
  if (earlier === undefined) return tools;
  const before = new Map(earlier.map((tool) => [tool.name, tool]));
  return tools.flatMap((tool) => {
    const had = before.get(tool.name);
    return had === undefined ? [] : narrowed(tool, had);
  });
}

function narrowed(tool: GrantedTool, had: GrantedTool): readonly GrantedTool[] {
  const allowOnly = both(tool.allowOnly, had.allowOnly);
  if (allowOnly?.length === 0 && tool.alsoIn === undefined) return [];
  const deny = [...new Set([...(tool.deny ?? []), ...(had.deny ?? [])])];
  const { alsoIn, confinedTo } = tool;
  const isConfined = confinedTo !== undefined || had.confinedTo !== undefined;
  const isAlso = alsoIn !== undefined && (had.alsoIn !== undefined || had.allowOnly === undefined);
  return [
    {
      name: tool.name,
      ...(allowOnly === undefined ? {} : { allowOnly }),
      ...(deny.length === 0 ? {} : { deny }),
      ...(isConfined ? { confinedTo: "memory" } : {}),
      ...(isAlso ? { alsoIn: "memory" } : {}),
    },
  ];
}

/** Lists of which each allows only what it names; absent allows everything. */
function both(
  now: readonly string[] | undefined,
  then: readonly string[] | undefined,
): readonly string[] | undefined {
  if (now === undefined || then === undefined) return now ?? then;
  return now.filter((specifier) => then.includes(specifier));
}
