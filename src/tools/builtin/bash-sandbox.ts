import type { Invocation, Sandbox } from "../sandbox.ts";
import type { ToolContext } from "../tool.ts";

export type Entered =
  | {
      readonly type: "entered";
      readonly invocation: Invocation;
      readonly note?: string;
      /** To be called once, when nothing of the command runs any more. */
      readonly leave: () => void;
    }
  | { readonly type: "refused"; readonly because: string };

/** What to start for a command: the shell itself, or the shell inside the sandbox that settings ask for. */
export async function enterSandbox(
  sandbox: Sandbox | undefined,
  invocation: Invocation,
  { command, context }: { readonly command: string; readonly context: ToolContext },
): Promise<Entered> {
  if (sandbox === undefined) return { type: "entered", invocation, leave: () => undefined };
  const { signal, workingDirectories } = context;
  const wrap = await sandbox.wrap(invocation, { signal, command, workingDirectories });
  switch (wrap.type) {
    case "wrapped":
      return { type: "entered", invocation: wrap.invocation, leave: wrap.ended };
    case "unprotected":
      return {
        type: "entered",
        invocation,
        ...(wrap.note === undefined ? {} : { note: wrap.note }),
        leave: () => undefined,
      };
    case "refused":
      return wrap;
  }
}
