import { isRecord, type JsonRecord } from "../../../foundation/json-record.ts";
import { RetinueError } from "../../../foundation/retinue-error.ts";
import type { ChildPlan } from "../../../planning/plan-run.ts";
import { readChildPlan } from "../../../planning/read-child-plan.ts";
import type { CanUseTool } from "../../../runtime/agent/create-authorize.ts";
import type { MemberAnswer } from "../../../runtime/teams/member-process.ts";
import { createNotice, createPrintRuntime } from "../print/open-print-session.ts";
import type { CommandContext } from "../session-options.ts";

/**
 * `retinue run-teammate`: one member of a team in this process, for the lead that started it. Reads JSON lines: the plan, answers to
 * questions, and the wish to stop; writes events and questions. Ends when the lead does.
 */
export async function runTeammate(context: CommandContext): Promise<number> {
  const { host } = context;
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  const lines = host.stdin.lines({ signal: stop.signal })[Symbol.asyncIterator]();
  try {
    const start = readLine((await lines.next()).value);
    const reading = readChildPlan(start?.["plan"]);
    if (reading.type === "invalid")
      throw new RetinueError(
        "plan-invalid",
        `The plan is not usable: ${reading.at} must be ${reading.expected}.`,
      );
    const questions = createQuestions((line) => host.stdout.write(`${JSON.stringify(line)}\n`));
    void listen(lines, questions.take, stop);
    return await runMember(reading.plan, {
      context,
      stop,
      canUseTool: start?.["asks"] === true ? questions.ask : undefined,
    });
  } finally {
    forget();
  }
}

async function runMember(
  plan: ChildPlan,
  {
    context,
    stop,
    canUseTool,
  }: {
    readonly context: CommandContext;
    readonly stop: AbortController;
    readonly canUseTool: CanUseTool | undefined;
  },
): Promise<number> {
  const { host } = context;
  const there: CommandContext = { ...context, host: { ...host, cwd: plan.sessionDirectory } };
  await using runtime = createPrintRuntime(
    there,
    {},
    {
      teams: true,
      onWarning: createNotice(host),
      ...(canUseTool === undefined
        ? {}
        : {
            canUseTool,
            approver: { approve: async () => ({ type: "deny", message: "the lead did not answer" }) },
          }),
    },
  );
  await using session = await runtime.open({ sessionId: plan.sessionId, childrenOnly: true });
  const handle = session.runPlan(plan);
  // It can be resumed like one whose process died.
  const end = (): void => void session.close().catch(() => undefined);
  stop.signal.addEventListener("abort", end, { once: true });
  if (stop.signal.aborted) end();
  for await (const event of handle.events) host.stdout.write(`${JSON.stringify({ type: "event", event })}\n`);
  await handle.result;
  return 0;
}

/** Without the lead there is nobody to work for, and nobody who would take the member up. */
async function listen(
  lines: AsyncIterator<string>,
  take: (line: JsonRecord) => void,
  stop: AbortController,
): Promise<void> {
  for (let next = await lines.next(); next.done !== true; next = await lines.next()) {
    const line = readLine(next.value);
    if (line?.["type"] === "stop") break;
    if (line !== undefined) take(line);
  }
  stop.abort(new RetinueError("interrupted", "The lead ended, or asked the member to stop."));
}

/** Puts questions to the lead, each with a number that its answer repeats. */
function createQuestions(write: (line: object) => void) {
  const open = new Map<string, (answer: MemberAnswer) => void>();
  let count = 0;
  const ask: CanUseTool = (tool, input, { callId, reason, signal }) => {
    count += 1;
    const id = String(count);
    const answer = Promise.withResolvers<MemberAnswer>();
    open.set(id, answer.resolve);
    signal.addEventListener("abort", () => answer.reject(signal.reason), { once: true });
    write({ type: "ask", question: { id, tool, input, callId, reason } });
    return answer.promise.finally(() => open.delete(id));
  };
  return {
    ask,
    take(line: JsonRecord): void {
      if (line["type"] !== "answer") return;
      const { message, updatedInput } = line;
      open.get(String(line["id"]))?.({
        behavior: line["behavior"] === "allow" ? "allow" : "deny",
        ...(typeof message === "string" ? { message } : {}),
        ...(isRecord(updatedInput) ? { updatedInput } : {}),
      });
    },
  };
}

function readLine(text: unknown): JsonRecord | undefined {
  try {
    const value: unknown = JSON.parse(String(text));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
