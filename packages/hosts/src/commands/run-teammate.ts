import { isRecord, type JsonRecord, parseJsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { CanUseTool } from "@retinue/core/kernel/agent/create-authorize.ts";
import { createHostedRuntime } from "@retinue/core/kernel/create-runtime.ts";
import { readAgentPlan } from "@retinue/core/kernel/project/plan-origins.ts";
import { createRemoteBudget } from "@retinue/core/kernel/teams/create-remote-budget.ts";
import type { MemberAnswer, MemberStart } from "@retinue/core/kernel/teams/run-member-process.ts";
import type { CliHost } from "../shared/cli-host.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { createNotice } from "../shared/open-print-session.ts";

/**
 * `retinue run-teammate`: one member of a team in this process, for the lead that started it. Reads JSON lines: the plan, answers to
 * questions, and the request to stop; writes events and questions. Ends when the lead does.
 */
export async function runTeammate(context: CommandContext): Promise<number> {
  const { host } = context;
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  const lines = host.stdin.lines({ signal: stop.signal })[Symbol.asyncIterator]();
  try {
    const start = readLine((await lines.next()).value);
    const reading = readAgentPlan(start?.["plan"], "child");
    if (reading.type === "invalid")
      throw new RetinueError(
        "plan-invalid",
        `The plan is not usable: ${reading.at} must be ${reading.expected}.`,
      );
    const send = (line: object): void => host.stdout.write(`${JSON.stringify(line)}\n`);
    const questions = createQuestions(send);
    const account = createRemoteBudget((request) => send({ type: "budget", request }));
    const take = (line: JsonRecord): void =>
      line["type"] === "budget" ? account.take(line) : questions.take(line);
    void listen(lines, take, stop);
    // Both ends are the same version of the same program, and the plan was checked.
    const given = { ...(start as unknown as MemberStart), plan: reading.plan };
    return await runMember(given, { host, say: send, stop, ask: questions.ask, tree: account.budget });
  } finally {
    forget();
    // Nothing more is read, so that the process ends when its work does.
    stop.abort(new RetinueError("member-over", "The member has ended."));
  }
}

interface MemberParts {
  readonly host: CliHost;
  readonly say: (line: object) => void;
  readonly stop: AbortController;
  readonly ask: CanUseTool;
  readonly tree: ReturnType<typeof createRemoteBudget>["budget"];
}

/** The runtime has what the lead's has, as far as it can be passed on; everything else is in the plan. */
async function runMember(
  { plan, options, trusted, asks, hasBudget }: MemberStart,
  { host, say, stop, ask, tree }: MemberParts,
): Promise<number> {
  await using runtime = createHostedRuntime(
    {
      ...options,
      cwd: plan.sessionDirectory,
      home: host.home,
      env: host.environment,
      platform: host.platform,
      trusted,
      teams: true,
      onWarning: createNotice(host),
      ...(asks.program ? { canUseTool: ask } : {}),
      // The lead puts questions to the person, so only one that it did not answer comes here.
      ...(asks.person
        ? { approver: { approve: async () => ({ type: "deny", message: "the lead did not answer" }) } }
        : {}),
    },
    hasBudget ? { tree } : undefined,
  );
  await using session = await runtime.open({ sessionId: plan.sessionId, childrenOnly: true });
  const handle = session.runPlan(plan);
  const end = (): void => {
    const by = stoppers.find((one) => stop.signal.reason?.code === `stopped-by-${one}`);
    // Who is stopped for good ends as such; who loses its lead can be resumed like one whose process died.
    const ending = by === undefined ? session.close() : session.tasks.stop(plan.agent.id, by);
    ending.catch(() => undefined);
  };
  stop.signal.addEventListener("abort", end, { once: true });
  if (stop.signal.aborted) end();
  for await (const event of handle.events) say({ type: "event", event });
  await handle.result;
  return 0;
}

const stoppers = ["user", "parent", "program"] as const;

/** Without the lead there is no work to do, and no process that would take the member up. */
async function listen(
  lines: AsyncIterator<string>,
  take: (line: JsonRecord) => void,
  stop: AbortController,
): Promise<void> {
  for (let next = await lines.next(); next.done !== true; next = await lines.next()) {
    const line = readLine(next.value);
    if (line?.["type"] === "stop") {
      stop.abort(new RetinueError(String(line["code"]), "The lead asked the member to stop."));
      return;
    }
    if (line !== undefined) take(line);
  }
  stop.abort(new RetinueError("interrupted", "The lead has ended."));
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
        behavior: readBehavior(line["behavior"]),
        ...(typeof message === "string" ? { message } : {}),
        ...(isRecord(updatedInput) ? { updatedInput } : {}),
      });
    },
  };
}

function readBehavior(value: unknown): MemberAnswer["behavior"] {
  return value === "allow" || value === "ask" ? value : "deny";
}

function readLine(text: unknown): JsonRecord | undefined {
  return parseJsonRecord(String(text));
}
