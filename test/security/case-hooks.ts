import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SourcedHookRule } from "@retinue/config/hooks/hook-rule.ts";
import { mergeSettings } from "@retinue/config/settings/settings-layer.ts";
import { createHookRunner, type HookRunner } from "@retinue/core/hooks/hook-runner.ts";
import { caseFiles, fieldsOf, isTrusted, layerOf } from "./case-settings.ts";
import { type Fields, isFields, type Roots, type ScopeRules, type SecurityCase } from "./security-case.ts";

type CallEvent = "PreToolUse" | "PermissionRequest";

/** A runner of the hooks of a case: each of its answers is that of a real program in a settings file. */
export async function openCaseHooks(testCase: SecurityCase, roots: Roots): Promise<HookRunner> {
  const { context = {} } = testCase;
  const written = ([event, keys]: readonly [CallEvent, readonly string[]]) =>
    keys.flatMap((key) => answersOf(context[key])).map((answer) => ({ event, answer }));
  const hooks = hookFields.flatMap(written);
  const layers = await Promise.all(
    hooks.map(async ({ event, answer }, at) => {
      // The schema of cases says that it is one of these.
      const scope = (answer["scope"] ?? "user") as ScopeRules["scope"];
      const settings = { hooks: { [event]: [await writeHook(answer, { event, at, roots })] } };
      return layerOf({ scope, settings }, roots);
    }),
  );
  const trusted = await isTrusted(testCase, roots);
  const files = caseFiles(testCase).map((file) => layerOf(file, roots));
  const merged = mergeSettings([...files, ...layers], { trusted });
  const rules = merged.hooks.map(
    ({ hook, source }): SourcedHookRule => ({
      hook,
      origin: { type: "settings", file: source.file },
    }),
  );
  return createHookRunner({
    rules,
    session: { sessionId: "s", transcript: join(roots.H, "s.jsonl") },
    projectDirectory: roots.P,
    environment: { PATH: process.env["PATH"], HOME: roots.H },
    warnOnly: merged.extra.get("failingHooks") === "warn",
    newId: () => "1",
    graceMs: 100,
  });
}

const hookFields = [
  ["PreToolUse", ["preToolUseHook", "preToolUseHooks", "hooks"]],
  ["PermissionRequest", ["permissionRequestHook", "permissionRequestHooks"]],
] as const;

/** Seconds that a hook gets which is to take too long. */
const shortLimit = 0.3;

function answersOf(written: unknown): readonly Fields[] {
  if (Array.isArray(written)) return written.flatMap(answersOf);
  if (!isFields(written)) return [];
  const lists = [written["answers"], written["results"], written["hooks"]].filter(Array.isArray);
  return lists.length > 0 ? lists.flatMap(answersOf) : [written];
}

async function writeHook(
  answer: Fields,
  { event, at, roots }: { readonly event: CallEvent; readonly at: number; readonly roots: Roots },
): Promise<Fields> {
  const { matcher, onFailure, async } = answer;
  const file = join(roots.W, `hook-${at}`);
  const hangs = isTooLong(answer);
  const stdout = typeof answer["stdout"] === "string" ? answer["stdout"] : printed(answer, event);
  await writeFile(`${file}.out`, stdout);
  await writeFile(`${file}.err`, String(answer["stderr"] ?? ""));
  const ending = answer["crash"] === true ? "kill -SEGV $$" : `exit ${Number(answer["exitCode"] ?? 0)}`;
  const lines = [
    "cat > /dev/null",
    ...(hangs ? ["sleep 30"] : []),
    `cat '${file}.err' >&2`,
    `cat '${file}.out'`,
    ending,
  ];
  await writeFile(`${file}.sh`, `${lines.join("\n")}\n`);
  const handler = {
    type: "command",
    command: `sh '${file}.sh'`,
    ...(hangs ? { timeout: shortLimit } : {}),
    onFailure,
    async,
  };
  return { matcher, hooks: [handler] };
}

/** With a time that it takes and one that it may take, the two decide; else that a limit is mentioned. */
function isTooLong({ timeout, timeoutMs, timedOut, hangs, delayMs, sleepMs, durationMs }: Fields): boolean {
  const takes = [delayMs, sleepMs, durationMs].find((given) => typeof given === "number");
  const may = typeof timeoutMs === "number" ? timeoutMs : defaultLimitMs;
  if (typeof takes === "number") return takes > may;
  return [timeout, timeoutMs, timedOut, hangs].some(Boolean);
}

const defaultLimitMs = 60_000;

/** What a hook prints for its answer; one that has none prints nothing. */
function printed(answer: Fields, event: CallEvent): string {
  const pick = (...names: readonly string[]): Fields =>
    Object.fromEntries(names.flatMap((name) => (answer[name] === undefined ? [] : [[name, answer[name]]])));
  const permissions = [
    ...(Array.isArray(answer["updatedPermissions"]) ? answer["updatedPermissions"] : []),
    ...(answer["setMode"] === undefined
      ? []
      : [{ type: "setMode", mode: answer["setMode"], destination: "session" }]),
  ];
  const changes = {
    ...pick("updatedInput"),
    ...(permissions.length === 0 ? {} : { updatedPermissions: permissions }),
  };
  const behavior = answer["behavior"] ?? answer["permissionDecision"];
  const specific =
    event === "PreToolUse"
      ? { ...pick("permissionDecision", "permissionDecisionReason", "additionalContext"), ...changes }
      : { decision: { behavior, ...pick("message", "interrupt"), ...changes } };
  const common = pick("decision", "reason", "continue", "stopReason", "systemMessage", "suppressOutput");
  const hasSpecific =
    event === "PermissionRequest" ? behavior !== undefined : Object.keys(specific).length > 0;
  const raw = pick("hookSpecificOutput");
  const whole = {
    ...raw,
    ...common,
    ...(hasSpecific ? { hookSpecificOutput: { hookEventName: event, ...specific } } : {}),
  };
  return Object.keys(fieldsOf(whole)).length === 0 ? "" : JSON.stringify(whole);
}
