import {
  type CreateTerminalRequest,
  RequestError,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type TerminalExitStatus,
  type TerminalOutputResponse,
  type ToolCallUpdate,
} from "@agentclientprotocol/sdk";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { shellWord } from "@retinue/base/foundation/shell-word.ts";
import { refuseVariable } from "@retinue/config/agents/own-variables.ts";
import { resultText, type ToolUseBlock } from "../conversation/message.ts";
import { type AuthorizedCall, authorizeCall, type RefusedCall, readCall } from "../loop/authorize-call.ts";
import { type CallResults, callTools } from "../loop/call-tools.ts";
import type { LimitReached, LoopPorts } from "../loop/loop-ports.ts";
import type { Tally } from "../loop/tally.ts";
import { locateDecided } from "../tools/builtin/change-file.ts";
import { loadBytes, openFile } from "../tools/builtin/open-file.ts";
import { decodeText, looksBinary } from "../tools/decode-text.ts";
import type { Tool, ToolContext } from "../tools/tool.ts";
import type { RunnerRequests } from "./connect-runner.ts";
import {
  chooseOption,
  commandText,
  type DescribedCall,
  describeRequest,
  inFolder,
  otherTool,
} from "./describe-request.ts";
import type { EventChannel } from "./event-channel.ts";
import type { RunnerJournal } from "./runner-journal.ts";

export interface ServeOptions {
  readonly ports: LoopPorts;
  readonly journal: RunnerJournal;
  readonly channel: EventChannel;
  readonly tally: Tally;
  readonly signal: AbortSignal;
  /** Called when a limit leaves no further call, or a person wants the run to end. */
  readonly stop: (why: LimitReached | "person") => void;
  /** Around whatever the program waits for us. */
  readonly busy: <T>(work: () => Promise<T>) => Promise<T>;
}

export interface RunnerService extends RunnerRequests {
  /** One of its own calls has ended: what was allowed for it is used up. */
  ended(id: string, outcome: { readonly content: string; readonly isError: boolean }): void;
  /** Ends what still runs for it. */
  close(): Promise<void>;
}

/** Answers what a program of another vendor asks for: with our rules, hooks and people, and by our tools. */
export function serveRunner(options: ServeOptions): RunnerService {
  const { ports, journal, signal } = options;
  const terminals = new Map<string, RunnerTerminal>();
  const allowed: AllowedCalls = new Map();
  const own = new Map<string, AuthorizedCall>();
  let made = 0;
  /** Terminals that wait for a decision, or for their command to begin. */
  let opening = 0;
  const nextId = (): string => {
    made += 1;
    return `runner_${made}_${Math.trunc(ports.now())}`;
  };
  const serving: Serving = { ...options, nextId, allowed };

  async function requestPermission(request: RequestPermissionRequest): Promise<RequestPermissionResponse> {
    const call = journal.merge(request.toolCall);
    const isForOnce = chooseOption(request, "allow") !== undefined;
    const decision = await decideRequest(call, serving, isForOnce);
    journal.decide(call.toolCallId, decision);
    if (decision.type === "authorized") {
      own.set(call.toolCallId, decision);
      await ports.commit?.();
    } else takeStop(serving);
    const optionId = chooseOption(request, decision.type === "authorized" ? "allow" : "reject");
    if (optionId !== undefined) return { outcome: { outcome: "selected", optionId } };
    // Where only answers for good are offered, none is given.
    return { outcome: { outcome: "cancelled" } };
  }

  async function createTerminal(request: CreateTerminalRequest) {
    if (terminals.size + opening >= maxTerminals)
      throw refusal(`There are ${maxTerminals} terminals already; release one of them.`);
    opening += 1;
    try {
      const terminal = await openTerminal(request, serving);
      terminals.set(terminal.id, terminal);
      return { terminalId: terminal.id };
    } finally {
      opening -= 1;
    }
  }

  function find(id: string): RunnerTerminal {
    const terminal = terminals.get(id);
    if (terminal === undefined) throw RequestError.resourceNotFound(id);
    return terminal;
  }

  return {
    update: journal.take,
    requestPermission: (request) => options.busy(() => requestPermission(request)),
    readTextFile: (request) => options.busy(() => readFile(request, serving)),
    writeTextFile: (request) => options.busy(() => writeFile(request, serving)),
    createTerminal: (request) => options.busy(() => createTerminal(request)),
    terminalOutput: ({ terminalId }) => find(terminalId).output(),
    waitForTerminalExit: ({ terminalId }) => options.busy(() => find(terminalId).exit),
    async killTerminal({ terminalId }) {
      find(terminalId).kill();
    },
    async releaseTerminal({ terminalId }) {
      find(terminalId).kill();
      terminals.delete(terminalId);
    },
    ended(id, { content, isError }) {
      const decision = own.get(id);
      own.delete(id);
      for (const [key, { callId }] of allowed) if (callId === id) allowed.delete(key);
      if (decision === undefined) return;
      const { call, tool, input } = decision;
      // It has happened; a hook that fails takes nothing back.
      void ports
        .afterCall?.({ call, tool, input }, { content, isError }, { signal, durationMs: 0 })
        .catch(() => undefined);
    },
    async close() {
      for (const terminal of terminals.values()) terminal.kill();
      await Promise.allSettled([...terminals.values()].map(({ exit }) => exit));
    },
  };
}

