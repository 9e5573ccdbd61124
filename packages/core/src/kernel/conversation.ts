// @io

import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { abortCode } from "@retinue/base/foundation/abortable.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { DiscoveredAgents } from "@retinue/config/discovery/discover-agents.ts";
import { isInside } from "@retinue/gate/permission-policy.ts";
import type { InterruptedAgent } from "../conversation/interrupted-agent.ts";
import { type TextBlock, textOf, type UserBlock, type UserMessage } from "../conversation/message.ts";
import { addTotals, handTo, noTotals, type RunEnding, type RunEvent } from "../conversation/run-event.ts";
import { isLimitError, type LoopPorts } from "../loop/loop-ports.ts";
import { compactNow } from "../loop/run-agent-loop.ts";
import type { AgentPlan } from "../planning/agent-plan.ts";
import { maySpawn } from "../planning/plan-tools.ts";
import { hasEnded, wasCutOff } from "../protocol/agent-state.ts";
import { stoppedNote } from "../tasks/end-notice.ts";
import type { AgentRecord } from "../tasks/open-record.ts";
import { type AgentHistory, createAgentHistory, type OpenAgent, runPrompt } from "../tasks/run-agent.ts";
import { endsSession, type TaskManager } from "../tasks/task-manager.ts";
import type { MainControl } from "../tasks/watch-control.ts";
import { type RunWatch, tallyEvents, watchRun } from "../tasks/watch-run.ts";
import type { AgentServices, EquippedAgent } from "./agent/agent-services.ts";
import type { AgentSkills } from "./agent/agent-skills.ts";
import { openAgent } from "./agent/open-agent.ts";
import type { Children } from "./agent/open-children.ts";
import { type SlashCommand, withExpansion } from "./agent/session-skills.ts";
import { endingWithOutput, type TypedOutput } from "./options/typed-output.ts";
import { createSessionRecovery, type SessionRecovery } from "./recover-agents.ts";
import { stoppedEnding } from "./run-handle.ts";

/** Everything a session is made of; putting it together did the I/O. */
export interface SessionParts {
  readonly plan: AgentPlan;
  readonly agent: EquippedAgent;
  /** What its agents share. */
  readonly services: AgentServices;
  /** The conversation so far; its sinks take each event before the next one is asked for. */
  readonly record: AgentRecord;
  /** The clocks of its runs. */
  readonly watch: RunWatch;
  readonly output?: TypedOutput | undefined;
  readonly children: Children;
  /** Whether agents that work in the background are stopped at the end of a run. */
  readonly stopsBackground: boolean;
  /** Whether `/name` in a prompt calls a skill. */
  readonly slashCommands: boolean;
  /** Whether files that a prompt names as `@path` are attached to it. */
  readonly mentions: boolean;
  /** Called before each prompt is worked on: makes what opening a session alone does not. */
  readonly begin?: () => Promise<void>;
  /** Called once, before the first prompt: resumes what a crash has left, and reports it. */
  readonly recover?: (signal: AbortSignal) => Promise<readonly InterruptedAgent[]>;
  /** How other processes reach the agent; absent where the session keeps no files. */
  readonly control?: MainControl | undefined;
  readonly dispose: (endAgent: () => Promise<void>) => Promise<void>;
}

/** A session's conversation while it is open. */
export interface Conversation {
  readonly parts: SessionParts;
  readonly agent: OpenAgent;
  readonly history: AgentHistory;
  readonly recovery: SessionRecovery;
  /** Aborted when the session is closed. */
  readonly end: AbortController;
  isFirst: boolean;
  isBusy: boolean;
  /** Why the record takes nothing more. */
  unrecorded: unknown;
}

export function openConversation(parts: SessionParts): Conversation {
  return {
    parts,
    agent: openAgent(parts.plan, parts.agent.parts),
    history: createAgentHistory(parts.plan, parts.record.history),
    recovery: createSessionRecovery(parts.recover),
    end: new AbortController(),
    isFirst: parts.record.history.length === 0,
    isBusy: false,
    unrecorded: undefined,
  };
}

export async function* stream(
  live: Conversation,
  content: UserMessage["content"],
  signal: AbortSignal,
  { verbatim = false }: StreamOptions = {},
): AsyncGenerator<RunEvent> {
  const command = live.parts.slashCommands && !verbatim ? readCompactCommand(content) : undefined;
  yield* command === undefined
    ? answer(live, { content, verbatim }, signal)
    : compact(live, command.instructions, signal);
}

