import type { Invocation, Sandbox } from "../sandbox/sandbox.ts";
import type { ReadOnlySandbox } from "../sandbox/sandbox-runtime.ts";
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
  /** Where commands run that may run because they only read; absent where settings switch it off. */
  readonly readOnlySandbox?: ReadOnlySandbox;
}

export interface EnteringCommand {
  readonly command: string;
  readonly directory: string;
  readonly context: ToolContext;
}

/** What to start for a command: the shell itself, or the shell inside the sandbox that is meant for it. */
export async function enterSandbox(
  { sandbox, readOnlySandbox }: Sandboxes,
  invocation: Invocation,
  entering: EnteringCommand,
): Promise<Entered> {
  const { command, context } = entering;
  const { signal, workingDirectories } = context;
  const readOnly = context.allowedBy === "read-only";
  const wrap = await sandbox?.wrap(invocation, { signal, command, workingDirectories, readOnly });
  if (wrap?.type === "refused") return wrap;
  if (wrap?.type === "wrapped") return { type: "entered", invocation: wrap.invocation, leave: wrap.ended };
  return {
    type: "entered",
    invocation: readOnly ? await withoutWriting(readOnlySandbox, invocation, entering) : invocation,
    ...(wrap?.note === undefined ? {} : { note: wrap.note }),
    leave: () => undefined,
  };
}

/** The second line of defence where there is one; the command was found harmless, so it runs without it too. */
async function withoutWriting(
  sandbox: ReadOnlySandbox | undefined,
  invocation: Invocation,
  { directory, context: { workingDirectories } }: EnteringCommand,
): Promise<Invocation> {
  const start = await sandbox?.start();
  return start?.type === "ready" ? start.wrap(invocation, { directory, workingDirectories }) : invocation;
}
