import { userInfo } from "node:os";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { agentLog, toAgentRecord } from "@retinue/cluster/agent-records.ts";
import { readTravellingPlan } from "@retinue/cluster/session/session-plan.ts";
import { describeAnswer, questionOf } from "@retinue/cluster/session/store-approvals.ts";
import {
  describeDeadLetter,
  glanceAtAgent,
  inspectAgent,
  reportedStatus,
  reviveAgent,
  sendMessage,
  stopAgent,
  waitForEnd,
} from "@retinue/cluster/start-agent.ts";
import type { JsonValue, LogEntry, Store } from "@retinue/cluster/store.ts";
import { describeWorkspace } from "@retinue/cluster/workspace/workspace-plan.ts";
import type { StoreContext } from "../../shared/command-context.ts";
import { untilText } from "../../shared/debug-line.ts";
import { cutTo, stripControlCharacters } from "../../shared/strip-control-characters.ts";
import { withStore } from "../../shared/with-store.ts";

interface JsonOption {
  readonly json?: boolean;
}

/** `retinue tasks --store` */
export async function listAgents(
  { host, store: address }: StoreContext,
  { json }: JsonOption,
): Promise<number> {
  return withStore(address, async (store) => {
    const summaries = await store.log.list("run/", { last: true });
    const rows = await Promise.all(
      summaries.map(async ({ name, lastAt, last }) => {
        const id = name.slice("run/".length);
        const { plan, status, deadLetter, lastError } = await glanceAtAgent(store, id, last);
        const activation = await store.engine.status(id);
        return {
          id,
          status: reportedStatus(status, activation),
          activation,
          lastAt,
          prompt: promptOf(plan),
          deadLetter,
          lastError,
        };
      }),
    );
    rows.sort((a, b) => b.lastAt - a.lastAt);
    if (json === true) host.stdout.write(`${JSON.stringify(rows, null, 2)}\n`);
    else if (rows.length === 0) host.stdout.write("There are no agents in this store.\n");
    else
      for (const { id, status, activation, prompt, deadLetter, lastError } of rows) {
        const where = describeActivation(activation, status);
        const error = deadLetter === undefined ? lastError : describeDeadLetter(deadLetter);
        const trouble = error === undefined ? "" : `  (${cutTo(stripControlCharacters(error), 300)})`;
        host.stdout.write(
          `${id}  ${status.padEnd(9)}  ${where}${cutTo(stripControlCharacters(prompt), 60)}${trouble}\n`,
        );
      }
    return 0;
  });
}

/** `retinue tasks retry ID --store` */
export async function retry({ host, store: address }: StoreContext, given: string): Promise<number> {
  return withStore(address, async (store) => {
    const id = await findAgent(store, given);
    const outcome = await reviveAgent(store, id, userInfo().username);
    if (outcome !== "revived")
      throw new RetinueError("not-dead", `${id} is not a dead letter: it is ${outcome}.`, {
        advice: "`retinue resume ID PROMPT --store …` sends an agent that has ended another prompt.",
      });
    host.stdout.write(`${id} is given to the workers again.\n`);
    return 0;
  });
}

/** The prompt of a session, or of the child that a plan is for. */
function promptOf(plan: JsonValue | undefined): string {
  if (!isRecord(plan)) return "";
  const child = plan["type"] === "plan" && isRecord(plan["plan"]) ? plan["plan"]["task"] : plan;
  return isRecord(child) ? String(child["prompt"] ?? "") : "";
}

type Activation = Awaited<ReturnType<typeof inspectAgent>>["activation"];

function describeActivation(activation: Activation, status: string): string {
  if (activation.state === "running") return `on ${activation.worker}  `;
  if (activation.state === "idle") return "";
  if (activation.missing.length > 0) return `queued, no worker has ${activation.missing.join(", ")}  `;
  return status === "queued" ? "" : "queued  ";
}

/** `retinue inspect ID --store` */
export async function inspect(
  { host, store: address }: StoreContext,
  given: string,
  { json }: JsonOption,
): Promise<number> {
  return withStore(address, async (store) => {
    const id = await findAgent(store, given);
    const report = await inspectAgent(store, id);
    const { plan } = await glanceAtAgent(store, id);
    const isSession = isRecord(plan) && (plan["type"] === "session" || plan["type"] === "plan");
    const workspace = isSession
      ? describeWorkspace(readTravellingPlan(plan).workspace)
      : "none; this is not a session";
    const claims = (await store.log.read(agentLog(id))).flatMap(({ record }) => {
      const read = toAgentRecord(record);
      return read?.type === "claimed" ? [`${read.worker} (${read.version})`] : [];
    });
    if (json === true) {
      host.stdout.write(`${JSON.stringify({ id, ...report, workspace, workers: claims }, null, 2)}\n`);
      return 0;
    }
    const question = questionOf(report.waitingFor);
    const lines = [
      `${id}: ${describeActivation(report.activation, "").startsWith(report.status) ? "" : `${report.status} `}${describeActivation(report.activation, "")}`.trimEnd(),
      ...(report.deadLetter === undefined
        ? []
        : [
            describeDeadLetter(report.deadLetter),
            `give it to the workers again with: retinue tasks retry ${id} --store …`,
          ]),
      `workspace: ${workspace}`,
      `workers so far: ${claims.length === 0 ? "none" : claims.join(", ")}`,
      ...(isRecord(report.waitingFor) && report.waitingFor["type"] === "quota"
        ? [describeWaiting(report.waitingFor)]
        : []),
      ...(question === undefined
        ? []
        : [
            `waits for a person: ${question.tool} ${JSON.stringify(question.input)} (${question.reason})`,
            `answer it with: retinue approve ${id} --store … (or retinue deny)`,
          ]),
    ];
    host.stdout.write(`${lines.map(stripControlCharacters).join("\n")}\n`);
    return 0;
  });
}