/** Each holds a process. */
const maxTerminals = 32;

/** What was allowed by a request for a permission and has not been done yet, by tool and input. */
type AllowedCalls = Map<string, { readonly decision: AuthorizedCall; readonly callId: string }>;

interface Serving extends ServeOptions {
  readonly nextId: () => string;
  readonly allowed: AllowedCalls;
}

/** Decides about everything that a request concerns; it is allowed where all of it is. */
async function decideRequest(
  update: ToolCallUpdate,
  serving: Serving,
  isForOnce: boolean,
): Promise<AuthorizedCall | RefusedCall> {
  const { ports, journal, signal, allowed } = serving;
  const id = update.toolCallId;
  const texts = new Map<string, string>();
  const context = contextOf(id, serving);
  for (const part of update.content ?? []) {
    if (part.type !== "diff") continue;
    const now = await readWholeText(part.path, context, (text) => text === part.oldText);
    if (now.type === "text") texts.set(part.path, now.text);
  }
  const described = describeRequest(update, {
    directory: context.directory,
    textNow: (path) => texts.get(path),
  });
  const [first] = described;
  // There is always one.
  if (first === undefined) throw new RetinueError("runner-failed", "The request describes nothing.");
  await journal.begin(id, { name: first.tool, input: first.input });
  const limit = (await ports.limits?.takeCalls(1))?.limit;
  const refuse = (reason: string): RefusedCall => ({
    type: "refused",
    call: { type: "tool_use", id, name: first.tool, input: first.input },
    reason,
    denied: true,
  });
  if (limit !== undefined) {
    serving.stop(limit);
    return refuse(`This call was not run. ${limit.error}`);
  }
  if (!isForOnce)
    return refuse(
      "The program only offers to allow this permanently, and Retinue allows one call at a time.",
    );
  if (update.kind === "switch_mode")
    return refuse("The program cannot change the mode; Retinue decides about each of its calls.");
  let last: AuthorizedCall | undefined;
  const authorized: AuthorizedCall[] = [];
  for (const [at, call] of described.entries()) {
    const own = portsFor(call, ports);
    const read = readCall(blockOf(call, at === 0 ? id : `${id}.${at}`), own);
    const { onlyRules } = call;
    if (onlyRules === true && read.type === "refused") continue;
    const decided = read.type === "refused" ? read : await authorizeCall(read, own, { signal, onlyRules });
    if (decided.type === "refused") return { ...decided, denied: true };
    if (onlyRules === true) continue;
    last = decided;
    authorized.push(decided);
  }
  for (const decision of authorized) allowed.set(keyOf(decision.call), { decision, callId: id });
  return last ?? refuse("Nothing was decided.");
}

function blockOf({ tool, input }: DescribedCall, id: string): ToolUseBlock {
  return { type: "tool_use", id, name: tool, input };
}

function keyOf({ name, input }: Pick<ToolUseBlock, "name" | "input">): string {
  const { file_path, content, command } = isRecord(input) ? input : {};
  return JSON.stringify(name === "Bash" ? [name, command] : [name, file_path, content]);
}

/** What no tool of ours describes is a call of a tool that does nothing here. */
function portsFor({ tool, mcp }: DescribedCall, ports: LoopPorts): LoopPorts {
  if (tool !== otherTool) return ports;
  const other: Tool = {
    name: otherTool,
    description: "What another vendor's agent asks for and no other tool describes.",
    effect: "execute",
    origin: "program",
    inputSchema: { type: "object" },
    ...(mcp === undefined
      ? {}
      : { mcp: { ...mcp, serverName: mcp.server, source: "the runner", hints: {} } }),
    call: async () => ({ content: "It is not run here.", isError: true }),
  };
  return { ...ports, tools: [...ports.tools, other], isOffered: () => true };
}

