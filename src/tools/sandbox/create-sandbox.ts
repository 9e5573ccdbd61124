import type { PolicyRule } from "../../permissions/decide.ts";
import { quoteInvocation, type Sandbox, type SandboxWrap } from "./sandbox.ts";
import { sandboxLimits } from "./sandbox-limits.ts";
import type { SandboxRuntime } from "./sandbox-runtime.ts";
import { isExcluded, type SandboxSettings } from "./sandbox-settings.ts";

export interface SessionSandboxOptions {
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
    async wrap(invocation, { signal, command, workingDirectories, readOnly = false }): Promise<SandboxWrap> {
      if (isExcluded(command, settings.excludedCommands)) return { type: "unprotected" };
      const start = await runtime.start(settings);
      if (start.type === "unavailable") return withoutSandbox(start, settings);
      const { manager, temporaryDirectory } = start;
      const limits = sandboxLimits({ ...options, workingDirectories, temporaryDirectory });
      const filesystem = readOnly ? { ...limits, allowWrite: [temporaryDirectory] } : limits;
      const temporary = `TMPDIR=${quoteInvocation({ file: temporaryDirectory, arguments: [] })}`;
      const variables = readOnly ? `${temporary} GIT_OPTIONAL_LOCKS=0` : temporary;
      const text = `${variables} exec ${quoteInvocation(invocation)}`;
      try {
        const { argv } = await manager.wrapWithSandboxArgv(text, invocation.file, { filesystem }, signal);
        const [file = "", ...words] = argv;
        return {
          type: "wrapped",
          invocation: { file, arguments: words },
          ended: () => manager.cleanupAfterCommand(),
        };
      } catch (error) {
        const reason = `The sandbox could not take the command, so it did not run: ${error instanceof Error ? error.message : String(error)}`;
        return { type: "refused", reason };
      }
    },
  };
}

function withoutSandbox(
  { why, advice }: { readonly why: string; readonly advice: string },
  settings: SandboxSettings,
): SandboxWrap {
  if (settings.mayRunUnprotected) {
    return { type: "unprotected", note: `The command ran without a sandbox: ${why}.` };
  }
  return {
    type: "refused",
    reason: `Settings want commands in a sandbox, and there is none: ${why}. Nothing was run. ${advice} To run without protection where there is no sandbox, set "failIfUnavailable": false under "sandbox".`,
  };
}
