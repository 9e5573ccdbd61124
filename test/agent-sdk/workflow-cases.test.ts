import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import type { StepAnswer } from "@retinue/testing/script.ts";
import { expect, test } from "vitest";
import { projectRoot } from "../project-files.ts";
import { createSdkStage, type Finished, ofType, resultOf } from "./sdk-stage.ts";

type Answer =
  | string
  | {
      readonly text?: string;
      readonly delay?: number;
      readonly fault?: object;
      readonly tool?: string;
      readonly input?: object;
    };

interface MainCall {
  readonly tool: string;
  readonly input: object;
  /** A text of a file that is changed before the call. */
  readonly edit?: readonly [string, string];
  readonly file?: string;
}

interface Case {
  readonly title: string;
  readonly args?: unknown;
  readonly files?: Readonly<Record<string, string>>;
  readonly main?: readonly (string | MainCall)[];
  readonly agents?: Readonly<Record<string, readonly Answer[]>>;
  readonly byRequest?: readonly string[];
  readonly observed: {
    readonly result: string;
    readonly workflowCalls: readonly string[];
    readonly notifications: readonly {
      readonly status: string;
      readonly summary: string;
      readonly result?: unknown;
      readonly usage: Readonly<Record<string, number>>;
    }[];
    readonly runs: readonly {
      readonly status: string;
      readonly workflowName: string;
      readonly agentCount: number;
      readonly logs: readonly string[];
      readonly phases?: unknown;
      readonly progress: readonly string[];
    }[];
    readonly journal: readonly (readonly (readonly unknown[])[])[];
    readonly agents: Readonly<Record<string, { readonly requests: number }>>;
    readonly stream: readonly string[];
  };
}

const folder = join(projectRoot, "test/fixtures/workflow-cases");
const names = readdirSync(folder).flatMap((name) => (name.endsWith(".json") ? [name.slice(0, -5)] : []));

const textOf = (request: ModelRequest, at: number): string => JSON.stringify(request.messages[at]);
const isMain = (request: ModelRequest): boolean => textOf(request, 0).includes("play the case");
const turnOf = ({ messages }: ModelRequest): number =>
  messages.filter(({ role }) => role === "assistant").length;

/** Plays a case through the protocol of the Agent SDK with a provider that answers by label. */
async function play(name: string) {
  const read: Case = JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"));
  const file = join(folder, `${name}.js`);
  const script = existsSync(file) ? readFileSync(file, "utf8") : "";
  const requests = new Map<string, number>();
  const arrived = Promise.withResolvers<void>();
  const call: MainCall = {
    tool: "Workflow",
    input: { script: "{{SCRIPT}}", ...(read.args === undefined ? {} : { args: read.args }) },
  };
  const main = read.main ?? [call, "LAUNCHED", "MAIN-DONE"];

  async function answerMain(request: ModelRequest): Promise<StepAnswer | string> {
    const turn = main[Math.min(turnOf(request), main.length - 1)];
    if (turn === undefined || typeof turn === "string") return turn ?? "";
    const said = JSON.stringify(request.messages);
    const places: Readonly<Record<string, string | undefined>> = {
      "{{SCRIPT}}": script,
      "{{SCRIPT_PATH}}": /Script file: (\S+?\.js)/.exec(said)?.[1],
      "{{RUN_ID}}": /wf_[0-9a-f]{8}-[0-9a-f]{3}/.exec(said)?.[0],
      "{{TASK_ID}}": /Task ID: (w\w+)/.exec(said)?.[1],
    };
    const fill = (value: unknown): unknown => (typeof value === "string" ? (places[value] ?? value) : value);
    if (turn.edit !== undefined) {
      const path = String(fill(turn.file));
      writeFileSync(path, readFileSync(path, "utf8").replace(turn.edit[0], turn.edit[1]));
    }
    const input = Object.fromEntries(Object.entries(turn.input).map(([key, value]) => [key, fill(value)]));
    // Its tools have other names for finding tools here, and a wait needs no shell.
    if (turn.tool === "ToolSearch")
      return { calls: [{ name: "TaskOutput", input: { task_id: "none", block: false } }] };
    if (turn.tool === "Bash" && read.byRequest !== undefined) await arrived.promise;
    return {
      calls: [{ name: turn.tool, input: turn.tool === "Bash" ? { ...input, command: "true" } : input }],
    };
  }

  async function answerAgent(request: ModelRequest): Promise<StepAnswer | string> {
    const label = /conv:(\w+)/.exec(textOf(request, 0))?.[1] ?? "";
    const count = requests.get(label) ?? 0;
    requests.set(label, count + 1);
    if (read.byRequest?.includes(label) === true) arrived.resolve();
    const answers = read.agents?.[label] ?? ["?"];
    const turn = read.byRequest?.includes(label) === true ? count : turnOf(request);
    const answer = answers[Math.min(turn, answers.length - 1)] ?? "";
    if (typeof answer === "string") return answer;
    if (answer.fault !== undefined) return { failure: "invalid-request" };
    if (answer.tool !== undefined) return { calls: [{ name: answer.tool, input: answer.input }] };
    // Slow means: not before the others could be answered.
    const { text = "", delay = 0 } = answer;
    return { text, delayMs: delay > 5000 ? delay : Math.min(400, delay) };
  }

  const stage = await createSdkStage([
    { times: "any", respond: (request) => (isMain(request) ? answerMain(request) : answerAgent(request)) },
  ]);
  for (const [path, text] of Object.entries(read.files ?? {})) {
    const at = path.startsWith("~/") ? join(stage.home, path.slice(2)) : join(stage.cwd, path);
    mkdirSync(dirname(at), { recursive: true });
    writeFileSync(at, text);
  }
  const finished = await stage.run("play the case", {
    permissionMode: "bypassPermissions",
    allowDangerouslySkipPermissions: true,
    env: { CLAUDE_CODE_MAX_RETRIES: "0" },
  });
  return { read, finished, requests, stage };
}

