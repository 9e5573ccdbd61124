import { toolAliases, toolFacts } from "@retinue/base/foundation/tool-table.ts";
import { matchSubject } from "@retinue/config/hooks/match-subject.ts";
import { readPermissions } from "@retinue/config/settings/permission-settings.ts";
import { mergeSettings } from "@retinue/config/settings/settings-layer.ts";
import { readSkillFile } from "@retinue/config/skills/read-skill-file.ts";
import { skillGrants } from "@retinue/config/skills/skill.ts";
import { builtinTools } from "@retinue/config/tools/builtin-tools.ts";
import type { AvailableTool } from "@retinue/config/tools/match-tools.ts";
import { grantTools } from "@retinue/config/tools/tool-grants.ts";
import { sessionRules } from "@retinue/core/kernel/session-rules.ts";
import { chooseTools } from "@retinue/core/planning/plan-tools.ts";
import { createAgentTool } from "@retinue/core/tasks/create-agent-tool.ts";
import { createBuiltinTools } from "@retinue/core/tools/builtin/create-builtin-tools.ts";
import { createSkillTool } from "@retinue/core/tools/builtin/create-skill-tool.ts";
import { createShellDirectories } from "@retinue/core/tools/builtin/shell-directories.ts";
import { createShells } from "@retinue/core/tools/command/shells.ts";
import { specificationsOf } from "@retinue/core/tools/json-schema-of.ts";
import { decide, type PermissionPolicy, removesTool } from "@retinue/gate/decide.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPlace, runCommand } from "./run-command.ts";

const available = builtinTools.map(
  ({ description: _text, ...tool }): AvailableTool => ({ ...tool, origin: "builtin" }),
);
const aliases = [...toolAliases].filter(([, today]) => available.some(({ name }) => name === today));
const spellings = aliases.flatMap(([old, today]) => [
  [old, today] as const,
  [old.toLowerCase(), today] as const,
]);

function rules(list: "allow" | "ask" | "deny", name: string) {
  return readPermissions({ [list]: [name] }).permissions[list].map(({ rule }) => ({ rule, anchor: "/p" }));
}

function flagRules(flags: Parameters<typeof sessionRules>[1]) {
  return sessionRules({ settings: mergeSettings([], { trusted: true }) }, flags, "/p");
}

function granted(definition: { tools?: string[]; disallowedTools?: string[] }): readonly string[] {
  const grant = grantTools({ definition, available, role: "main" });
  return grant.type === "granted" ? grant.tools.map(({ name }) => name) : [];
}

function skill(field: string, name: string) {
  const text = `---\ndescription: d\n${field}: [${name}]\n---\nGo.\n`;
  const parsed = readSkillFile(text, {
    file: "/p/.claude/skills/x/SKILL.md",
    scope: "user",
    kind: "skill",
  });
  if (parsed.skill === undefined) throw new Error(JSON.stringify(parsed.diagnostics));
  return skillGrants(parsed.skill, { trusted: true, directory: "/p" });
}

const interactive = new Set(
  builtinTools.filter(({ effect }) => effect === "interact").map(({ name }) => String(name)),
);

describe.each(spellings)("the old name %s means %s [TLS-4]", (old, today) => {
  const asToday = [expect.objectContaining({ rule: expect.objectContaining({ canonicalTool: today }) })];
  const others = (names: readonly string[]) =>
    available.map(({ name }) => name).filter((name) => !names.includes(name));

  test("in permissions.deny, as in disallowedTools", () => {
    const deny = rules("deny", old);
    const removed = available.filter((tool) => removesTool(tool, { deny })).map(({ name }) => name);
    expect(removed).toEqual([today]);
    const left = granted({ disallowedTools: [old] });
    // What starts or writes to children goes with the tool that starts them.
    const gone = others(left).filter((name) => name !== "SendMessage" && name !== "Workflow");
    expect(gone).toEqual([today]);
  });

  test("in permissions.allow and permissions.ask", () => {
    expect(rules("allow", old)).toEqual(asToday);
    expect(rules("ask", old)).toEqual(asToday);
  });

  test("in tools, and in --tools", () => {
    expect(granted({ tools: [old] })).toEqual([today]);
    const choice = chooseTools(available, [old]);
    expect(choice.type === "chosen" && choice.tools.map(({ name }) => name)).toEqual([today]);
  });

  test("in --allowedTools and --disallowedTools", () => {
    expect(flagRules({ allowedTools: [old] }).allow).toEqual(asToday);
    expect(flagRules({ disallowedTools: [old] }).deny).toEqual(asToday);
  });

  test("in allowed-tools and disallowed-tools of a skill", () => {
    if (!interactive.has(today)) expect(skill("allowed-tools", old).allow).toEqual(asToday);
    expect(skill("disallowed-tools", old).deny).toEqual(asToday);
  });

  test("with a specifier too", () => {
    const reading = parseRule(`${old}(x)`);
    expect(reading.type === "rule" ? reading.rule.canonicalTool : reading.reason).toBe(today);
  });
});

