import type { DocumentPath, Issue } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { effortLevels } from "@retinue/base/foundation/option-words.ts";
import { parseModeLoosely, permissionModes } from "@retinue/gate/permission-policy.ts";
import { readHooks } from "../hooks/read-hooks.ts";
import type { AgentMcpServer, MemoryScope } from "./agent-definition.ts";
import { type AgentLimits, readAgentLimits } from "./agent-limits.ts";
import type { DefinitionKey } from "./definition-keys.ts";
import { type FrontmatterField, isMapping } from "./read-frontmatter.ts";
import { readDisallowedTools, readTools } from "./read-tool-list.ts";

export interface FieldReport {
  readonly report: (severity: "warning" | "note", code: string, message: string, advice?: string) => void;
  readonly unreadable: (reason: string) => undefined;
  readonly issues: Issue[];
}

export interface FieldReader {
  /** What to write, as one sentence for the person. */
  readonly expected: string;
  readonly read: (field: FrontmatterField, to: FieldReport) => unknown;
}

/** One reader for each field; each takes every shape real files use and reports the ones it cannot. */
export const fieldReaders: Readonly<Record<DefinitionKey, FieldReader>> = {
  name: { expected: "Write `name: my-agent`.", read: readName },
  description: { expected: "Write `description: …` as one text.", read: readDescription },
  tools: { expected: "Write a list, such as `tools: Read, Grep, Glob`.", read: readTools },
  disallowedTools: {
    expected: "Write a list, such as `disallowedTools: Write, Edit`.",
    read: readDisallowedTools,
  },
  model: {
    expected: "Write an alias (sonnet, opus, haiku, inherit), a model id, or `provider/model`.",
    read: readWord,
  },
  permissionMode: { expected: `Write one of ${permissionModes.join(", ")}.`, read: readMode },
  maxTurns: { expected: "Write a whole number from 1, such as `maxTurns: 30`.", read: readTurns },
  skills: { expected: "Write a list of skill names.", read: readNames },
  mcpServers: {
    expected: "Write a list of server names or `name: {command: …}` entries.",
    read: readServers,
  },
  hooks: { expected: "Write `hooks:` with events below it, as in settings.json.", read: readHooksField },
  memory: { expected: "Write user, project or local.", read: readMemory },
  color: { expected: "Write a colour name.", read: readWord },
  background: { expected: "Write true or false.", read: readBoolean },
  effort: { expected: "Write low, medium, high, xhigh, max or a number.", read: readEffort },
  isolation: { expected: "Write `isolation: worktree`, or leave it out.", read: readIsolation },
  initialPrompt: { expected: "Write one text.", read: readText },
  omitClaudeMd: { expected: "Write true or false.", read: readBoolean },
  criticalSystemReminder_EXPERIMENTAL: { expected: "Write one text.", read: readText },
  forkContext: { expected: "Write true or false.", read: readBoolean },
  limits: {
    expected: "Write `limits:` with lines such as `seconds: 900` or `usd: 0.5` below it.",
    read: readLimits,
  },
};