export interface StreamOptions {
  /** True: the prompt calls no skill and attaches no file, whatever it says. */
  readonly verbatim?: boolean;
}

export async function* compact(
  live: Conversation,
  instructions: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, void> {
  refuseWhen(live.end.signal.aborted, "session-closed", "The session is closed, so it cannot be compacted.");
  refuseWhen(
    live.isBusy,
    "session-busy",
    "The session is working on a prompt, so it cannot be compacted now.",
  );
  setBusy(live, true);
  const stop = AbortSignal.any([signal, live.end.signal]);
  const input = live.history.input(undefined, { maxTurns: Number.POSITIVE_INFINITY });
  try {
    const run = (left: AbortSignal) => compactNow({ input, instructions }, live.agent.ports, left);
    yield* recorded(live, watchRun(run, live.parts.watch, stop));
  } finally {
    setBusy(live, false);
  }
}

function setBusy(live: Conversation, isBusy: boolean): void {
  live.isBusy = isBusy;
  // Other processes may continue with a session that works on nothing.
  live.parts.record.setIdle?.(!isBusy);
}

async function* answer(
  live: Conversation,
  { content, verbatim }: { readonly content: UserMessage["content"]; readonly verbatim: boolean },
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  refuseWhen(
    live.end.signal.aborted,
    "session-closed",
    "The session is closed, so it does not accept prompts.",
  );
  refuseWhen(live.isBusy, "session-busy", "The session is still working on the previous prompt.");
  setBusy(live, true);
  // Reports of agents are verbatim; with a prompt of a person or program, work is not unattended any more.
  if (!verbatim) {
    await live.parts.services.unattended?.end();
    live.parts.services.unasked.length = 0;
  }
  const left = new AbortController();
  const first = live.isFirst ? withInitialPrompt(content, live.parts.plan.initialPrompt) : content;
  live.isFirst = false;
  live.parts.output?.begin();
  using control = live.parts.control?.begin();
  const outside = control === undefined ? [] : [control.signal];
  const stop = AbortSignal.any([signal, left.signal, live.end.signal, ...outside]);
  try {
    await live.parts.begin?.();
    yield* live.recovery.begin(stop);
    const ready = await preparePrompt(
      { content, first, verbatim },
      { ...live.parts, opened: live.agent },
      stop,
    );
    if (ready.type === "ready")
      yield* work(
        live,
        { role: "user", content: ready.content, ...live.parts.children.team?.takeHeld() },
        stop,
      );
    else yield { type: "run-ended", ending: ready.ending };
  } finally {
    live.parts.agent.skills?.endTurn();
    left.abort(new RetinueError("left", "The events of this run are no longer read."));
    live.history.answerCutOffCalls();
    setBusy(live, false);
  }
}

/** One prompt to its end, which also counts what the children took. */
async function* work(
  live: Conversation,
  prompt: UserMessage,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, void> {
  const { output, children, record: disk, stopsBackground } = live.parts;
  const { tasks } = children.session;
  const ending: RunEnding = yield* runLoop(live, prompt, signal);
  yield* recorded(live, stopChildren(tasks, { ending, signal }));
  if (stopsBackground) {
    const running = tasks.list().filter((task) => !hasEnded(task));
    await Promise.all(running.map(({ id }) => tasks.stop(id, "program")));
  }
  const own = endingWithOutput(ending, output);
  const taken = tasks.takeTotals();
  // A run without children is its own tree.
  const whole = taken === undefined ? own : { ...own, tree: addTotals(own.totals, taken) };
  const last = live.recovery.count(whole);
  try {
    record(live, { type: "run-ended", ending: last });
  } catch {
    // A record that takes no more, as on a full disk, must not keep the result from the caller: the ending itself says so, or
    // the notice when the file is closed.
  }
  // A caller that learns of the end must not find it cut off later; a disk that fails now is reported when the file is closed.
  await disk.commit?.().catch(() => undefined);
  yield { type: "run-ended", ending: last };
}

/** Passes everything on but the end, to which the session adds its own. */
async function* runLoop(
  live: Conversation,
  prompt: UserMessage,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, RunEnding> {
  const maxTurns = live.parts.plan.maxTurns?.value ?? Number.POSITIVE_INFINITY;
  let hasAnswered = false;
  const tally = tallyEvents(live.agent.ports.now);
  try {
    const last = yield* runPrompt(live.agent, live.history, {
      prompt,
      limits: { maxTurns },
      watch: live.parts.watch,
      signal,
      take(event) {
        // First what it took: an answer that cannot be kept is paid for all the same.
        tally.add(event);
        hasAnswered ||= event.type === "assistant-answered";
        record(live, event);
      },
    });
    // The text of an earlier prompt is no result of this one.
    const ending = hasAnswered ? last : { ...last, text: "" };
    if (!live.history.undoPrompt(ending)) return ending;
    const advice = "The conversation continues without this prompt; send a shorter one.";
    return { ...ending, advice: ending.advice === undefined ? advice : `${ending.advice} ${advice}` };
  } catch (error) {
    // Its time was up and it ignored that, or its record takes no more: neither is a failure of the caller.
    if (isLimitError(error) || error === live.unrecorded) return tally.endedBy(error);
    throw error;
  }
}

/**
 * Stops the children of a session whose run was stopped because the session ends. The event names those that ran in the background,
 * so that the conversation itself says what is stopped and can be resumed.
 */
async function* stopChildren(
  tasks: Pick<TaskManager, "list" | "stop">,
  run: { readonly ending: RunEnding; readonly signal: AbortSignal },
): AsyncGenerator<RunEvent, void> {
  if (run.ending.status !== "stopped" || !endsSession(run.signal.reason)) return;
  const running = tasks.list().filter((task) => !hasEnded(task));
  const stopped = await Promise.all(running.map(({ id }) => tasks.stop(id, "session")));
  const cutOff = stopped.filter((state) => state !== undefined).filter(wasCutOff);
  // A subagent is informed of what it has started when it is resumed.
  const isNested = ({ parentId }: { readonly parentId: string }) => running.some(({ id }) => id === parentId);
  const unattended = cutOff.filter((state) => state.background && !isNested(state));
  if (unattended.length === 0) return;
  yield { type: "user-added", message: stoppedNote(unattended), origin: "message" };
}

/** Each event is recorded, and part of the conversation, before the next one is asked for. */
async function* recorded(
  live: Conversation,
  events: AsyncIterable<RunEvent>,
): AsyncGenerator<RunEvent, void> {
  for await (const event of events) {
    record(live, event);
    live.history.follow(event);
    yield event;
  }
}

/** A closed session has given its file back; what still happens in it is answered as interrupted when it is resumed. */
function record(live: Conversation, event: RunEvent): void {
  if (live.end.signal.aborted) return;
  try {
    handTo(live.parts.record.sinks, event, undefined);
  } catch (error) {
    live.unrecorded = error;
    throw error;
  }
}

function refuseWhen(applies: boolean, code: string, message: string): void {
  if (applies) throw new RetinueError(code, message);
}

function withInitialPrompt(
  content: UserMessage["content"],
  initial: string | undefined,
): UserMessage["content"] {
  if (initial === undefined) return content;
  const blocks = typeof content === "string" ? [{ type: "text", text: content } as const] : content;
  return [{ type: "text", text: initial }, ...blocks];
}

/** What a prompt that is exactly `/compact` or `/compact …` asks of the summary; undefined for any other prompt. */
export function readCompactCommand(
  content: UserMessage["content"],
): { readonly instructions: string | undefined } | undefined {
  if (typeof content !== "string" && content.some(({ type }) => type !== "text")) return undefined;
  const match = /^\s*\/compact(\s.*)?$/s.exec(textOf({ role: "user", content }));
  if (match === null) return undefined;
  const instructions = match[1]?.trim() ?? "";
  return { instructions: instructions === "" ? undefined : instructions };
}

type Content = UserMessage["content"];

type ReadyPrompt =
  | { readonly type: "ready"; readonly content: Content }
  /** It reaches no model. */
  | { readonly type: "ended"; readonly ending: RunEnding };

/** What becomes of a prompt before the model sees it: hooks receive it as written, then the skill it calls is put in. */
export async function preparePrompt(
  {
    content,
    first,
    verbatim,
  }: { readonly content: Content; readonly first: Content; readonly verbatim: boolean },
  parts: Pick<SessionParts, "slashCommands" | "mentions" | "agent" | "services"> & {
    readonly opened: OpenAgent;
  },
  signal: AbortSignal,
): Promise<ReadyPrompt> {
  const { skills } = parts.agent;
  const command = parts.slashCommands && !verbatim ? await skills?.findCommand(content) : undefined;
  if (command?.type === "unknown")
    return { type: "ended", ending: unansweredEnding("unknown_command", command.reason) };
  const received = await parts.opened.prepare(first, signal);
  if (received.type === "blocked") {
    const error = `A hook refused the prompt: ${received.reason}`;
    return { type: "ended", ending: unansweredEnding("prompt_blocked", error) };
  }
  if (command !== undefined && skills !== undefined)
    return expand(received.content, { command, skills, parts, signal });
  if (verbatim) return received;
  const { opened } = parts;
  const { discovered } = parts.services.runtime;
  const named =
    parts.mentions || parts.slashCommands ? namedAgents(received.content, { discovered, opened }) : [];
  const attached = parts.mentions ? await attachMentions(received.content, opened, signal) : received.content;
  return {
    type: "ready",
    content: withBlocks(attached, [...named, ...askedWorkflow(received.content, { discovered, opened })]),
  };
}

/** Where what a prompt names is looked for. */
interface NamedParts {
  readonly discovered: DiscoveredAgents;
  readonly opened: OpenAgent;
}

/** A person who writes this word wants the work cut up by a workflow. */
const workflowWord = /\bultracode\b/i;

function askedWorkflow(content: Content, { discovered, opened }: NamedParts): readonly TextBlock[] {
  const isWritten = workflowWord.test(textOf({ role: "user", content }));
  const isOn = discovered.settings.settings.plain.workflowKeywordTriggerEnabled !== false;
  if (!isWritten || !isOn || !opened.plan.tools.some(({ name }) => name === "Workflow")) return [];
  return [
    {
      type: "text",
      text: "<system-reminder>\nThe prompt says ultracode: the person wants this done by a workflow. Write a script for the Workflow tool that cuts the work into steps with checks between them, unless the work is too small for several agents.\n</system-reminder>",
    },
  ];
}

/** The text of the skill that a person called, in the place of the call. */
async function expand(
  content: Content,
  {
    command,
    skills,
    parts,
    signal,
  }: {
    readonly command: Extract<SlashCommand, { type: "call" }>;
    readonly skills: Pick<AgentSkills, "expand">;
    readonly parts: Pick<SessionParts, "agent">;
    readonly signal: AbortSignal;
  },
): Promise<ReadyPrompt> {
  const callId = `slash-${command.skill.name}`;
  const context = parts.agent.parts.toolContext({ callId, signal, progress: () => undefined });
  try {
    const text = await skills.expand(command, context);
    return { type: "ready", content: withExpansion(content, command.written, text) };
  } catch (error) {
    if (signal.aborted) return { type: "ended", ending: stoppedEnding(abortCode(signal)) };
    const why = error instanceof Error ? error.message : String(error);
    return { type: "ended", ending: unansweredEnding("command_failed", why) };
  }
}

/** The model never saw the prompt, and neither will the next run. */
function unansweredEnding(reason: string, error: string): RunEnding {
  return { status: "failed", reason, text: "", error, denials: [], totals: noTotals };
}

type PromptContent = UserMessage["content"];

interface Mention {
  readonly path: string;
  readonly offset?: number;
  readonly limit?: number;
}

/** More than a person writes into one prompt; the rest stays text. */
const maxMentions = 20;

/**
 * Adds the files of the working directories that a prompt names as `@path` or `@path#L10-20`, as the agent's own Read
 * shows them. Hooks and rules decide about each like about a call of the model; what they refuse stays text.
 */
async function attachMentions(
  content: PromptContent,
  { plan, ports }: { readonly plan: AgentPlan; readonly ports: LoopPorts },
  signal: AbortSignal,
): Promise<PromptContent> {
  const tool = ports.tools.find(({ name }) => name === "Read");
  const mentions = readMentions(textOf({ role: "user", content })).slice(0, maxMentions);
  if (tool === undefined || mentions.length === 0) return content;
  const blocks: UserBlock[] = [];
  for (const [index, mention] of mentions.entries()) {
    const file = await findFile(mention.path, plan);
    if (file === undefined) continue;
    const { path: _path, ...range } = mention;
    const input = { file_path: file, ...range };
    const call = { type: "tool_use", id: `mention-${index + 1}`, name: tool.name, input } as const;
    const authorization = await ports.authorize({ call, tool, input }, { signal });
    if (authorization.type === "denied") continue;
    const { paths, allowedBy } = authorization;
    const context = ports.toolContext(call.id, {
      signal,
      progress: () => undefined,
      allowedBy,
      approvedPaths: paths,
    });
    const outcome = await tool.call(authorization.input, context);
    if (outcome.isError === true) continue;
    const shown =
      typeof outcome.content === "string"
        ? [textBlock(outcome.content)]
        : outcome.content.filter((block) => block.type !== "tool_reference");
    blocks.push(textBlock(`The prompt mentions ${mention.path}. This is what Read shows of it:`), ...shown);
  }
  return withBlocks(content, blocks);
}

function withBlocks(content: PromptContent, blocks: readonly UserBlock[]): PromptContent {
  if (blocks.length === 0) return content;
  return [...(typeof content === "string" ? [textBlock(content)] : content), ...blocks];
}

/** What the model is shown of the agents that a person names; it writes their task. What is no agent stays text. */
function namedAgents(
  content: PromptContent,
  { discovered: { registry }, opened }: NamedParts,
): readonly UserBlock[] {
  const canStart = opened.ports.tools.some(({ name }) => name === "Agent");
  const names = readAgentMentions(textOf({ role: "user", content })).slice(0, maxMentions);
  return names.flatMap((name) => {
    const found = registry.find(name);
    if (found.type === "unknown") return [];
    const { id, definition } = found.agent;
    const asked = `The person asks for the agent ${id}`;
    if (found.type === "denied")
      return [textBlock(`${asked}, which the rule ${found.rule} denies. Say so instead of doing its work.`)];
    if (!canStart || !maySpawn(opened.plan.spawn, definition))
      return [textBlock(`${asked}, which you cannot start here. Say so instead of doing its work.`)];
    return [
      textBlock(
        `${asked}. Start it with the Agent tool (subagent_type ${JSON.stringify(id)}) for what the prompt wants of it, with a task that has all it needs; do not do its work yourself.`,
      ),
    ];
  });
}

/** `@agent-name`, `@agent-plugin:name`, `@"name (agent)"`. */
export function readAgentMentions(text: string): readonly string[] {
  const found = text.matchAll(/(?:^|\s)@(?:agent-([\w:.-]+)|"([^"\n]+) \(agent\)")/g);
  const names = [...found].map(([, bare = "", quoted]) => quoted ?? bare.replace(/[.:-]+$/, ""));
  return [...new Set(names)].filter((name) => name !== "");
}

function textBlock(text: string): TextBlock {
  return { type: "text", text };
}

/** `@path`, `@"a path"`, either with lines behind it. */
export function readMentions(text: string): readonly Mention[] {
  const found = text.matchAll(/(?:^|\s)@(?:"([^"\n]+)"|([^\s"]+))/g);
  const mentions = [...found].map(([, quoted, bare = ""]) => {
    const written = quoted ?? bare.replace(/[.,;:!?)\]}'`]+$/, "");
    const [, path = written, first, last] = /^(.*?)#L(\d+)(?:-L?(\d+))?$/.exec(written) ?? [];
    if (first === undefined) return { path };
    const offset = Number(first);
    return { path, offset, limit: Math.max(1, Number(last ?? first) - offset + 1) };
  });
  const unique = new Map(mentions.map((mention) => [JSON.stringify(mention), mention]));
  return [...unique.values()].filter(({ path }) => path !== "");
}

async function findFile(path: string, { directory, policy }: AgentPlan): Promise<string | undefined> {
  const home = policy.home ?? homedir();
  const file = resolve(directory, path.replace(/^~(?=\/|$)/, home));
  if (!isInside(file, policy.workingDirectories)) return undefined;
  const isFile = await stat(file).then(
    (stats) => stats.isFile(),
    () => false,
  );
  return isFile ? file : undefined;
}
