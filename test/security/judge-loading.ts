import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { loadMemory } from "../../src/context/load-memory.ts";
import { agentScopes } from "../../src/definitions/agent-definition.ts";
import { parseAgentDefinition } from "../../src/definitions/parse-definition.ts";
import { matchSubject } from "../../src/hooks/match-subject.ts";
import { isAgentId } from "../../src/journal/session-files.ts";
import { childMode } from "../../src/permissions/child-policy.ts";
import { parseRule } from "../../src/permissions/parse-rule.ts";
import { parsePermissionMode } from "../../src/permissions/permission-mode.ts";
import { mergeSettings } from "../../src/settings/merge-settings.ts";
import { createPaths } from "../../src/settings/paths.ts";
import { readSettings, type SettingsScope, settingsScopes } from "../../src/settings/settings.ts";
import { createTrustStore } from "../../src/settings/trust.ts";
import { fieldsOf, texts } from "./case-policy.ts";
import { judgeMcpName, judgeMcpServer } from "./judge-mcp.ts";
import type { Answer, Fields, Roots, SecurityCase } from "./security-case.ts";

type Judge = (testCase: SecurityCase, roots: Roots) => Answer | Promise<Answer>;

/** What is decided while files, settings and ids are read, by the surface of the case. */
export const loadingJudges: ReadonlyMap<string, Judge> = new Map<string, Judge>([
  ["agent_load", ({ context = {} }) => judgeAgent(context)],
  ["settings_load", judgeSetting],
  ["trust_check", judgeTrust],
  ["rule_parse", ({ context = {} }) => judgeRule(context)],
  ["transcript_path", judgeId],
  ["mode_enter", ({ context = {}, mode }) => judgeMode(context, mode)],
  ["hook_match", ({ context = {}, tool }) => judgeHook(context, tool)],
  ["memory_load", judgeMemory],
  ["mcp_register", judgeMcpName],
  ["mcp_connect", judgeMcpServer],
]);

function judgeAgent(context: Fields): Answer {
  const lines = Object.entries(fieldsOf(context["frontmatter"])).map(
    ([key, value]) => `${key}: ${JSON.stringify(value)}`,
  );
  const scope = context["scope"] === "user" ? "user" : "project";
  const { definition } = parseAgentDefinition(`---\n${lines.join("\n")}\n---\nDo it.\n`, {
    file: "x.md",
    scope,
  });
  const isTaken = definition !== undefined && texts(context["existing"]).includes(definition.name);
  return definition === undefined || isTaken ? "deny" : "allow";
}

function judgeSetting({ context = {}, trusted = true }: SecurityCase, { P }: Roots): Answer {
  const scope =
    settingsScopes.find((each) => each === context["scope"]) ?? ("project" satisfies SettingsScope);
  const key = String(context["key"]);
  const { settings } = readSettings(nested(key.split("."), context["value"]), { scope });
  const merged = mergeSettings([{ source: { scope, anchor: P }, settings }], { trusted });
  const isHeld = merged.heldBack.some((held) => held.key === key || held.key.startsWith(`${key}.`));
  return isHeld || merged.brokenRestrictions.length > 0 ? "deny" : "allow";
}

function nested([key = "", ...rest]: readonly string[], value: unknown): Fields {
  return { [key]: rest.length === 0 ? value : nested(rest, value) };
}

async function judgeTrust({ context = {} }: SecurityCase, { H }: Roots): Promise<Answer> {
  const stateFile = join(H, ".claude.json");
  const projects = Object.fromEntries(
    texts(context["trustedRoots"]).map((root) => [root, { hasTrustDialogAccepted: true }]),
  );
  await writeFile(stateFile, JSON.stringify({ projects }));
  const repository = String(context["repo"] ?? context["cwd"]);
  const target = context["nowSymlinkTo"];
  if (typeof target === "string") {
    await rm(repository, { recursive: true, force: true });
    await symlink(target, repository);
  }
  const store = createTrustStore({ stateFile, home: H });
  if (context["persist"] === true)
    return (await store.trust(repository)).type === "stored" ? "allow" : "deny";
  return (await store.isTrusted(repository)).trusted ? "allow" : "deny";
}

function judgeRule({ list, rule }: Fields): Answer {
  const known = (["allow", "ask", "deny"] as const).find((each) => each === list);
  return typeof rule === "string" &&
    parseRule(rule, known === undefined ? {} : { list: known }).type === "rule"
    ? "allow"
    : "deny";
}

/** An id must have the form of one, and be known to this session: a lookup by own key. */
function judgeId({ input, context = {} }: SecurityCase): Answer {
  const { resume, task_id: taskId, agentId } = fieldsOf(input);
  const id = resume ?? taskId ?? agentId;
  if (typeof id !== "string" || !isAgentId(id)) return "deny";
  const owners = new Map([[id, context["idBelongsTo"]]]);
  const isOwn = context["ownSession"] !== undefined && owners.get(id) === context["ownSession"];
  return isOwn || Object.hasOwn(fieldsOf(context["transcripts"]), id) ? "allow" : "deny";
}

/** Nothing but the person's own word for it, where the organisation permits it, leads to `bypassPermissions`. */
function judgeMode(context: Fields, current: string): Answer {
  const mode = parsePermissionMode(String(context["requested"]));
  if (mode === undefined) return "deny";
  const isForbidden = fieldsOf(context["managed"])["disableBypassPermissionsMode"] === "disable";
  if (mode === "bypassPermissions" && (isForbidden || context["hostAllowsBypass"] !== true)) return "deny";
  if (context["by"] !== "model") return "allow";
  const parent = parsePermissionMode(current) ?? "default";
  return childMode(parent, { call: { mode, by: "model" } }) === mode ? "allow" : "deny";
}

/** Allowed is what puts the beginning of the file, and no more of it, into the prompt. */
async function judgeMemory({ context = {}, trusted = true }: SecurityCase, { P, H }: Roots): Promise<Answer> {
  const agent = fieldsOf(context["agent"]);
  const scope = (["user", "project", "local"] as const).find((each) => each === agent["memory"]);
  if (scope === undefined) return "deny";
  const paths = createPaths({ home: H, cwd: P, environment: {}, platform: "linux" });
  const name = String(agent["name"]);
  if (typeof context["sizeBytes"] === "number")
    await writeLongFile(join(paths.agentMemory[scope], name, "MEMORY.md"), context["sizeBytes"]);
  const loaded = await loadMemory({
    definition: {
      name,
      memory: scope,
      source: { scope: agentScopes.find((each) => each === agent["scope"]) ?? "project" },
    },
    paths,
    trusted,
  });
  const { text = "" } = loaded;
  if (loaded.place === undefined || loaded.problems.length > 0) return "deny";
  return text.length < 32_000 &&
    (context["expectTruncation"] === undefined || text.includes("Only the beginning"))
    ? "allow"
    : "deny";
}

async function writeLongFile(file: string, bytes: number): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, "- a line\n".repeat(Math.ceil(bytes / 9)).slice(0, bytes));
}

function judgeHook(context: Fields, tool: string | null): Answer {
  const subject = String(context["subject"] ?? context["toolName"] ?? context["tool"] ?? tool ?? "");
  const matcher = context["matcher"];
  return matchSubject(typeof matcher === "string" ? matcher : undefined, subject) === "no-match"
    ? "deny"
    : "allow";
}