function readName(field: FrontmatterField, to: FieldReport): string | undefined {
  if (field.value === null) return undefined;
  if (typeof field.value === "string") return field.value.trim();
  if (typeof field.value === "object") return to.unreadable("it is not a text");
  return field.text
    .split("\n")[0]
    ?.replace(/\s+#.*$/, "")
    .trim();
}

function readDescription(field: FrontmatterField, to: FieldReport): string | undefined {
  const text = typeof field.value === "string" ? field.value : proseOf(field);
  const value = text.replaceAll("\\n", "\n").trim();
  if (value !== text.trim()) {
    to.report(
      "note",
      "literal-backslash-n",
      "The description holds the two characters `\\n`; they were read as line breaks.",
    );
  }
  return value === "" ? undefined : value;
}

/** A colon made YAML see a mapping or list where a person wrote prose. */
function proseOf(field: FrontmatterField): string {
  return field.value === null || field.value === undefined ? "" : field.text;
}

function readNames(field: FrontmatterField, to: FieldReport): readonly string[] | undefined {
  const { value } = field;
  if (value === null) return undefined;
  if (typeof value === "string") return splitNames(value);
  if (!Array.isArray(value)) return to.unreadable("it is not a list");
  const names = value
    .flat(3)
    .map((entry: unknown) => (isRecord(entry) && Object.hasOwn(entry, "name") ? entry["name"] : entry));
  if (names.some((name) => typeof name !== "string" && name !== null)) {
    const message = `An entry of \`${field.key}\` is not a name; it was left out.`;
    to.report("warning", "unreadable-field", message, fieldReaders.skills.expected);
  }
  return names.filter((name) => typeof name === "string").flatMap(splitNames);
}

function splitNames(text: string): string[] {
  const names = text.split(/[,\n]/).map((name) => name.trim().replace(/^(["'`])(.*)\1$/, "$2"));
  return names.filter((name) => name !== "");
}

function readWord(field: FrontmatterField, to: FieldReport): string | undefined {
  const { value } = field;
  if (value === null) return undefined;
  if (typeof value === "string") return value.trim() === "" ? undefined : value.trim();
  if (typeof value === "object") return to.unreadable("it is not one word");
  return String(value);
}

function readText(field: FrontmatterField, to: FieldReport): string | undefined {
  if (typeof field.value === "string") return field.value.trim() === "" ? undefined : field.value.trim();
  const prose = proseOf(field);
  return prose === "" ? to.unreadable("it is not a text") : prose;
}

function readMode(field: FrontmatterField, to: FieldReport): string | undefined {
  if (field.value === null) return undefined;
  if (typeof field.value !== "string") return to.unreadable("it is not one word");
  const written = field.value.trim();
  const mode = parseModeLoosely(written);
  if (mode !== written && written !== "manual") {
    const effect = mode === undefined ? "the agent keeps its parent's mode" : `it was read as ${mode}`;
    to.report(
      "warning",
      "unknown-permission-mode",
      `There is no permission mode ${JSON.stringify(written.slice(0, 80))}; ${effect}.`,
      fieldReaders.permissionMode.expected,
    );
  }
  return mode;
}

function readTurns(field: FrontmatterField, to: FieldReport): number | undefined {
  if (field.value === null) return undefined;
  const turns = typeof field.value === "string" ? Number(field.value.trim() || "x") : field.value;
  if (typeof turns === "number" && Number.isSafeInteger(turns) && turns > 0) return turns;
  return to.unreadable("it is not a whole number from 1");
}

function readServers(field: FrontmatterField, to: FieldReport): readonly AgentMcpServer[] | undefined {
  return readMcpServersField(field.value, { ...to, path: [field.key] });
}

function readHooksField(field: FrontmatterField, to: FieldReport): unknown {
  if (field.value === null) return undefined;
  if (typeof field.value !== "object") return to.unreadable("it is not a mapping of events");
  const { hooks, issues } = readHooks(field.value, [field.key]);
  to.issues.push(...issues);
  return hooks;
}

const memoryScopes: readonly MemoryScope[] = ["user", "project", "local"];

function readMemory(field: FrontmatterField, to: FieldReport): MemoryScope | undefined {
  if (field.value === null) return undefined;
  const scope = memoryScopes.find((known) => known === field.value);
  return scope ?? to.unreadable(`${JSON.stringify(field.value)?.slice(0, 40)} is not a scope`);
}

/**
 * Other programs may have a `limits` of their own, which is ignored. Where one entry is a limit as it is meant here, the
 * field is meant for us, and another entry that cannot be kept is an error.
 */
function readLimits(field: FrontmatterField, to: FieldReport): AgentLimits | undefined {
  if (field.value === null) return undefined;
  const reading = readAgentLimits(field.value);
  if (reading.type === "limits") return reading.limits;
  const reason = `${reading.at === undefined ? "it" : `\`${reading.at}\``} ${reading.reason}`;
  if (!holdsLimit(field.value)) return to.unreadable(reason);
  to.issues.push({
    severity: "error",
    code: "unreadable-restriction",
    message: `\`${field.key}\` cannot be read (${reason}); the agent is not loaded, because it could take more than was meant.`,
    advice: fieldReaders.limits.expected,
    path: [field.key],
  });
  return undefined;
}

function holdsLimit(value: unknown): boolean {
  if (!isRecord(value)) return false;
  return Object.entries(value).some(
    ([key, written]) => readAgentLimits({ [key]: written }).type === "limits",
  );
}

const booleanWords = new Map<unknown, boolean>([
  ...["true", "yes", "on", "1", "y"].map((word): [string, boolean] => [word, true]),
  ...["false", "no", "off", "0", "n"].map((word): [string, boolean] => [word, false]),
]);

function readBoolean(field: FrontmatterField, to: FieldReport): boolean | undefined {
  if (field.value === null) return undefined;
  if (typeof field.value === "boolean") return field.value;
  const value = booleanWords.get(String(field.value).trim().toLowerCase());
  return value ?? to.unreadable("it is neither true nor false");
}

function readEffort(field: FrontmatterField, to: FieldReport): string | number | undefined {
  if (typeof field.value === "number") return field.value;
  const word = readWord(field, to);
  if (word === undefined || effortLevels.some((level) => level === word)) return word;
  to.report(
    "warning",
    "unknown-effort",
    `There is no effort ${JSON.stringify(word)}; the session's effort is used.`,
    fieldReaders.effort.expected,
  );
  return word;
}

function readIsolation(field: FrontmatterField, to: FieldReport): string | undefined {
  if (field.value === null || field.value === false) return undefined;
  if (field.value === true) {
    const message = "`isolation: true` was read as `worktree`, the one isolation there is.";
    to.report("warning", "unknown-isolation", message, fieldReaders.isolation.expected);
    return "worktree";
  }
  if (typeof field.value !== "string") return to.unreadable("it is not one word");
  const word = field.value.trim();
  if (word === "" || word === "none") return undefined;
  if (word !== "worktree") {
    to.report(
      "warning",
      "unknown-isolation",
      `There is no isolation ${JSON.stringify(word)}; the agent is listed, but starting it is refused.`,
      fieldReaders.isolation.expected,
    );
  }
  return word;
}

interface ServersReport {
  readonly unreadable: (reason: string) => undefined;
  readonly issues: Issue[];
  readonly path: DocumentPath;
}

/** More come from a mistake or from repeated YAML aliases, never from a person. */
const maxServers = 1000;

/** Reads `mcpServers`: names, `{name: config}` entries, `{serverName, tools}` entries, or one mapping of all servers. */
function readMcpServersField(value: unknown, to: ServersReport): readonly AgentMcpServer[] | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === "string") return value.split(",").flatMap((name) => reference(name));
  if (isMapping(value)) return fromMapping(value, to, []);
  if (!Array.isArray(value)) return to.unreadable("it is neither a list nor a mapping");
  if (value.length > maxServers) return to.unreadable(`it names more than ${maxServers} servers`);
  return value.flatMap((entry: unknown, index): readonly AgentMcpServer[] => {
    if (typeof entry === "string") return reference(entry);
    if (isMapping(entry)) return fromMapping(entry, to, [index]);
    to.issues.push(dropped([...to.path, index], "an entry is neither a name nor a `name: config` mapping"));
    return [];
  });
}

