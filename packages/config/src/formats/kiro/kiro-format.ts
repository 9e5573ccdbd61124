import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import type { AgentMcpServer } from "../../agents/agent-definition.ts";
import {
  allowedWords,
  baseName,
  emptyAgent,
  fileStem,
  hasClass,
  modelOf,
  modelWord,
  oneAgent,
  refusedReading,
  restOf,
  withListedServers,
} from "../common-fields.ts";
import { inlineServers } from "../copilot/copilot-format.ts";
import { createForeignFields, type ForeignFields, readWords, reportRest } from "../field-reader.ts";
import type { FormatId } from "../format-facts.ts";
import { holdRestrictions } from "../hold-restrictions.ts";
import { allowedHere, allowedThere, deniedHere, deniedThere } from "../path-patterns.ts";
import type {
  AgentFormat,
  PortableAgent,
  PortableReading,
  PortableTool,
  ReadContext,
  ToolClass,
} from "../portable-agent.ts";
import { readFenced, readJson, type SourceFields } from "../read-fenced.ts";
import { createToolWords, plainClasses } from "../tool-words.ts";
import { writeFenced, writeJson } from "../write-fenced.ts";

const words = createToolWords({
  words: `
    read: read
    write: create change notebook
    shell: shell
    glob: find list
    grep: search
    web_fetch: fetch
    web_search: websearch
    use_subagent: subagent
    todo_list: todo`,
  alsoReads: `
    @builtin: read create change notebook shell find list search fetch websearch subagent todo
    fs_read: read
    fs_write: create change notebook
    execute_bash: shell
    execute_cmd: shell
    web: fetch websearch
    subagent: subagent`,
  readServer(word) {
    if (!word.startsWith("@") || word === "@") return undefined;
    const [server = "", tool] = word.slice(1).split("/");
    return [{ server, tool: tool === "*" ? undefined : tool }];
  },
  writeServer: ({ server, tool }) =>
    server === undefined ? undefined : `@${server}${tool === undefined ? "" : `/${tool}`}`,
});

/** Kiro's JSON files. Without `tools` an agent has none. */
export const kiroFormat: AgentFormat = {
  id: "kiro",
  read(text, context) {
    const document = readJson(text, context);
    if ("refused" in document) return refusedReading(document);
    const { prompt, ...others } = document.value;
    const body = promptOf(prompt, context);
    const fields: SourceFields = {
      values: new Map(Object.entries(others)),
      body: body ?? "",
      locate: (path) => document.locate(path) ?? { line: 1, column: 1 },
      diagnostics:
        body !== undefined
          ? []
          : [
              {
                severity: "error",
                code: "unreadable-file",
                message: `The prompt names a file that does not exist or is outside the project: ${quote(prompt, 120)}.`,
                advice: "Name a file below the folder of the project.",
                file: context.file,
                ...document.locate(["prompt"]),
              },
            ],
    };
    return readAgent(fields, context, "kiro");
  },
  write: (agent, note) =>
    writeJson([
      ["name", agent.id],
      // JSON has no comments, and Kiro takes no unknown keys: the note has to be where a person reads it.
      [
        "description",
        note === undefined ? agent.description : `${agent.description} [${note.replaceAll("\n", " ")}]`,
      ],
      ["prompt", agent.prompt],
      ...fieldsOf(agent),
    ]),
  fileName: (agent) => `${fileStem(agent)}.json`,
};

/** The same fields above a prompt in Markdown. */
export const kiroMarkdownFormat: AgentFormat = {
  id: "kiro-md",
  read(text, context) {
    const fields = readFenced(text, context);
    return "refused" in fields ? refusedReading(fields) : readAgent(fields, context, "kiro-md");
  },
  write: (agent, note) =>
    writeFenced(
      [["name", agent.id], ["description", agent.description], ...fieldsOf(agent)],
      agent.prompt,
      note,
    ),
  fileName: (agent) => `${fileStem(agent)}.md`,
};

function promptOf(prompt: unknown, { include }: ReadContext): string | undefined {
  if (prompt === undefined || prompt === null) return "";
  if (typeof prompt !== "string") return undefined;
  return prompt.startsWith("file://") ? include?.(prompt.slice("file://".length))?.trim() : prompt.trim();
}

