import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createRegistry } from "@retinue/config/agents/agent-registry.ts";
import { parseAgentDefinition } from "@retinue/config/agents/parse-agent-definition.ts";
import { matchSubject } from "@retinue/config/hooks/match-subject.ts";
import { loadMemory } from "@retinue/config/instructions/load-memory.ts";
import { createPaths } from "@retinue/config/settings/paths.ts";
import { readSettings, type SettingsScope } from "@retinue/config/settings/settings.ts";
import { mergeSettings } from "@retinue/config/settings/settings-layer.ts";
import { isAgentId } from "@retinue/core/journal/session-files.ts";
import { createMayLoad } from "@retinue/gate/may-load.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { agentScopeOf, caseAgent } from "./case-agent.ts";
import {
  caseFiles,
  fieldsOf,
  isTrusted,
  layerOf,
  mergeCaseSettings,
  texts,
  trustStore,
  writeTrustedRoots,
} from "./case-settings.ts";
import { git, initRepository } from "./fixture.ts";
import { judgeMcpName, judgeMcpServer } from "./judge-mcp.ts";
import { judgeMode } from "./judge-mode.ts";
import {
  type Answer,
  type Fields,
  firstText,
  NotHonoured,
  type Roots,
  type SecurityCase,
} from "./security-case.ts";

type Judge = (testCase: SecurityCase, roots: Roots) => Answer | Promise<Answer>;

/** What is decided while files, settings and ids are read, by the surface of the case. */
export const loadingJudges: ReadonlyMap<string, Judge> = new Map<string, Judge>([
  ["agent_load", ({ context = {} }) => judgeAgent(context)],
  ["settings_load", judgeSetting],
  ["trust_check", judgeTrust],
  ["rule_parse", ({ context = {} }) => judgeRule(context)],
  ["transcript_path", judgeId],
  ["mode_enter", judgeMode],
  ["hook_match", ({ context = {}, tool }) => judgeHook(context, tool)],
  ["memory_load", judgeMemory],
  ["mcp_register", judgeMcpName],
  ["mcp_connect", judgeMcpServer],
]);

/** Fields of a definition that its scope may not have; a definition without them is not the one that was written. */
const fieldsOfPower = ["hooks", "mcpServers", "permissionMode", "initialPrompt"] as const;

/** Allowed is a file that defines an agent with all that it says, under a name that no one of its rank has. */
function judgeAgent(context: Fields): Answer {
  const { scope, frontmatter, body, plugin, raw } = context;
  if (typeof raw === "string") {
    const { definition } = parseAgentDefinition(raw, {
      file: "/agents/x.md",
      scope: agentScopeOf(scope) ?? "project",
    });
    return definition === undefined ? "deny" : "allow";
  }
  const front = fieldsOf(frontmatter);
  const extra = {
    prompt: body,
    plugin,
  };
  const usual = { name: "", scope: "project" as const };
  const definition = caseAgent({ ...front, ...extra, ...(scope === undefined ? {} : { scope }) }, usual);
  if (definition === undefined) return "deny";
  if (fieldsOfPower.some((key) => front[key] !== undefined && definition[key] === undefined)) return "deny";
  const existing = Array.isArray(context["existing"]) ? context["existing"] : [];
  const others = existing.flatMap((entry: unknown) => {
    const named =
      typeof entry === "string" ? { name: entry, scope: definition.source.scope } : fieldsOf(entry);
    return caseAgent(named, { name: "x", scope: agentScopeOf(scope) ?? "project" }) ?? [];
  });
  const found = createRegistry({ definitions: [...others, definition] }).find(
    definition.source.id ?? definition.name,
  );
  return found.type === "found" && found.agent.definition === definition ? "allow" : "deny";
}

async function judgeSetting(testCase: SecurityCase, roots: Roots): Promise<Answer> {
  const { context = {} } = testCase;
  const { key, scope = "project" } = context;
  if (typeof key !== "string") throw new NotHonoured("the case names no key of settings");
  // No settings come with a plugin here.
  if (scope === "plugin") return "deny";
  // The schema of cases says that it is one of these.
  const own = scope as SettingsScope;
  const { settings } = readSettings(nested(key.split("."), context["value"]), { scope: own });
  const layer = { source: { scope: own, anchor: roots.P }, settings };
  const others = caseFiles(testCase).map((file) => layerOf(file, roots));
  const merged = mergeSettings([...others, layer], { trusted: await isTrusted(testCase, roots) });
  const isHeld = merged.heldBack.some((held) => held.key === key || held.key.startsWith(`${key}.`));
  return isHeld || merged.brokenRestrictions.length > 0 ? "deny" : "allow";
}

