import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { HookFunction } from "@retinue/core/hooks/run-handler.ts";
import type { ScriptedCall } from "@retinue/testing/script.ts";
import { fieldsOf } from "./case-settings.ts";
import { runCaseSession, writeCaseSettings } from "./run-case-session.ts";
import {
  type Fields,
  isFields,
  NotHonoured,
  type Roots,
  type SecurityCase,
  type Verdict,
} from "./security-case.ts";

/** Allowed is a command that a session started by its hooks; with a template, one that had the input in its text. */
export async function judgeHookExec(testCase: SecurityCase, roots: Roots): Promise<Verdict> {
  const { context = {} } = testCase;
  const event = eventOf(context);
  const groups = groupsOf(context);
  const commands = groups.flatMap(commandsOf);
  if (commands.length === 0) throw new NotHonoured("the case names no command of a hook that a shell runs");
  if (!firedEvents.has(event)) throw new NotHonoured(`no ${event} happens in a short session`);
  const { agent, plugin } = await writeHooks(testCase, roots, { event, groups });
  const watch = await watchShells(roots);
  const call = callOf(testCase, groups, roots);
  const session = await runCaseSession(testCase, roots, {
    calls: [call],
    env: watch.environment,
    hooks: event.startsWith("PostToolUse") ? [] : [refuseAll],
    pluginDirectories: plugin === undefined ? undefined : [plugin],
    session: agent === undefined ? {} : { agent },
  });
  const { texts, variables } = await watch.read();
  const hasRun = session.requests.length > 0 && texts.some((text) => commands.includes(text));
  if (context["template"] === undefined) return hasRun ? "allow" : "deny";
  if (!hasRun && texts.length === 0) throw new NotHonoured("the hook of the case did not fire");
  return leaksInput(call.input, [...texts.filter((text) => !commands.includes(text)), variables])
    ? "allow"
    : "deny";
}

/** What such a session fires in any case, with one call of a tool. */
const firedEvents: ReadonlySet<string> = new Set(
  "SessionStart SessionEnd UserPromptSubmit PreToolUse PostToolUse Stop".split(" "),
);

/** Only whether hooks run is judged, so nothing that a case calls is run. */
const refuseAll: HookFunction = {
  event: "PreToolUse",
  run: () => ({ hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "deny" } }),
};

function eventOf({ event, key }: Fields): string {
  if (typeof event === "string") return event;
  return typeof key === "string" && key.startsWith("hooks.") ? key.slice("hooks.".length) : "PreToolUse";
}

function groupsOf({ value, command, template, matcher, args, timeout }: Fields): readonly Fields[] {
  if (Array.isArray(value)) return value.filter(isFields);
  const text = command ?? template ?? value;
  if (typeof text !== "string") return [];
  const more = { args, timeout };
  const handler = { type: "command", command: text, ...more };
  return [{ matcher, hooks: [handler] }];
}

function commandsOf({ hooks }: Fields): readonly string[] {
  const handlers = Array.isArray(hooks) ? hooks.map(fieldsOf) : [];
  return handlers.flatMap(({ type, command, args }) =>
    type === "command" && typeof command === "string" && args === undefined ? [command] : [],
  );
}

interface WrittenHooks {
  /** The agent whose definition brings them; it leads the session. */
  readonly agent?: string;
  /** The folder of the plugin that brings them. */
  readonly plugin?: string;
}

/** Hooks of settings, of a plugin, or of an agent of any of them. */
async function writeHooks(
  testCase: SecurityCase,
  roots: Roots,
  { event, groups }: { readonly event: string; readonly groups: readonly Fields[] },
): Promise<WrittenHooks> {
  const { context = {} } = testCase;
  const scope = String(context["scope"] ?? "project");
  const hooks = { [event]: groups };
  const plugin = join(roots.W, "plugin");
  const [owner = "", isAgent] = scope.split("-");
  if (isAgent === undefined && owner !== "plugin") {
    await writeCaseSettings(testCase, roots, { [owner]: { hooks } });
    return {};
  }
  await writeCaseSettings(testCase, roots);
  if (owner === "plugin")
    await write(join(plugin, ".claude-plugin/plugin.json"), JSON.stringify({ name: "p" }));
  if (isAgent === undefined) {
    await write(join(plugin, "hooks/hooks.json"), JSON.stringify({ hooks }));
    return { plugin };
  }
  const folders: Readonly<Record<string, string>> = {
    project: join(roots.P, ".claude/agents"),
    user: join(roots.H, ".claude/agents"),
    managed: join(roots.W, "managed/.claude/agents"),
    plugin: join(plugin, "agents"),
  };
  const front = `name: hooked\ndescription: It works.\nhooks: ${JSON.stringify(hooks)}`;
  await write(join(folders[owner] ?? "", "hooked.md"), `---\n${front}\n---\nWork.\n`);
  return owner === "plugin" ? { agent: "p:hooked", plugin } : { agent: "hooked" };
}

async function write(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o755 });
  await writeFile(file, text, { mode: 0o644 });
}

/** Every bash shows its text and its variables before it would obey, and then ends. */
async function watchShells({ W }: Roots) {
  const [script, said, variables] = [join(W, "watch.sh"), join(W, "watch.texts"), join(W, "watch.variables")];
  const reporting = `printf '%s\\0' "$BASH_EXECUTION_STRING" >> '${said}'\nenv >> '${variables}'\nexit 0\n`;
  await writeFile(script, reporting);
  const read = (file: string): Promise<string> => readFile(file, "utf8").catch(() => "");
  return {
    environment: { BASH_ENV: script },
    read: async () => ({
      texts: (await read(said)).split("\0").filter((text) => text !== ""),
      variables: await read(variables),
    }),
  };
}

function callOf({ tool, input, context = {} }: SecurityCase, groups: readonly Fields[], { P }: Roots) {
  const [named] = groups.flatMap(({ matcher }) => /^\w+/.exec(String(matcher ?? "")) ?? []);
  const name =
    tool ?? (isFields(context["input"]) && "command" in context["input"] ? "Bash" : named) ?? "Read";
  const usual = name === "Bash" ? { command: "true" } : { file_path: join(P, "src/a.ts") };
  return { name, input: input ?? context["input"] ?? usual } satisfies ScriptedCall;
}

function leaksInput(input: unknown, places: readonly string[]): boolean {
  const values = Object.values(fieldsOf(input)).filter((value) => typeof value === "string" && value !== "");
  return values.some((value) => places.some((place) => place.includes(String(value))));
}
