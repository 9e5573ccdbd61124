import type { Invocation, Sandbox } from "../sandbox/sandbox.ts";
import type { Wall } from "../sandbox/wall.ts";
import type { ToolContext } from "../tool.ts";

export type Entered =
  | {
      readonly type: "entered";
      readonly invocation: Invocation;
      readonly note?: string;
      /** To be called once, when nothing of the command runs any more. */
      readonly leave: () => void;
    }
  | { readonly type: "refused"; readonly reason: string };

export interface Sandboxes {
  /** What settings ask for; absent means that commands run as the person's own processes. */
  readonly sandbox?: Sandbox;
  /** Behind it run commands that may run because they only read; absent where settings switch it off. */
  readonly wall?: Wall;
}

export interface EnteringCommand {
  readonly command: string;
  readonly directory: string;
  readonly context: ToolContext;
}

/** What to start for a command: the shell itself, or the shell inside the sandbox that is meant for it. */
export async function enterSandbox(
  { sandbox, wall }: Sandboxes,
  invocation: Invocation,
  entering: EnteringCommand,
): Promise<Entered> {
  const { command, context } = entering;
  const { signal, workingDirectories } = context;
  const readOnly = context.allowedBy === "read-only";
  const wrap = await sandbox?.wrap(invocation, { signal, command, workingDirectories, readOnly });
  if (wrap?.type === "refused") return wrap;
  if (wrap?.type === "wrapped") return { type: "entered", invocation: wrap.invocation, leave: wrap.ended };
  const note = wrap?.note === undefined ? {} : { note: wrap.note };
  const leave = () => undefined;
  const plain: Entered = { type: "entered", invocation, ...note, leave };
  if (!readOnly || wall === undefined) return plain;
  const start = await wall.start();
  // The command was found harmless, so that it runs without the wall too, unless the decision counted on it.
  if (start.type === "unavailable")
    return context.countsOnWall === true ? { type: "refused", reason: withoutWall(start.why) } : plain;
  const { environment, wallRules: rules } = context;
  const { HOME: home = "/nonexistent", PATH: path } = environment;
  try {
    const places = { directory: entering.directory, workingDirectories, home, path, rules };
    const walled = await start.wrap(invocation, places);
    return { type: "entered", invocation: walled, ...note, leave };
  } catch (error) {
    return { type: "refused", reason: withoutWall(error instanceof Error ? error.message : String(error)) };
  }
}

/** The report about a command that did not run because there was no wall for it. */
export function withoutWall(why: string): string {
  return `The command did not run. It may run only in isolation, because no rule or user allowed it, and isolation is not possible here: ${why}. An allow rule that names the command lets it run without isolation.`;
}