function readAgent(fields: SourceFields, context: ReadContext, format: FormatId): PortableReading {
  const taker = createForeignFields(fields.values, context, fields.locate);
  const entries = taker.entries("tools") ?? [];
  const settings = taker.take("toolsSettings") ?? {};
  if (!isRecord(settings)) taker.fails("toolsSettings", "it is not an object");
  const named: "all" | readonly PortableTool[] = entries.includes("*")
    ? "all"
    : readWords(entries, words, { taker, key: "tools", product: "Kiro" });
  const servers = taker.servers("mcpServers");
  const isAlone = ["includeMcpJson", "useLegacyMcpJson"].some((key) => taker.peek(key) === false);
  const own = isAlone ? ofOwnServers(named, servers) : named;
  const limited = limitTools(own, isRecord(settings) ? settings : {}, taker);
  const excluded = taker.entries("excludedTools");
  const ruled = deniedByRules(taker);
  if (taker.has("hooks"))
    taker.loses("hooks-dropped", "`hooks` of Kiro have other events; they are not run here.", "hooks");
  if (taker.has("allowedTools"))
    taker.loses(
      "mode-dropped",
      "`allowedTools` lists what Kiro runs without asking; here the session decides that.",
      "allowedTools",
    );
  const written: PortableAgent = {
    ...emptyAgent(format, context.file),
    id: taker.text("name") ?? baseName(context.relative, /\.(?:json|md)$/i),
    description: taker.text("description") ?? "",
    prompt: fields.body,
    model: modelOf(taker.text("model"), format),
    tools: limited.tools,
    deny: [
      ...limited.deny,
      ...ruled,
      ...(excluded === undefined
        ? []
        : readWords(excluded, words, { taker, key: "excludedTools", product: "Kiro" })),
    ],
    mcp: servers,
    rest: {},
  };
  const agent = holdRestrictions(written, taker, {
    product: "Kiro",
    keys: ["disallowedTools", "permissionMode"],
  });
  if (agent.description === "")
    taker.report(
      "warning",
      "no-description",
      "There is no `description`, by which a model decides when to use the agent.",
      "description",
    );
  reportRest(taker, "Kiro", ["hooks", "allowedTools", "includeMcpJson", "useLegacyMcpJson"]);
  const rest = {
    ...taker.rest(),
    ...(isRecord(settings) && !isOwnSettings(settings) ? { toolsSettings: settings } : {}),
  };
  return oneAgent(
    { ...withListedServers(agent, taker, "mcpServers"), rest },
    { fields, taker, places: { disallowedTools: "toolsSettings" } },
  );
}

/** Settings that the reader turned into patterns and the writer makes again. */
function isOwnSettings(settings: Readonly<Record<string, unknown>>): boolean {
  const known: Readonly<Record<string, readonly string[]>> = {
    shell: ["allowedCommands"],
    write: ["allowedPaths"],
    subagent: ["availableAgents"],
  };
  return Object.entries(settings).every(
    ([tool, value]) =>
      isRecord(value) && Object.keys(value).every((key) => known[tool]?.includes(key) === true),
  );
}

/** The tools without those of servers that are not the agent's own. */
function ofOwnServers(
  tools: "all" | readonly PortableTool[],
  servers: readonly AgentMcpServer[] = [],
): readonly PortableTool[] {
  const own = servers.map(({ name }): PortableTool => ({ class: "mcp", server: name, raw: `@${name}` }));
  if (tools === "all")
    return [...plainClasses.map((kind): PortableTool => ({ class: kind, raw: kind })), ...own];
  return tools.flatMap((tool) => {
    if (tool.class !== "mcp" || own.some(({ server }) => server === tool.server)) return [tool];
    return tool.server === undefined || tool.server.includes("*") ? own : [];
  });
}

const globs = { hasClasses: true };

