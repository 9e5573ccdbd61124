import { join } from "node:path";
import {
  type Options,
  type Query,
  query,
  type SDKMessage,
  type SDKUserMessage,
} from "@anthropic-ai/claude-agent-sdk";
import { textOf } from "@retinue/core/conversation/message.ts";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { Step } from "@retinue/testing/script.ts";
import { onTestFinished } from "vitest";
import { projectRoot } from "../project-files.ts";
import { createPlace, type Place } from "../scenarios/run-command.ts";
import { spawnInside } from "./run-inside.ts";

export type Message = SDKMessage & Record<string, unknown>;

export interface SdkStage extends Place {
  readonly provider: FakeProvider;
  /** The options that point the SDK at this project's command and provider; in this process unless `process` is true. */
  options(more?: StageOptions): Options;
  /** Runs one prompt to its end. */
  run(prompt: string | AsyncIterable<SDKUserMessage>, more?: StageOptions): Promise<Finished>;
  /** What the model was sent, as texts, by request. */
  asked(at: number): string;
}

export type StageOptions = Options & { readonly process?: boolean };

export interface Finished {
  readonly messages: readonly Message[];
  readonly stderr: string;
  /** What the query threw. */
  readonly error?: Error;
}

/** `RETINUE_SDK_PROCESS=1 npx vitest run test/agent-sdk` starts a process for every program. */
const allReal = process.env["RETINUE_SDK_PROCESS"] === "1";

/** A project and an empty home, with a provider that follows a script. */
export async function createSdkStage(steps: readonly Step[]): Promise<SdkStage> {
  const provider = await startFakeProvider({ script: steps });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  const options = ({ process: isReal = allReal, ...more }: StageOptions = {}): Options => ({
    cwd: place.cwd,
    pathToClaudeCodeExecutable: join(projectRoot, "bin/retinue.js"),
    executable: process.execPath as "node",
    ...(isReal
      ? {}
      : { spawnClaudeCodeProcess: (spawned) => spawnInside(spawned, more.stderr ?? (() => undefined)) }),
    ...more,
    env: {
      HOME: place.home,
      PATH: process.env["PATH"],
      RETINUE_LOCAL_MODELS: "0",
      ANTHROPIC_BASE_URL: provider.url,
      ANTHROPIC_API_KEY: "x",
      ...more.env,
    },
  });
  return {
    ...place,
    provider,
    options,
    async run(prompt, more = {}) {
      const errors: string[] = [];
      const running = query({
        prompt,
        options: options({ ...more, stderr: (text) => errors.push(text) }),
      });
      onTestFinished(() => running.close());
      return collect(running, () => errors.join(""));
    },
    asked(at) {
      const request = provider.requests[at]?.request;
      return request === undefined ? "" : [...request.system, ...request.messages.map(textOf)].join("\n");
    },
  };
}

export async function collect(
  messages: AsyncIterable<SDKMessage>,
  stderr: () => string = () => "",
  each: (message: Message) => void | Promise<void> = () => undefined,
): Promise<Finished> {
  const seen: Message[] = [];
  try {
    for await (const message of messages) {
      seen.push(message as Message);
      await each(message as Message);
    }
  } catch (error) {
    return { messages: seen, stderr: stderr(), error: error as Error };
  }
  return { messages: seen, stderr: stderr() };
}

/** The types of the content blocks of all assistant messages, in order. */
export const blockTypes = (finished: Pick<Finished, "messages">): readonly string[] =>
  finished.messages.flatMap((message) =>
    message.type === "assistant" ? message.message.content.map(({ type }) => type) : [],
  );
export const results = ({ messages }: Pick<Finished, "messages">) =>
  messages.filter(({ type }) => type === "result");
export const resultOf = (finished: Pick<Finished, "messages">) => results(finished).at(-1);
export const ofType = ({ messages }: Pick<Finished, "messages">, type: string, subtype?: string) =>
  messages.filter(
    (message) => message.type === type && (subtype === undefined || message["subtype"] === subtype),
  );

export function user(content: string, more: Partial<SDKUserMessage> = {}): SDKUserMessage {
  return {
    type: "user",
    message: { role: "user", content },
    parent_tool_use_id: null,
    session_id: "",
    ...more,
  } as SDKUserMessage;
}

/** Prompts that are sent one by one, each when the program says so. */
export function createPrompts(...first: readonly SDKUserMessage[]) {
  const queue = [...first];
  let isOver = false;
  let wake = Promise.withResolvers<void>();
  const notify = (): void => {
    wake.resolve();
    wake = Promise.withResolvers();
  };
  return {
    send(message: SDKUserMessage) {
      queue.push(message);
      notify();
    },
    end() {
      isOver = true;
      notify();
    },
    async *[Symbol.asyncIterator]() {
      while (true) {
        const waiting = wake.promise;
        const next = queue.shift();
        if (next !== undefined) yield next;
        else if (isOver) return;
        else await waiting;
      }
    },
  };
}

export const bash = (command: string) => ({ calls: [{ name: "Bash", input: { command } }] });
export const read = (file_path: string) => ({ calls: [{ name: "Read", input: { file_path } }] });
export const write = (file_path: string, content: string) => ({
  calls: [{ name: "Write", input: { file_path, content } }],
});

/** Everything that no rule denies is allowed. */
/** A call that starts the agent `helper`, in the foreground unless the input changes that. */
export const callHelper = (more: object = {}) => ({
  calls: [
    {
      name: "Agent",
      input: {
        description: "look",
        prompt: "Look.",
        subagent_type: "helper",
        run_in_background: false,
        ...more,
      },
    },
  ],
});
export const free: Options = { permissionMode: "bypassPermissions", allowDangerouslySkipPermissions: true };

/** Prompts one by one; `act` sees every message, and sends or ends. */
export async function converse(
  stage: SdkStage,
  options: StageOptions,
  act: (message: Message, query: Query, prompts: ReturnType<typeof createPrompts>) => void | Promise<void>,
  first: SDKUserMessage = user("go"),
) {
  const prompts = createPrompts(first);
  const running = query({ prompt: prompts, options: stage.options(options) });
  onTestFinished(() => running.close());
  return collect(running, undefined, (message) => act(message, running, prompts));
}
