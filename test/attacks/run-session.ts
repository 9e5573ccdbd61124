import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { type ProviderRequest, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { Step } from "@retinue/testing/script.ts";
import { projectRoot } from "../project-files.ts";
import type { Mode, Policy } from "./attack.ts";
import { fillTokens, type Place } from "./fixture.ts";
import { type Finished, type ProgramOptions, runProgram } from "./run-program.ts";

const program = join(projectRoot, "bin/retinue.js");

export interface SessionOptions {
  readonly mode: Mode;
  readonly policy: Policy;
  /** Prints the answer on a terminal instead of as JSON into a pipe. */
  readonly onTerminal?: boolean;
}

export interface Session {
  /** The text of each result, by the id of its call. */
  readonly results: ReadonlyMap<string, string>;
  /** Ids of calls that were refused. */
  readonly refused: ReadonlySet<string>;
  /** Everything that went to the model. */
  readonly sent: string;
  readonly out: string;
  readonly err: string;
  readonly code: number | null;
}

/** Lets the real command run a prompt with a model that says what the steps say. */
export async function runSession(
  place: Place,
  steps: readonly Step[],
  options: SessionOptions,
): Promise<Session> {
  await using provider = await startFakeProvider({ script: steps, deltaSize: 1_000_000 });
  const words = wordsOf(options);
  const fill = (text: string) => fillTokens(text, "", place, "");
  const more = Object.entries(options.policy.environment ?? {}).map(([name, value]) => [name, fill(value)]);
  const environment = {
    ...place.environment,
    ...Object.fromEntries(more),
    ANTHROPIC_BASE_URL: provider.url,
    ANTHROPIC_API_KEY: place.key,
    RETINUE_LOCAL_MODELS: "0",
  };
  const finished = options.onTerminal
    ? await startOnTerminal(place, words, environment)
    : await start(process.execPath, [program, ...words], {
        cwd: fill(options.policy.startIn ?? "{{P}}"),
        env: environment,
      });
  return {
    ...finished,
    results: resultsOf(provider.requests),
    refused: refusedOf(finished.out),
    sent: JSON.stringify(provider.requests.map(({ body }) => body)),
  };
}

function wordsOf({ mode, policy, onTerminal }: SessionOptions): readonly string[] {
  if (policy.command !== undefined) return policy.command;
  // On a terminal a person would be asked, and there is none.
  const format = onTerminal === true ? ["--no-ask"] : ["--output-format", "json"];
  const rights =
    mode === "bypassPermissions" ? ["--dangerously-skip-permissions"] : ["--permission-mode", mode];
  return ["-p", "go", ...format, ...rights, "--no-session-persistence", ...(policy.arguments ?? [])];
}

async function startOnTerminal(
  place: Place,
  words: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Finished> {
  const quoted = [process.execPath, program, ...words].map((word) => `'${word.replaceAll("'", "'\\''")}'`);
  const file = join(place.root, "on-terminal.sh");
  await writeFile(file, `exec ${quoted.join(" ")}\n`);
  return start("script", ["-qec", `bash ${file}`, "/dev/null"], {
    cwd: place.project,
    env: { ...environment, TERM: "xterm" },
  });
}

function start(
  file: string,
  words: readonly string[],
  place: Pick<ProgramOptions, "cwd" | "env">,
): Promise<Finished> {
  return runProgram(file, words, { ...place, timeoutMs: 120_000 });
}

function resultsOf(requests: readonly ProviderRequest[]): Map<string, string> {
  const blocks = requests
    .flatMap(({ body }) => listOf(body["messages"]))
    .flatMap(({ content }) => listOf(content))
    .filter(({ type }) => type === "tool_result");
  return new Map(blocks.map((block) => [String(block["tool_use_id"]), textOf(block["content"])]));
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return listOf(content)
    .map(({ text }) => (typeof text === "string" ? text : ""))
    .join("\n");
}

function listOf(value: unknown): readonly JsonRecord[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function refusedOf(out: string): Set<string> {
  try {
    const result: unknown = JSON.parse(out);
    const denials = isRecord(result) ? listOf(result["permission_denials"]) : [];
    return new Set(denials.map(({ tool_use_id }) => String(tool_use_id)));
  } catch {
    return new Set();
  }
}