function nested([key = "", ...rest]: readonly string[], value: unknown): Fields {
  return { [key]: rest.length === 0 ? value : nested(rest, value) };
}

async function judgeTrust({ context = {} }: SecurityCase, roots: Roots): Promise<Answer> {
  const repository = String(context["repo"] ?? context["cwd"] ?? roots.P);
  const isReal = context["worktree"] === true || context["realWorktree"] === true;
  const [trusted = roots.P] = texts(context["trustedRoots"]);
  const owner = context["worktreeOf"] ?? context["mainRepo"] ?? (isReal ? trusted : undefined);
  if (typeof owner === "string") await addWorktree(owner, repository, roots);
  // The file of a real one, of which the repository knows nothing.
  if (context["forged"] === true)
    await forgeWorktree(typeof owner === "string" ? owner : trusted, repository, roots);
  if (typeof context["gitFile"] === "string") {
    await mkdir(repository, { recursive: true });
    await rm(join(repository, ".git"), { recursive: true, force: true });
    await writeFile(join(repository, ".git"), context["gitFile"]);
  }
  await writeTrustedRoots(texts(context["trustedRoots"]), roots);
  const target = context["nowSymlinkTo"];
  if (typeof target === "string") {
    await rm(repository, { recursive: true, force: true });
    await symlink(target, repository);
  }
  const store = trustStore(roots);
  if (context["persist"] === true)
    return (await store.trust(repository)).type === "stored" ? "allow" : "deny";
  return (await store.isTrusted(repository)).trusted ? "allow" : "deny";
}

/** A working tree that git itself has made, of a repository that is there or is made for it. */
async function addWorktree(owner: string, path: string, roots: Roots): Promise<void> {
  await initRepository(roots, owner);
  await rm(path, { recursive: true, force: true });
  await git(roots, owner, "worktree", "add", "-q", "--detach", path);
}

async function forgeWorktree(owner: string, path: string, roots: Roots): Promise<void> {
  await initRepository(roots, owner);
  await rm(path, { recursive: true, force: true });
  await mkdir(path, { recursive: true });
  await writeFile(join(path, ".git"), `gitdir: ${join(owner, ".git/worktrees/forged")}\n`);
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
  const known = [context["known"], context["knownIds"], context["existing"]].flatMap(texts);
  const isKnown = known.includes(id) || Object.hasOwn(fieldsOf(context["transcripts"]), id);
  return isOwn || isKnown ? "allow" : "deny";
}

/** Allowed is what puts the beginning of the file, and no more of it, into the prompt. */
async function judgeMemory(testCase: SecurityCase, roots: Roots): Promise<Answer> {
  const { context = {}, platform = "linux" } = testCase;
  const { P, H } = roots;
  const definition = caseAgent(fieldsOf(context["agent"]), { name: "worker", scope: "project" });
  if (definition?.memory === undefined) return "deny";
  const paths = createPaths({ home: H, cwd: P, environment: {}, platform: "linux" });
  const trusted = await isTrusted(testCase, roots);
  const { permissions } = await mergeCaseSettings(testCase, roots);
  const rules = {
    deny: permissions.deny.map(({ rule, source }) => ({ rule, anchor: source.anchor })),
    ask: permissions.ask.map(({ rule, source }) => ({ rule, anchor: source.anchor })),
  };
  const mayLoad = createMayLoad(rules, { cwd: P, home: H, platform });
  const file = join(paths.agentMemory[definition.memory], definition.name, "MEMORY.md");
  if (typeof context["sizeBytes"] === "number") await writeLongFile(file, context["sizeBytes"]);
  if (typeof context["content"] === "string") {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, context["content"]);
  }
  const loaded = await loadMemory({
    definition,
    paths,
    trusted,
    mayLoad,
  });
  const { text = "" } = loaded;
  if (loaded.place === undefined || loaded.diagnostics.length > 0) return "deny";
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
  const name = firstText(context, ["subject", "toolName", "tool", "name"]) ?? tool;
  const matcher = context["matcher"] ?? context["pattern"];
  if (typeof name !== "string") throw new NotHonoured("the case names nothing to match");
  return matchSubject(typeof matcher === "string" ? matcher : undefined, name) === "no-match"
    ? "deny"
    : "allow";
}
