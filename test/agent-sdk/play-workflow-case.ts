import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { AssistantBlock } from "@retinue/core/conversation/message.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import type { StepAnswer } from "@retinue/testing/script.ts";
import { createSdkStage, type StageOptions } from "./sdk-stage.ts";

type Answer =
  | string
  | {
      readonly text?: string;
      readonly delay?: number;
      readonly fault?: object;
      readonly tool?: string;
      readonly input?: object;
      readonly calls?: StepAnswer["calls"];
      readonly blocks?: readonly AssistantBlock[];
    };

interface MainCall {
  readonly tool: string;
  readonly input: object;
  /** A text of a file that is changed before the call. */
  readonly edit?: readonly [string, string];
  readonly file?: string;
}

export interface WorkflowCase {
  readonly args?: unknown;
  readonly files?: Readonly<Record<string, string>>;
  readonly main?: readonly (string | MainCall)[];
  readonly agents?: Readonly<Record<string, readonly Answer[]>>;
  readonly byRequest?: readonly string[];
  readonly script?: string;
  readonly options?: StageOptions;
}

const textOf = (request: ModelRequest, at: number): string => JSON.stringify(request.messages[at]);
const isMain = (request: ModelRequest): boolean => textOf(request, 0).includes("play the case");
const turnOf = ({ messages }: ModelRequest): number =>
  messages.filter(({ role }) => role === "assistant").length;

/** Plays a case through the protocol of the Agent SDK with a provider that answers by label. */
export async function playWorkflowCase(read: WorkflowCase) {
  const { script = "" } = read;
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
    if (answer.blocks !== undefined) return { blocks: answer.blocks };
    if (answer.calls !== undefined) return { text: answer.text, calls: answer.calls };
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
    ...read.options,
  });
  return { finished, requests, stage };
}

/** What the model was notified of. */
export function notificationsOf({
  stage,
}: Pick<Awaited<ReturnType<typeof playWorkflowCase>>, "stage">): readonly string[] {
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
export const tag = (notice: string, name: string): string | undefined => {
  const found = new RegExp(`<${name}>([\\s\\S]*?)</${name}>`).exec(notice)?.[1];
  return found === undefined ? undefined : plain(found);
};

export function runsOf(home: string): readonly Record<string, unknown>[] {
  const projects = join(home, ".claude/projects");
  return readdirSync(projects, { recursive: true, encoding: "utf8" })
    .filter((name) => /workflows\/wf_[\w-]+\.json$/.test(name))
    .map((name) => JSON.parse(readFileSync(join(projects, name), "utf8")));
}
