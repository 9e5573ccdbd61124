import { defined } from "@retinue/base/foundation/defined.ts";
import { type FiredEvent, hookEvents } from "./hook-input.ts";
import { matchSubject, type SubjectMatch } from "./match-subject.ts";

export type HookHandlerType = "command" | "http" | "prompt" | "agent" | "mcp_tool";

/** One thing to run when an event fires. Fields that the type does not use are absent. */
export interface HookHandler {
  readonly type: HookHandlerType;
  readonly command?: string;
  readonly args?: readonly string[];
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly allowedEnvVars?: readonly string[];
  readonly prompt?: string;
  readonly model?: string;
  readonly server?: string;
  readonly tool?: string;
  readonly input?: Readonly<Record<string, unknown>>;
  /** A permission rule that narrows a tool event further. */
  readonly if?: string;
  /** Seconds, as written. */
  readonly timeout?: number;
  readonly async?: boolean;
  /** Like `async`, and its exit with code 2 notifies the model. */
  readonly asyncRewake?: boolean;
  readonly shell?: "bash" | "powershell";
  readonly onFailure?: "continue" | "block";
  readonly statusMessage?: string;
  readonly once?: boolean;
}

/** One handler with the event and matcher it is under; an absent matcher means everything. */
export interface HookRule {
  readonly event: string;
  readonly matcher?: string;
  readonly handler: HookHandler;
}

/** The hooks of one agent's own definition, tied to its run. What a subagent calls its `Stop` is the end of a subagent. */
export function agentHooks(
  hooks: readonly HookRule[],
  agent: { readonly id: string; readonly name: string; readonly isSubagent: boolean },
): readonly SourcedHookRule[] {
  const origin = { type: "agent", agentId: agent.id, name: agent.name } as const;
  return hooks.map((hook) => {
    if (!agent.isSubagent || hook.event !== "Stop") return { hook, origin };
    // Stop has no matcher, so whatever was written there was not meant as an agent's type.
    return { hook: { event: "SubagentStop", handler: hook.handler }, origin };
  });
}

/** Where a hook was written, which decides for whom it fires and what its variables mean. */
export type HookOrigin =
  | { readonly type: "settings"; readonly file?: string }
  | {
      readonly type: "plugin";
      readonly name: string;
      readonly root: string;
      /** Where it may keep files of its own. */
      readonly data?: string;
      readonly file?: string;
    }
  | { readonly type: "agent"; readonly agentId: string; readonly name: string };

export interface SourcedHookRule {
  readonly hook: HookRule;
  readonly origin: HookOrigin;
}

export interface SelectedHook {
  readonly handler: HookHandler;
  readonly origin: HookOrigin;
}

interface HookQuestion {
  readonly event: FiredEvent;
  /** Undefined where the event has nothing to match. */
  readonly subject: string | undefined;
  /** The agent it happens to; hooks of other agents' definitions are silent. */
  readonly agentId: string;
  /** Whether the call at hand falls under a permission rule; absent for events that are no calls. */
  readonly meetsCondition?: (rule: string) => boolean;
}

interface HookSelection {
  readonly selected: readonly SelectedHook[];
  /** Matchers that could not be used, each as one sentence. */
  readonly diagnostics: readonly string[];
}

/** The handlers that an event calls, in the order written, each only once. */
export function selectHooks(
  rules: readonly SourcedHookRule[],
  question: HookQuestion,
  match: MatchSubject = matchSubject,
): HookSelection {
  const selected = new Map<string, SelectedHook>();
  const diagnostics: string[] = [];
  for (const { hook, origin } of rules) {
    if (hook.event !== question.event) continue;
    if (origin.type === "agent" && origin.agentId !== question.agentId) continue;
    const found = matchesQuestion(hook.matcher, question, match);
    if (found === "unusable") diagnostics.push(describeUnusable(hook, question.event));
    if (found === "no-match" || (found === "unusable" && !isGuard(question.event))) continue;
    if (!meetsCondition(hook.handler, question)) continue;
    // The same command of two plugins is two hooks, because each has a root of its own.
    const entries = Object.entries(defined(hook.handler)).sort(([a], [b]) => (a < b ? -1 : 1));
    const key = JSON.stringify([entries, origin.type === "plugin" ? origin.root : ""]);
    if (!selected.has(key)) selected.set(key, { handler: hook.handler, origin });
  }
  return { selected: [...selected.values()], diagnostics };
}

export type MatchSubject = (
  matcher: string | undefined,
  subject: string,
  names?: readonly string[],
) => SubjectMatch;

/** Tools are known by their old names too; agents, notifications and what else is matched have one. */
export function matchesQuestion(
  matcher: string | undefined,
  { event, subject }: Pick<HookQuestion, "event" | "subject">,
  match: MatchSubject,
): SubjectMatch {
  if (subject === undefined) return "match";
  return hookEvents[event].matches === "tool name"
    ? match(matcher, subject)
    : match(matcher, subject, [subject]);
}

/** Events whose hooks protect: when in doubt, they run. */
function isGuard(event: FiredEvent): boolean {
  return event === "PreToolUse" || event === "PermissionRequest";
}

/** A condition applies to calls; at an event that is none it cannot be met. In doubt about a call, the hook runs. */
function meetsCondition({ if: rule }: HookHandler, { meetsCondition: meets }: HookQuestion): boolean {
  if (rule === undefined) return true;
  if (meets === undefined) return false;
  try {
    return meets(rule);
  } catch {
    return true;
  }
}

function describeUnusable({ matcher }: HookRule, event: FiredEvent): string {
  const result = isGuard(event) ? "so its hooks run for every call" : "so its hooks did not run";
  return `The matcher ${JSON.stringify(matcher?.slice(0, 200))} of ${event} is not a valid regular expression, ${result}.`;
}

/** How a hook is called in messages. */
export function describeHook({ handler, origin }: SelectedHook): string {
  const what = handler.command ?? handler.url ?? handler.prompt ?? `${handler.server}/${handler.tool}`;
  const line = what.replace(/\s+/g, " ").trim();
  const short = line.length > 80 ? `${line.slice(0, 77)}...` : line;
  return `${handler.type} hook ${JSON.stringify(short)} (${placeOf(origin)})`;
}

function placeOf(origin: HookOrigin): string {
  switch (origin.type) {
    case "settings":
      return origin.file ?? "settings";
    case "plugin":
      return `plugin ${origin.name}`;
    case "agent":
      return `agent ${origin.name}`;
  }
}
