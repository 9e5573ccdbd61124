import type { PolicyRule } from "@retinue/gate/decide.ts";
import { guardGitFolders } from "./guard-git-folders.ts";
import { sandboxLimits } from "./sandbox-limits.ts";
import type { SandboxRuntime } from "./sandbox-runtime.ts";
import { isExcluded, type SandboxSettings } from "./sandbox-settings.ts";

/** A program with its arguments, as a process is started. */
export interface Invocation {
  readonly file: string;
  readonly arguments: readonly string[];
  /** What the program reads from descriptor 4. */
  readonly sideInput?: Uint8Array;
}

export interface SandboxOptions {
  readonly signal: AbortSignal;
  /** The command as the model wrote it, for those that settings take out of the sandbox. */
  readonly command: string;
  /** Folders that may be written to; the first is the project. */
  readonly workingDirectories: readonly string[];
  /** Other files and folders that it may write to, such as the state of the program itself. */
  readonly alsoWrite?: readonly string[];
  /** The command may run because it only reads, so that it may write nothing but temporary files. */
  readonly readOnly?: boolean;
}

export type SandboxWrap =
  /** Start this instead, and call `ended` once nothing of it runs any more. */
  | { readonly type: "wrapped"; readonly invocation: Invocation; readonly ended: () => void }
  /** A setting lets this command run without protection. */
  | { readonly type: "unprotected"; readonly note?: string }
  /** There is no protection, and nothing says that there need not be. */
  | { readonly type: "refused"; readonly reason: string };

/** Keeps what a command does to the world inside limits that the operating system enforces. */
export interface Sandbox {
  wrap(invocation: Invocation, options: SandboxOptions): Promise<SandboxWrap>;
}

/** One text that a shell reads as exactly this invocation. */
function quoteInvocation({ file, arguments: words }: Invocation): string {
  return [file, ...words].map((word) => `'${word.replaceAll("'", `'"'"'`)}'`).join(" ");
}

interface SessionSandboxOptions {
  readonly runtime: SandboxRuntime;
  readonly settings: SandboxSettings;
  readonly home: string;
  readonly deny: readonly PolicyRule[];
}

/** The sandbox of one session; undefined where settings do not ask for one. */
export function createSandbox(options: SessionSandboxOptions): Sandbox | undefined {
  const { runtime, settings } = options;
  if (!settings.enabled) return undefined;
  return {
    async wrap(
      invocation,
      { signal, command, workingDirectories, readOnly = false, alsoWrite = [] },
    ): Promise<SandboxWrap> {
      if (isExcluded(command, settings.excludedCommands)) return { type: "unprotected" };
      const start = await runtime.start(settings);
      if (start.type === "unavailable") {
        const { why, advice } = start;
        if (settings.mayRunUnprotected) {
          return { type: "unprotected", note: `The command ran without a sandbox: ${why}.` };
        }
        return {
          type: "refused",
          reason: `Settings require a sandbox for commands, and there is none: ${why}. Nothing was run. ${advice} To run without protection where there is no sandbox, set "failIfUnavailable": false under "sandbox".`,
        };
      }
      const { manager, temporaryDirectory } = start;
      const limits = sandboxLimits({ ...options, workingDirectories, temporaryDirectory });
      const temporary = `TMPDIR=${quoteInvocation({ file: temporaryDirectory, arguments: [] })}`;
      const variables = readOnly ? `${temporary} GIT_OPTIONAL_LOCKS=0` : temporary;
      const text = `${variables} exec ${quoteInvocation(invocation)}`;
      try {
        const git = guardGitFolders(workingDirectories);
        const filesystem = readOnly
          ? { ...limits, allowWrite: [temporaryDirectory] }
          : {
              ...limits,
              allowWrite: [...limits.allowWrite, ...alsoWrite],
              denyWrite: [...limits.denyWrite, ...git.present],
            };
        const { argv } = await manager.wrapWithSandboxArgv(text, invocation.file, { filesystem }, signal);
        const [file = "", ...words] = argv;
        return {
          type: "wrapped",
          invocation: { file, arguments: words },
          ended() {
            manager.cleanupAfterCommand();
            git.end();
          },
        };
      } catch (error) {
        const reason = `The sandbox could not run the command: ${error instanceof Error ? error.message : String(error)}`;
        return { type: "refused", reason };
      }
    },
  };
}