/** What the model was notified of. */
function notificationsOf(stage: Awaited<ReturnType<typeof play>>["stage"]): readonly string[] {
  const last = stage.provider.requests.filter(({ request }) => isMain(request)).at(-1);
  const said = (last?.request.messages ?? []).map((message) =>
    typeof message.content === "string"
      ? message.content
      : message.content.map((block) => (block.type === "text" ? block.text : "")).join("\n"),
  );
  return said.join("\n").match(/<task-notification>[\s\S]*?<\/task-notification>/g) ?? [];
}

const plain = (text: string): string =>
  text.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
const tag = (notice: string, name: string): string | undefined => {
  const found = new RegExp(`<${name}>([\\s\\S]*?)</${name}>`).exec(notice)?.[1];
  return found === undefined ? undefined : plain(found);
};

/** Errors are told in other words here: only that something was thrown, and by what class, is the same. */
function withoutWording(value: unknown): unknown {
  if (typeof value === "string") return value.replace(/^(THROWS \w+): .*/s, "$1");
  if (Array.isArray(value)) return value.map(withoutWording);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, withoutWording(entry)]));
}

function runsOf(home: string): readonly Record<string, unknown>[] {
  const projects = join(home, ".claude/projects");
  return readdirSync(projects, { recursive: true, encoding: "utf8" })
    .filter((name) => /workflows\/wf_[\w-]+\.json$/.test(name))
    .map((name) => JSON.parse(readFileSync(join(projects, name), "utf8")));
}

const progressLine = (entry: Record<string, unknown>): string =>
  entry["type"] === "workflow_phase"
    ? `phase ${entry["index"]} ${entry["title"]}`
    : `agent ${entry["index"]} ${entry["label"]} ${entry["state"]}${entry["phaseTitle"] === undefined ? "" : ` in ${entry["phaseTitle"]}`}${entry["cached"] === true ? " cached" : ""}`;

const streamOf = (finished: Finished): readonly string[] =>
  ofType(finished, "system")
    .filter(({ subtype }) => /^(background_tasks_changed|task_)/.test(String(subtype)))
    .filter((message) => message["subtype"] !== "task_progress")
    .map((message) => {
      const patch = message["patch"] as { status?: string } | undefined;
      const more = [
        message["subtype"] === "task_started" ? `${message["task_type"]} ${message["workflow_name"]}` : "",
        patch?.status ?? "",
        message["subtype"] === "task_notification" ? message["status"] : "",
      ];
      return [message["subtype"], ...more.filter((word) => word !== "")].join(" ");
    });

/** What comes out better here on purpose: a step that did not change is not run again. */
const better: Readonly<Record<string, Readonly<Record<string, number>>>> = { "12-resume-edited": { c: 1 } };

test.each(names)("%s behaves as it was seen, or better [WFL-1, WFL-3]", async (name) => {
  const { read, finished, requests, stage } = await play(name);
  const { observed } = read;
  expect(resultOf(finished)).toMatchObject({ subtype: "success", result: observed.result });
  const notices = notificationsOf(stage);
  const shown = notices.map((notice) => ({
    status: tag(notice, "status"),
    summary: tag(notice, "summary"),
    ...(tag(notice, "result") === undefined
      ? {}
      : { result: withoutWording(JSON.parse(tag(notice, "result") ?? "")) }),
    usage: Object.fromEntries(
      Object.keys(observed.notifications[0]?.usage ?? {}).map((key) => [key, Number(tag(notice, key))]),
    ),
  }));
  expect(shown).toEqual(
    observed.notifications.map(({ status, summary, usage, ...more }) => ({
      ...{ status, summary, usage },
      ...("result" in more ? { result: withoutWording(more.result) } : {}),
    })),
  );
  const runs = runsOf(stage.home);
  expect(
    runs.map(({ status, workflowName, agentCount }) => ({ status, workflowName, agentCount })).sort(byName),
  ).toEqual(
    observed.runs
      .map(({ status, workflowName, agentCount }) => ({ status, workflowName, agentCount }))
      .sort(byName),
  );
  if (runs.length === 1) {
    const cached = name in better ? (line: string) => line.replace(/ cached$/, "") : (line: string) => line;
    expect(
      (runs[0]?.["workflowProgress"] as Record<string, unknown>[]).map(progressLine).map(cached),
    ).toEqual(observed.runs[0]?.progress.map(cached));
    expect((runs[0]?.["logs"] as string[]).length).toBe(observed.runs[0]?.logs.length);
  }
  const counts = Object.entries(observed.agents).map(([label, { requests: count }]) => [
    label,
    better[name]?.[label] ?? count,
  ]);
  const faults = new Set(
    Object.entries(read.agents ?? {})
      .filter(([, answers]) =>
        answers.some((answer) => typeof answer === "object" && answer.fault !== undefined),
      )
      .map(([label]) => label),
  );
  expect(Object.fromEntries(requests)).toEqual(
    Object.fromEntries(counts.map(([label, count]) => [label, faults.has(String(label)) ? 1 : count])),
  );
  expect(streamOf(finished)).toEqual(observed.stream.filter((line) => !line.startsWith("task_progress")));
});

function byName(one: { workflowName?: unknown }, other: { workflowName?: unknown }): number {
  return String(one.workflowName) < String(other.workflowName) ? -1 : 1;
}