/** `retinue logs ID --store` */
export async function logs(
  { host, store: address }: StoreContext,
  given: string,
  { follow }: { readonly follow?: boolean },
): Promise<number> {
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  try {
    return await withStore(address, async (store) => {
      const id = await findAgent(store, given);
      let seq = 0;
      const show = async (): Promise<void> => {
        const entries = await store.log.read(agentLog(id), seq);
        for (const entry of entries) for (const line of describeEntry(entry)) host.stdout.write(`${line}\n`);
        seq = entries.at(-1)?.seq ?? seq;
      };
      await show();
      if (follow !== true) return 0;
      while ((await waitForEnd(store, id, { timeoutMs: 300, signal: stop.signal })) === undefined)
        await show();
      await show();
      return 0;
    });
  } finally {
    forget();
  }
}

function describeEntry({ at, record: value }: LogEntry): readonly string[] {
  const record = toAgentRecord(value);
  const time = new Date(at).toISOString().slice(11, 19);
  switch (record?.type) {
    case "claimed":
      return [`${time} -- on ${record.worker}, version ${record.version}`];
    case "parked":
      return [`${time} -- ${stripControlCharacters(describeWaiting(record.waitingFor))}`];
    case "received": {
      const answer = describeAnswer(record.message);
      return answer === undefined ? [] : [`${time} -- ${stripControlCharacters(answer)}`];
    }
    case "ended":
      return [`${time} -- ${record.ending.status}`];
    case "released":
      return record.error === undefined
        ? []
        : [`${time} -- given back by ${record.worker}: ${stripControlCharacters(record.error)}`];
    case "dead-letter":
      return [`${time} -- dead letter: ${stripControlCharacters(describeDeadLetter(record))}`];
    case "revived":
      return [
        `${time} -- revived${record.by === undefined ? "" : ` by ${stripControlCharacters(record.by)}`}`,
      ];
    case "entry":
      return describeOwn(record.entry).map((text) => `${time} ${stripControlCharacters(text)}`);
    default:
      return [];
  }
}

function describeWaiting(waitingFor: JsonValue): string {
  const question = questionOf(waitingFor);
  if (isRecord(waitingFor) && waitingFor["type"] === "quota") {
    const { provider, until } = waitingFor;
    const time = typeof until === "number" ? ` ${untilText(until)}` : "";
    return `waiting-for-quota of ${String(provider)}${time}`;
  }
  if (question === undefined) return `waits: ${cutTo(JSON.stringify(waitingFor), 200)}`;
  return `waits for a person: ${question.tool} ${cutTo(JSON.stringify(question.input), 200)}`;
}

/** The conversation, out of the pieces of transcripts. */
function describeOwn(entry: JsonValue): readonly string[] {
  if (!isRecord(entry) || entry["type"] !== "file" || typeof entry["text"] !== "string") return [];
  if (!String(entry["path"]).endsWith(".jsonl")) return [];
  return entry["text"].split("\n").flatMap((line) => {
    const message = readMessage(line);
    if (message === undefined) return [];
    const { role, content } = message;
    if (typeof content === "string") return [`${role}: ${content}`];
    return content.flatMap((block) => {
      if (block["type"] === "text") return [`${role}: ${String(block["text"])}`];
      if (block["type"] === "tool_use")
        return [`${role}: ${String(block["name"])} ${JSON.stringify(block["input"])}`];
      return [];
    });
  });
}

interface SpokenMessage {
  readonly role: string;
  readonly content: string | readonly Readonly<Record<string, unknown>>[];
}

function readMessage(line: string): SpokenMessage | undefined {
  if (line === "") return undefined;
  const value: unknown = JSON.parse(line);
  const message = isRecord(value) ? value["message"] : undefined;
  if (!isRecord(message)) return undefined;
  const { role, content } = message;
  if (typeof content === "string") return { role: String(role), content };
  return Array.isArray(content) ? { role: String(role), content: content.filter(isRecord) } : undefined;
}

/** `retinue stop ID --store` */
export async function stop({ host, store: address }: StoreContext, given: string): Promise<number> {
  return withStore(address, async (store) => {
    const id = await findAgent(store, given);
    const { status } = await stopAgent(store, id, "stopped by a person");
    host.stdout.write(status === "stopped" ? `${id} was stopped.\n` : `${id} had ended before: ${status}.\n`);
    return 0;
  });
}

/** `retinue resume ID PROMPT --store` */
export async function resume(
  { host, store: address }: StoreContext,
  given: string,
  words: readonly string[],
): Promise<number> {
  return withStore(address, async (store) => {
    const id = await findAgent(store, given);
    await sendMessage(store, id, { body: { type: "prompt", prompt: words.join(" ") } });
    host.stdout.write(`${id} has the prompt.\n`);
    return 0;
  });
}

/** By the whole id or its beginning. */
async function findAgent(store: Store, given: string): Promise<string> {
  const ids = (await store.log.list(agentLog(given))).map(({ name }) => name.slice("run/".length));
  const [only] = ids.includes(given) ? [given] : ids;
  if (only === undefined)
    throw new RetinueError("no-such-agent", `There is no agent ${JSON.stringify(given)} in this store.`);
  if (ids.length > 1 && only !== given)
    throw new RetinueError(
      "agent-ambiguous",
      `Several agents begin with ${given}: ${ids.slice(0, 5).join(", ")}.`,
    );
  return only;
}