function contextOf(id: string, { ports, signal }: Pick<Serving, "ports" | "signal">): ToolContext {
  return ports.toolContext(id, { signal, progress: () => undefined });
}

/** One call of our own tools for the program, within its limits, with everything that follows from it recorded. */
async function serveCall(
  call: ToolUseBlock,
  {
    ports: changed,
    signal = undefined,
    onStarted,
    serving,
  }: {
    readonly ports: LoopPorts;
    readonly signal?: AbortSignal | undefined;
    readonly onStarted?: () => void;
    readonly serving: Serving;
  },
): Promise<CallResults> {
  const { journal, channel, tally, stop } = serving;
  const limit = (await changed.limits?.takeCalls(1))?.limit;
  if (limit !== undefined) {
    stop(limit);
    throw refusal(`This call was not run. ${limit.error}`);
  }
  await journal.serve(call);
  const run = callTools([call], changed, signal ?? serving.signal);
  for (;;) {
    const step = await run.next();
    if (step.done === true) {
      const { blocks, data, denials } = step.value;
      tally.addCalls(1, denials);
      await journal.served(blocks, data);
      takeStop(serving);
      return step.value;
    }
    const taken = channel.push(step.value);
    if (step.value.type === "call-started") onStarted?.();
    await taken;
  }
}

function takeStop({ ports, stop }: Pick<Serving, "ports" | "stop">): void {
  if (ports.isStopped?.() === true) stop("person");
}

/** What was allowed by an earlier request is not asked again for the very same call; it is judged once more. */
function withAllowed(call: ToolUseBlock, { ports, allowed }: Pick<Serving, "ports" | "allowed">): LoopPorts {
  const key = keyOf(call);
  const earlier = allowed.get(key)?.decision;
  if (earlier === undefined) return ports;
  allowed.delete(key);
  return {
    ...ports,
    async authorize(request) {
      const why = await earlier.recheck?.();
      if (why !== undefined) return { type: "denied", reason: why };
      const { type: _type, call: _call, tool: _tool, input: _input, ...decided } = earlier;
      return { ...decided, type: "allowed", input: request.input };
    },
  };
}

async function readFile(
  {
    path,
    line,
    limit,
  }: { readonly path: string; readonly line?: number | null; readonly limit?: number | null },
  serving: Serving,
): Promise<{ content: string }> {
  let content = "";
  const start = Math.max(1, line ?? 1);
  const input = {
    file_path: path,
    ...(start === 1 ? {} : { offset: start }),
    ...(typeof limit === "number" ? { limit } : {}),
  };
  const call: ToolUseBlock = { type: "tool_use", id: serving.nextId(), name: "Read", input };
  // It is the same tool, but for a program that wants the text as it is.
  const asItIs = (tool: Tool): Tool =>
    tool.name !== "Read"
      ? tool
      : {
          ...tool,
          async call(_given, context) {
            const read = await readWholeText(path, context);
            if (read.type === "missing") return { content: `There is no file ${path}.`, isError: true };
            if (read.type === "refused") return { content: read.reason, isError: true };
            const lines = read.text.split("\n");
            const end = typeof limit === "number" ? start - 1 + Math.max(0, limit) : lines.length;
            content = start === 1 && end >= lines.length ? read.text : lines.slice(start - 1, end).join("\n");
            return { content: content.length > maxShown ? `${content.slice(0, maxShown)} …` : content };
          },
        };
  const ports = { ...serving.ports, tools: serving.ports.tools.map(asItIs) };
  throwIfFailed(await serveCall(call, { ports, serving }));
  return { content };
}

/** What the journal keeps of a file that was read. */
const maxShown = 20_000;

async function writeFile(
  { path, content }: { readonly path: string; readonly content: string },
  serving: Serving,
): Promise<Record<string, never>> {
  const input = { file_path: path, content };
  const call: ToolUseBlock = { type: "tool_use", id: serving.nextId(), name: "Write", input };
  throwIfFailed(await serveCall(call, { ports: withAllowed(call, serving), serving }));
  return {};
}

interface RunnerTerminal {
  readonly id: string;
  readonly output: () => TerminalOutputResponse;
  readonly exit: Promise<TerminalExitStatus>;
  readonly kill: () => void;
}