/** A pattern that cannot be expressed here takes the tool away instead of opening it. */
function limitTools(
  tools: "all" | readonly PortableTool[],
  settings: Readonly<Record<string, unknown>>,
  taker: ForeignFields,
): Pick<PortableAgent, "tools" | "deny"> {
  let list = tools;
  const deny: PortableTool[] = [];
  for (const name of Object.keys(settings)) {
    const meant = name.toLowerCase();
    if (!knownLimits.has(name) && knownLimits.has(meant))
      taker.fails("toolsSettings", `Kiro has no tool ${quote(name)}; ${quote(meant)} may be meant`);
  }
  const part = (names: readonly string[], key: string): readonly string[] | undefined => {
    const sections = names.map((name) => settings[name] ?? {});
    if (!sections.every(isRecord)) return taker.fails("toolsSettings", `${quote(names[0])} is not an object`);
    const values = sections.map((section) => section[key] ?? undefined).filter((each) => each !== undefined);
    if (values.length > 1) return taker.fails("toolsSettings", `\`${key}\` is set under two names`);
    const [value] = values;
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every((entry) => typeof entry === "string")) return value;
    return taker.fails("toolsSettings", `\`${key}\` is not a list of strings`);
  };
  const narrow = (kinds: readonly ToolClass[], patterns: readonly string[]): void => {
    const whole =
      list === "all"
        ? [
            ...plainClasses.map((kind): PortableTool => ({ class: kind, raw: kind })),
            { class: "mcp", raw: "*" } as const,
          ]
        : list;
    list = whole.flatMap((tool) =>
      kinds.includes(tool.class) ? patterns.map((pattern) => ({ ...tool, pattern })) : [tool],
    );
  };
  const shells = ["shell", "execute_bash", "execute_cmd"];
  const isClosed = shells.some(
    (name) => isRecord(settings[name]) && settings[name]["denyByDefault"] === true,
  );
  const commands = part(shells, "allowedCommands") ?? (isClosed ? [] : undefined);
  if (commands !== undefined) {
    const patterns = commands.map(patternOfCommands);
    for (const [index, pattern] of patterns.entries())
      if (pattern === undefined)
        taker.loses(
          "pattern-dropped",
          `The expression ${quote(commands[index])} cannot be expressed here; the commands it allows are not allowed.`,
          "toolsSettings",
        );
    narrow(
      ["shell"],
      patterns.filter((pattern) => pattern !== undefined),
    );
  }
  for (const command of part(shells, "deniedCommands") ?? []) {
    const pattern = patternOfCommands(anywhere(command));
    if (pattern === undefined)
      taker.loses(
        "pattern-dropped",
        `The expression ${quote(command)} cannot be expressed here; no command is allowed.`,
        "toolsSettings",
      );
    deny.push({ class: "shell", raw: "shell", pattern });
  }
  const here = (patterns: readonly string[]) => patterns.map((each) => allowedHere(each, globs));
  const paths = part(["write", "fs_write"], "allowedPaths");
  if (paths !== undefined) narrow(["create", "change", "notebook"], here(paths));
  for (const pattern of deniedHere(part(["write", "fs_write"], "deniedPaths") ?? [], globs))
    for (const kind of ["create", "change", "notebook"] as const)
      deny.push({ class: kind, raw: "write", pattern });
  const agents = part(["subagent", "use_subagent"], "availableAgents");
  if (agents !== undefined) narrow(["subagent"], agents.length === 0 ? [] : [agents.join(", ")]);
  for (const pattern of deniedHere(part(["read", "fs_read"], "deniedPaths") ?? [], globs))
    deny.push({ class: "read", raw: "read", pattern });
  const readable = part(["read", "fs_read"], "allowedPaths");
  if (readable !== undefined) narrow(["read"], here(readable));
  for (const [name, section] of Object.entries(settings)) {
    const limit = limitNotKept(name, section);
    const limited = limit === undefined ? [] : words.read(name).filter((tool) => tool.class !== "other");
    if (limit === undefined || limited.length === 0) continue;
    taker.loses(
      "pattern-dropped",
      `\`toolsSettings\` limits ${quote(name)} by ${quote(limit)}, which cannot be expressed here; the agent does not have the tool.`,
      "toolsSettings",
    );
    deny.push(...limited.filter((tool) => tool.class === "mcp"));
    narrow(
      limited.map((tool) => tool.class).filter((kind) => kind !== "mcp"),
      [],
    );
  }
  return { tools: list, deny };
}

/** The settings of a tool that are read; the others may limit it in a way that is not known here. */
const knownLimits: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    shell: ["allowedCommands", "deniedCommands", "denyByDefault"],
    execute_bash: ["allowedCommands", "deniedCommands", "denyByDefault"],
    execute_cmd: ["allowedCommands", "deniedCommands", "denyByDefault"],
    write: ["allowedPaths", "deniedPaths"],
    fs_write: ["allowedPaths", "deniedPaths"],
    read: ["allowedPaths", "deniedPaths"],
    fs_read: ["allowedPaths", "deniedPaths"],
    subagent: ["availableAgents"],
    use_subagent: ["availableAgents"],
  }),
);

