// @io
import { open } from "node:fs/promises";
import { ranNothing } from "../../conversation/ran-nothing.ts";
import { type CheckRun, maxCheckOutput } from "../../conversation/receipt.ts";
import type { Authorization, CallRequest } from "../../loop/loop-ports.ts";
import { type PlannedCheck, startOf } from "../../planning/agent-plan.ts";
import { wallFailure } from "../../tools/sandbox/wall.ts";
import type { Tool } from "../../tools/tool.ts";
import { withoutAdvice } from "../agent/create-authorize.ts";
import type { VerifierParts } from "./create-verifier.ts";

/** Unless the check says otherwise. */
const defaultSeconds = 120;

export interface CheckRunner {
  /** Asks about every check that may run, before the agent starts. */
  readonly askAll: (checks: readonly PlannedCheck[], signal: AbortSignal) => Promise<void>;
  readonly run: (check: PlannedCheck, signal: AbortSignal) => Promise<CheckRun>;
}

/** Runs checks through the session's shell, each as it was decided about. */
export function createCheckRunner(
  parts: Pick<VerifierParts, "plan" | "bash" | "authorize" | "context" | "now">,
): CheckRunner {
  const { plan, bash } = parts;
  const decided = new Map<PlannedCheck, Authorization>();
  const idOf = (check: PlannedCheck): string =>
    `${plan.agent.id}-verify-${(plan.verify?.checks.indexOf(check) ?? 0) + 1}`;

  async function decide(check: PlannedCheck, signal: AbortSignal): Promise<Authorization | undefined> {
    const request = requestOf(check, bash, idOf(check));
    if (request === undefined) return undefined;
    const authorization = asNamed(await parts.authorize(check, request, { signal }), check);
    decided.set(check, authorization);
    return authorization;
  }

  return {
    async askAll(checks, signal) {
      for (const check of checks)
        if (check.refused === undefined && decided.get(check)?.type !== "allowed")
          await decide(check, signal);
    },
    async run(check, signal) {
      if (check.refused !== undefined) return notRun(check, check.refused);
      const request = requestOf(check, bash, idOf(check));
      if (bash === undefined || request === undefined)
        return notRun(check, "there is no shell in this session");
      const earlier = decided.get(check);
      // What it touches may have changed since it was allowed; then it is decided about anew.
      const isCovered = earlier?.type === "allowed" && (await earlier.recheck?.()) === undefined;
      const allowed = isCovered || earlier?.type === "denied" ? earlier : await decide(check, signal);
      if (allowed?.type !== "allowed")
        return notRun(check, withoutAdvice(allowed?.reason ?? "it was not allowed"));
      signal.throwIfAborted();
      const { allowedBy: _by, judged: _judged, ...context } = parts.context(request.call.id, signal);
      const start = parts.now();
      const outcome = await bash.call(request.input, {
        ...context,
        directory: startOf(plan),
        // Under a name of its own, so that it starts in the agent's folder and a `cd` in it has no effect on others.
        agent: { id: request.call.id, name: plan.agent.name },
        ...(allowed.allowedBy === undefined ? {} : { allowedBy: allowed.allowedBy }),
        ...(allowed.run === undefined ? {} : { judged: allowed.run }),
      });
      // The data of the shell's own outcome.
      const data = (outcome.data ?? {}) as ShellData;
      const output = typeof outcome.content === "string" ? outcome.content : "";
      const { stdout = "", exitCode } = data;
      const noWall = allowed.allowedBy === "read-only" ? wallFailure(exitCode, stdout) : undefined;
      if (noWall !== undefined) return notRun(check, `it may run only in isolation, and ${noWall}`);
      const reason = await reasonOf(data, { output, check, isError: outcome.isError === true });
      return {
        kind: "command",
        run: check.run,
        passed: reason === undefined && exitCode === 0,
        exitCode,
        durationMs: Math.round(parts.now() - start),
        output: stdout.trimEnd().slice(-maxCheckOutput),
        reason,
      };
    },
  };
}

/** A yes counts for the command that was named; one that makes another of it is none. */
function asNamed(authorization: Authorization, check: PlannedCheck): Authorization {
  if (authorization.type === "denied") return authorization;
  const { command } = authorization.input as { readonly command?: unknown };
  if (command === check.run) return authorization;
  const reason = "the answer changed the command, and a check runs exactly as configured or not at all";
  return { type: "denied", reason };
}

export function notRun({ run }: PlannedCheck, reason: string): CheckRun {
  return {
    kind: "command",
    run,
    passed: false,
    durationMs: 0,
    output: "",
    reason: `it was not run: ${reason}`,
    notRun: true,
  };
}

function requestOf(check: PlannedCheck, bash: Tool | undefined, id: string): CallRequest | undefined {
  if (bash === undefined) return undefined;
  const input = { command: check.run, timeout: (check.timeoutSeconds ?? defaultSeconds) * 1000 };
  return { call: { type: "tool_use", id, name: bash.name, input }, tool: bash, input };
}

interface ShellData {
  readonly stdout?: string;
  readonly exitCode?: number;
  readonly interrupted?: boolean;
  readonly backgroundTaskId?: string;
  /** All that was written, where `stdout` was cut. */
  readonly persistedOutputPath?: string;
}

/** Why it has not passed, where its exit code does not say it. */
async function reasonOf(
  { backgroundTaskId, interrupted, exitCode, stdout = "", persistedOutputPath }: ShellData,
  {
    output,
    check,
    isError,
  }: { readonly output: string; readonly check: PlannedCheck; readonly isError: boolean },
): Promise<string | undefined> {
  if (backgroundTaskId !== undefined) return "it was moved to the background and did not end";
  if (interrupted === true)
    return `it did not end within its time limit of ${check.timeoutSeconds ?? defaultSeconds} s`;
  if (exitCode === 0 && !isError) {
    const reason = ranNothing(stdout, check.run);
    if (reason === undefined || persistedOutputPath === undefined) return reason;
    // What was cut out may mention tests.
    return ranNothing(await readEnd(persistedOutputPath).catch(() => stdout), check.run);
  }
  if (exitCode === undefined)
    return output.trim().split("\n").at(-1)?.slice(0, 300) || "it could not be started";
  return undefined;
}

const maxRead = 4 * 1024 * 1024;

async function readEnd(file: string): Promise<string> {
  await using handle = await open(file);
  const { size } = await handle.stat();
  const length = Math.min(size, maxRead);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, size - length);
  return buffer.toString("utf8", 0, bytesRead);
}