function fromMapping(
  entry: Record<string, unknown>,
  to: ServersReport,
  at: DocumentPath,
): readonly AgentMcpServer[] {
  if (typeof entry["serverName"] === "string") return narrowed(entry["serverName"], entry["tools"], to, at);
  const servers = Object.entries(entry);
  if (servers.length > maxServers) return to.unreadable(`it names more than ${maxServers} servers`) ?? [];
  return servers.flatMap(([name, config]): readonly AgentMcpServer[] => {
    if (config === null || config === true) return reference(name);
    if (isMapping(config)) return [{ type: "inline", name, config }];
    to.issues.push(dropped([...to.path, ...at, name], `the configuration of \`${name}\` is not a mapping`));
    return [];
  });
}

/** `tools` limits the server, so a value that cannot be read drops the server instead of opening all of it. */
function narrowed(
  name: string,
  tools: unknown,
  to: ServersReport,
  at: DocumentPath,
): readonly AgentMcpServer[] {
  if (tools === undefined || tools === null) return reference(name);
  const names = typeof tools === "string" ? tools.split(",").map((tool) => tool.trim()) : tools;
  if (Array.isArray(names) && names.every((tool) => typeof tool === "string")) {
    return [{ type: "reference", name, tools: names }];
  }
  to.issues.push(dropped([...to.path, ...at, "tools"], `\`tools\` of \`${name}\` is not a list of names`));
  return [];
}

function reference(name: string): readonly AgentMcpServer[] {
  return name.trim() === "" ? [] : [{ type: "reference", name: name.trim() }];
}

function dropped(path: DocumentPath, reason: string): Issue {
  return {
    severity: "warning",
    code: "mcp-server-dropped",
    message: `An MCP server was left out: ${reason}.`,
    advice: "Write the server's name, or `name:` with `command` or `url` below it.",
    path,
  };
}