/** What needs no question there, which the session decides here. */
const unasked: ReadonlySet<string> = new Set([
  "autoAllowReadonly",
  "allowReadOnly",
  "trusted",
  "trustedAgents",
]);

function limitNotKept(name: string, section: unknown): string | undefined {
  if (!isRecord(section)) return undefined;
  const isNothing = (key: string, value: unknown): boolean =>
    value === false ||
    value === null ||
    (/^(?:denied|blocked)/.test(key) && Array.isArray(value) && value.length === 0);
  return Object.entries(section).find(
    ([key, value]) =>
      !unasked.has(key) && knownLimits.get(name)?.includes(key) !== true && !isNothing(key, value),
  )?.[0];
}

/** What a capability of the rules is about; a path or a command is given as a pattern, and nothing else is here. */
const capabilities: ReadonlyMap<string, readonly ToolClass[]> = new Map([
  ["fs_read", ["read", "find", "list", "search"]],
  ["fs_write", ["create", "change", "notebook"]],
  ["filesystem", ["read", "find", "list", "search", "create", "change", "notebook"]],
  ["shell", ["shell"]],
  ["web_fetch", ["fetch"]],
  ["web_search", ["websearch"]],
  ["web", ["fetch", "websearch"]],
  ["mcp", ["mcp"]],
  ["subagent", ["subagent"]],
  ["builtin", plainClasses],
  ["*", [...plainClasses, "mcp"]],
]);

/** What the rules of Kiro 3 deny; a denial wins there over all else. What they allow is only not asked about. */
function deniedByRules(taker: ForeignFields): readonly PortableTool[] {
  const written = taker.take("permissions");
  if (written === undefined) return [];
  const rules = isRecord(written) ? written["rules"] : written;
  if (!Array.isArray(rules)) return taker.fails("permissions", "it is not a list of rules") ?? [];
  if (rules.some((rule) => isRecord(rule) && (rule["effect"] === "allow" || rule["effect"] === "ask")))
    taker.loses(
      "mode-dropped",
      "`permissions` sets what Kiro asks about; here the session decides that.",
      "permissions",
    );
  return rules.flatMap((rule: unknown) => deniedByRule(rule, taker));
}

function deniedByRule(rule: unknown, taker: ForeignFields): readonly PortableTool[] {
  const { capability, effect, match, exclude } = isRecord(rule) ? rule : {};
  if (effect === "allow" || effect === "ask") return [];
  const kinds = capabilities.get(String(capability));
  const patterns = match === undefined || match === null ? ["**"] : [match].flat();
  if (effect !== "deny" || kinds === undefined || !patterns.every((each) => typeof each === "string"))
    return (
      taker.fails(
        "permissions",
        "a rule has no `capability` and `effect` that are known, or its `match` is not a list of patterns",
      ) ?? []
    );
  if (exclude !== undefined)
    taker.loses(
      "pattern-dropped",
      `What a rule for ${quote(capability)} leaves out by \`exclude\` is denied here too.`,
      "permissions",
    );
  const isWhole = patterns.some((each) => /^(?:\*|\*\*|\*\*\/\*)$/.test(each.trim()));
  if (isWhole) return kinds.map((kind): PortableTool => ({ class: kind, raw: String(capability) }));
  return kinds.flatMap((kind) => deniedCalls(kind, patterns, taker));
}

/** Some calls of a class; where a pattern cannot say here which, all of them. */
function deniedCalls(
  kind: ToolClass,
  patterns: readonly string[],
  taker: ForeignFields,
): readonly PortableTool[] {
  const tool: PortableTool = { class: kind, raw: kind };
  if (["read", "create", "change", "notebook"].includes(kind))
    return deniedHere(patterns, globs).map((pattern) => ({ ...tool, pattern }));
  // What may not be read is not found here either.
  if (["find", "list", "search"].includes(kind)) return [];
  const servers = patterns.flatMap(words.read).filter((each) => kind === "mcp" && each.class === "mcp");
  if (servers.length === patterns.length) return servers;
  if (kind === "shell" && !patterns.some((each) => /[\\[\]{}]/.test(each)))
    return patterns.map((each) => ({ ...tool, pattern: each.replaceAll("?", "*") }));
  taker.loses(
    "pattern-dropped",
    `Which calls ${patterns.map((each) => quote(each)).join(", ")} of a rule denies cannot be expressed here; none is allowed.`,
    "permissions",
  );
  return [tool];
}