/** A command that begins, or is refused, before this resolves. */
async function openTerminal(request: CreateTerminalRequest, serving: Serving): Promise<RunnerTerminal> {
  const id = serving.nextId();
  const { directory } = contextOf(id, serving);
  const input = { command: commandLine(request, directory), timeout: maxCommandMs };
  const call: ToolUseBlock = { type: "tool_use", id, name: "Bash", input };
  const stop = new AbortController();
  const started = Promise.withResolvers<void>();
  let view: () => string = () => "";
  let ending: TerminalExitStatus | undefined;
  const allowed = withAllowed(call, serving);
  const ports: LoopPorts = {
    ...allowed,
    toolContext: (callId, options) => ({
      ...allowed.toolContext(callId, options),
      watchOutput(read) {
        view = read;
      },
    }),
  };
  const work = serveCall(call, {
    ports,
    signal: AbortSignal.any([serving.signal, stop.signal]),
    onStarted: started.resolve,
    serving,
  });
  const exit = work.then((results): TerminalExitStatus => {
    const data = results.data[id];
    const facts = isRecord(data) ? data : {};
    const last = typeof facts["stdout"] === "string" ? facts["stdout"] : view();
    view = () => last;
    ending = typeof facts["exitCode"] === "number" ? { exitCode: facts["exitCode"] } : { signal: "SIGTERM" };
    return ending;
  });
  exit.catch(() => undefined);
  await Promise.race([started.promise, work.then(throwIfNotRun)]);
  const most = request.outputByteLimit ?? maxOutputBytes;
  return {
    id,
    output() {
      const { text, truncated } = lastBytes(view(), most);
      return { output: text, truncated, ...(ending === undefined ? {} : { exitStatus: ending }) };
    },
    exit,
    kill: () => stop.abort(new RetinueError("terminal-killed", "The program ended it.")),
  };
}

const maxCommandMs = 600_000;
const maxOutputBytes = 1024 * 1024;

/** One line that our shell reads as exactly this command. */
function commandLine(
  { command, args = [], env = [], cwd }: CreateTerminalRequest,
  directory: string,
): string {
  const refused = env.map(({ name }) => refuseVariable(name, "person")).find((why) => why !== undefined);
  if (refused !== undefined) throw refusal(`The command was not run: ${refused}.`);
  const variables = env.map(({ name, value }) => `${name}=${shellWord(value)} `).join("");
  const line = args.length === 0 ? command : commandText([command, ...args]);
  const whole = variables === "" || args.length > 0 ? `${variables}${line}` : `export ${variables}&& ${line}`;
  return cwd === undefined || cwd === null || cwd === directory ? whole : inFolder(cwd, whole);
}

function lastBytes(text: string, limit: number): { readonly text: string; readonly truncated: boolean } {
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length <= limit) return { text, truncated: false };
  // A character that is cut in the middle is left out.
  const kept = bytes.subarray(bytes.length - Math.max(0, limit)).toString("utf8");
  return { text: kept.replace(/^\uFFFD+/, ""), truncated: true };
}

function throwIfFailed({ blocks }: CallResults): void {
  const [result] = blocks;
  if (result?.is_error === true) throw refusal(resultText(result.content));
}

function throwIfNotRun(results: CallResults): void {
  if (results.notRun.size > 0) throwIfFailed(results);
}

const internalError = -32603;

/** An answer that the program can show to its model. */
function refusal(reason: string): RequestError {
  return new RequestError(internalError, reason);
}

type WholeText =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "missing" }
  | { readonly type: "refused"; readonly reason: string };

/** A text file as it is, for those that show it to no model themselves. It counts as seen by the agent where `isSeen` says so. */
async function readWholeText(
  path: string,
  context: ToolContext,
  isSeen: (text: string) => boolean = () => true,
): Promise<WholeText> {
  const located = await locateDecided(path, context);
  if (located.type === "refused") return located;
  const opened = await openFile(located.realPath);
  if (opened.type === "missing") return { type: "missing" };
  if (opened.type === "folder") return { type: "refused", reason: `${located.path} is a folder.` };
  if (opened.type === "refused") return opened;
  using handle = opened.handle;
  const loaded = await loadBytes(handle.descriptor, opened.stats);
  if (loaded === undefined)
    return { type: "refused", reason: `${located.path} is too large to be read whole.` };
  if (looksBinary(loaded.bytes))
    return { type: "refused", reason: `${located.path} is a binary file; only texts can be read.` };
  const { text } = decodeText(loaded.bytes);
  if (isSeen(text)) {
    const { digest, stats } = loaded;
    context.files.noteSeen(located.realPath, { digest, mtimeMs: stats.mtimeMs, partial: false });
  }
  return { type: "text", text };
}