test.each(aliases)("a hook matcher %s fires for calls of %s [HKS-4, TLS-4]", (old, today) => {
  expect(matchSubject(old, today)).toBe("match");
  expect(matchSubject(`Other|${old}`, today)).toBe("match");
  expect(matchSubject(`^${old}$`, today)).toBe("match");
});

test("the built command offers no tool that settings deny by an old name [TLS-4, PRM-8]", async () => {
  const provider = await startFakeProvider({ script: ["Done."] });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  const deny = [
    "View",
    "LS",
    "GrepTool",
    "MultiEdit",
    "NotebookEditCell",
    "KillShell",
    "AgentOutputTool",
    "Task",
  ];
  place.write(".claude/settings.json", JSON.stringify({ permissions: { deny } }));
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  expect(await runCommand(place, ["-p", "go"], { environment })).toMatchObject({ code: 0 });
  const offered = provider.requests[0]?.request.tools.map(({ name }) => name);
  expect(offered).toEqual(["Bash", "TodoWrite", "WebFetch", "Write"]);
});

describe("a program's own tool under a name that the table knows [TLS-4, PRM-8]", () => {
  const policy = (list: "allow" | "deny", name: string): PermissionPolicy => ({
    mode: "default",
    allow: [],
    ask: [],
    deny: [],
    [list]: rules(list, name),
    workingDirectories: ["/p"],
    home: "/h",
  });
  const call = (tool: string) => ({ tool, effect: "execute", paths: [], input: { command: "x" } });

  test.each([
    ["View", "View"],
    ["view", "View"],
    ["View", "view"],
    ["task", "task"],
    ["monitor", "Monitor"],
    ["ticket", "Ticket"],
  ])("deny %s covers the tool %s", (rule, tool) => {
    expect(removesTool({ name: tool }, policy("deny", rule))).toBe(true);
    expect(decide(call(tool), policy("deny", rule)).type).toBe("deny");
  });

  test("allow covers it in exactly these letters", () => {
    expect(decide(call("View"), policy("allow", "View"))).toMatchObject({ type: "allow", allowedBy: "rule" });
    expect(decide(call("view"), policy("allow", "View")).type).toBe("ask");
  });

  test("a denied command of a shell that is not understood denies every command of it", () => {
    expect(decide(call("PowerShell"), policy("deny", "PowerShell(rm *)")).type).toBe("deny");
    expect(decide(call("PowerShell"), policy("allow", "PowerShell(rm *)")).type).toBe("ask");
  });
});

test("every tool that is made here has what the table declares about it [TLS-4]", () => {
  const now = () => 0;
  const made = [
    ...createBuiltinTools({
      shells: createShells({ newId: () => "0", now }),
      directories: createShellDirectories(),
      now,
    }),
    createAgentTool({
      agents: [],
      background: true,
      spawn: async () => ({ type: "refused", reason: "not here" }),
    }),
    createSkillTool({ list: "", call: async () => ({ content: "" }) }),
  ];
  for (const tool of made) {
    const facts = toolFacts.get(tool.name);
    expect(tool.effect, tool.name).toBe(facts?.effect);
    expect(tool.isConcurrencySafe?.({}), tool.name).toBe(facts?.isConcurrencySafe);
    expect(tool.repeats, tool.name).toBe(facts?.repeats);
    const properties = Object.keys(specificationsOf([tool])[0]?.inputSchema["properties"] ?? {});
    const fields = [
      facts?.mainField,
      facts?.callField,
      ...(facts?.pathFields ?? []),
      ...(facts?.requiredFields ?? []),
    ].filter((field) => field !== undefined);
    expect(properties, tool.name).toEqual(expect.arrayContaining(fields));
    const required = specificationsOf([tool])[0]?.inputSchema["required"] ?? [];
    expect(required, tool.name).toEqual(expect.arrayContaining([...(facts?.requiredFields ?? [])]));
  }
});