/** Whether an expression has to fit the whole command differs between versions: one that denies does it anywhere. */
function anywhere(expression: string): string {
  const start = /^(?:\^|\.\*)/.test(expression) ? "" : ".*";
  return `${start}${expression}${/(?:^|[^\\])(?:\\\\)*\$$|\.\*$/.test(expression) ? "" : ".*"}`;
}

/** What a denial forbids here wherever it is in a command line, and also without arguments. */
function deniedExpressions(pattern: string): readonly string[] {
  const text = pattern.replace(/:\*$/, " *");
  return [text, text.replace(/ \*$/, "")].map((each) => commandsOfPattern(`*${each.replace(/^\*/, "")}`));
}

function fieldsOf(agent: PortableAgent): (readonly [string, unknown])[] {
  const { toolsSettings, ...rest } = Object.fromEntries(restOf(agent, "kiro"));
  const isWhole = agent.tools === "all" && agent.deny.length === 0;
  const listed = allowedWords(agent, "kiro", words) ?? [];
  return [
    ["model", modelWord(agent, "kiro")],
    ["mcpServers", inlineServers(agent)],
    ["tools", isWhole ? ["*"] : listed],
    ["toolsSettings", toolsSettings ?? settingsOf(agent)],
    ...Object.entries(rest),
  ];
}

function settingsOf(agent: PortableAgent): Readonly<Record<string, unknown>> | undefined {
  const allowed = (kind: ToolClass): readonly string[] | undefined => {
    if (agent.tools === "all" || hasClass(agent, kind) !== "part") return undefined;
    const own = agent.tools.filter((tool) => tool.class === kind);
    if (own.some((tool) => tool.pattern === undefined)) return undefined;
    return own.flatMap((tool) => tool.pattern ?? []);
  };
  const commands = allowed("shell")?.map(commandsOfPattern);
  const created = allowed("create");
  const changed = allowed("change");
  const paths =
    created === undefined || changed === undefined
      ? undefined
      : created.filter((path) => changed.includes(path)).flatMap((path) => allowedThere(path) ?? []);
  const denied = (kind: ToolClass) =>
    agent.deny.flatMap((tool) => (tool.class === kind && tool.pattern !== undefined ? [tool.pattern] : []));
  const agents = allowed("subagent")?.flatMap((names) => names.split(",").map((name) => name.trim()));
  const shell = {
    allowedCommands: commands,
    ...listOf("deniedCommands", [...new Set(denied("shell").flatMap(deniedExpressions))]),
  };
  const write = {
    allowedPaths: paths,
    ...listOf(
      "deniedPaths",
      denied("change")
        .filter((path) => denied("create").includes(path))
        .flatMap(deniedThere),
    ),
  };
  const sections = Object.entries({
    shell,
    write,
    read: listOf("deniedPaths", denied("read").flatMap(deniedThere)),
    subagent: agents === undefined ? {} : { availableAgents: agents },
  });
  const filled = sections.filter(([, section]) => Object.values(section).some((each) => each !== undefined));
  return filled.length === 0 ? undefined : Object.fromEntries(filled);
}

function listOf(key: string, values: readonly string[]): Readonly<Record<string, readonly string[]>> {
  return values.length === 0 ? {} : { [key]: values };
}

/** An anchored regular expression for the commands of a pattern such as `git diff *`. */
export function commandsOfPattern(pattern: string): string {
  const text = pattern.replace(/:\*$/, " *");
  return `^${text.replace(/[\\^$.|?+()[\]{}]/g, "\\$&").replaceAll("*", ".*")}$`;
}

/** The pattern of an expression that says nothing else; undefined for one that a pattern cannot say. */
export function patternOfCommands(expression: string): string | undefined {
  const inner = expression.replace(/^\^/, "").replace(/\$$/, "");
  const hidden = inner.replaceAll(".*", "\u0000");
  if (/(?<!\\)(?:\\\\)*[.^$|?+()[\]{}*]/.test(hidden)) return undefined;
  const plain = hidden.replace(/\\(.)/g, (whole, character: string) =>
    /\w/.test(character) ? whole : character,
  );
  return /\\\w/.test(plain) || plain.includes("*") ? undefined : plain.replaceAll("\u0000", "*");
}
