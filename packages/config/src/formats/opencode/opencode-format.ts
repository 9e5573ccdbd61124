import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import {
  emptyAgent,
  hasClass,
  modelOf,
  modelWord,
  oneAgent,
  refusedReading,
  restOf,
  usableName,
} from "../common-fields.ts";
import { createFieldTaker, reportRest } from "../field-reader.ts";
import type { FormatId } from "../format-places.ts";
import { holdRestrictions } from "../hold-restrictions.ts";
import { allowedThere, deniedThere } from "../path-patterns.ts";
import type {
  AgentFormat,
  PortableAgent,
  PortableReading,
  PortableTool,
  ReadContext,
  ToolClass,
} from "../portable-agent.ts";
import { readFenced, readJson, type SourceFields, type SourceRefusal } from "../read-source.ts";
import { writeFenced, writeJson } from "../write-text.ts";
import { permissionKeys, readPermission } from "./read-permission.ts";

/** opencode's Markdown files. */
export const opencodeFormat: AgentFormat = {
  id: "opencode",
  read(text, context) {
    const fields = readFenced(text, context);
    if ("refused" in fields) return refusedReading(fields);
    const ofAll = settingsOfAll(context);
    if ("refused" in ofAll) return refusedReading(ofAll);
    return readAgent(fields, context, {
      format: "opencode",
      id: context.relative.replace(/\.md$/i, ""),
      ofAll,
    });
  },
  write: (agent, note) => writeFenced(fieldsOf(agent), agent.prompt, note),
  // Folders are part of the name.
  fileName: ({ id }) =>
    `${id
      .split("/")
      .map((part) => usableName(part))
      .join("/")}.md`,
};

/** Agents under `agent` in opencode.json, which may hold comments. */
export const opencodeJsonFormat: AgentFormat = {
  id: "opencode-json",
  read(text, context) {
    const document = readJson(text, context, { comments: true });
    if ("refused" in document) return refusedReading(document);
    // The next version says `agents` and `system`.
    const entries = (["agent", "agents"] as const).flatMap((key) => {
      const value = document.value[key];
      return isRecord(value) ? Object.entries(value).map(([id, agent]) => ({ key, id, value: agent })) : [];
    });
    const readings = entries.map(({ key, id, value }): PortableReading => {
      if (!isRecord(value)) return { agents: [], diagnostics: [] };
      const { prompt = value["system"], system: _same, ...others } = value;
      const fields: SourceFields = {
        values: new Map(Object.entries(others)),
        body: promptOf(prompt, context),
        locate: (path) => document.locate([key, id, ...path]) ?? document.locate([key, id]),
        diagnostics: [],
      };
      if (typeof prompt === "string" && fields.body === "" && prompt.trim() !== "")
        return {
          agents: [],
          diagnostics: [
            {
              severity: "error",
              code: "unreadable-file",
              message: `The prompt of ${quote(id)} names a file that does not exist or is outside the project: ${quote(prompt, 120)}.`,
              advice: "Name a file below the folder of the project.",
              file: context.file,
              ...document.locate([key, id, "prompt"]),
            },
          ],
        };
      return readAgent(fields, context, {
        format: "opencode-json",
        id,
        ofAll: [document.value],
      });
    });
    return {
      agents: readings.flatMap((reading) => reading.agents),
      diagnostics: readings.flatMap((reading) => reading.diagnostics),
    };
  },
  write(agent, note) {
    const fields = [...fieldsOf(agent), ["prompt", agent.prompt] as const].filter(
      ([, value]) => value !== undefined,
    );
    const text = writeJson([["agent", { [agent.id]: Object.fromEntries(fields) }]]);
    return note === undefined
      ? text
      : `${note
          .split("\n")
          .map((line) => `// ${line}\n`)
          .join("")}${text}`;
  },
  fileName: () => "opencode.json",
};

/** `opencode.json` of the project and of its `.opencode`: what it permits holds for agents in files of their own, too. */
function settingsOfAll({
  relative,
  include,
}: ReadContext): readonly Readonly<Record<string, unknown>>[] | SourceRefusal {
  const folder = "../".repeat(relative.split("/").length);
  const found: Readonly<Record<string, unknown>>[] = [];
  for (const place of [`../${folder}`, folder])
    for (const name of ["opencode.json", "opencode.jsonc"]) {
      const text = include?.(`${place}${name}`);
      if (text === undefined) continue;
      const document = readJson(text, { file: name, relative: name }, { comments: true });
      if ("refused" in document) return document;
      found.push(document.value);
    }
  return found;
}

function promptOf(prompt: unknown, { include }: ReadContext): string {
  if (typeof prompt !== "string") return "";
  const named = /^\{file:(.+)\}$/.exec(prompt.trim())?.[1];
  return (named === undefined ? prompt : (include?.(named.trim()) ?? "")).trim();
}

function readAgent(
  fields: SourceFields,
  context: ReadContext,
  {
    format,
    id,
    ofAll,
  }: {
    readonly format: FormatId;
    readonly id: string;
    readonly ofAll: readonly Readonly<Record<string, unknown>>[];
  },
): PortableReading {
  const taker = createFieldTaker(fields.values, context, fields.locate);
  const rights = readPermission(taker, ofAll) ?? { tools: [], deny: [] };
  const name = taker.text("name") ?? id;
  const mode = taker.text("mode");
  if (taker.flag("disable") === true || taker.flag("disabled") === true)
    return {
      agents: [],
      diagnostics: [
        {
          severity: "note",
          code: "agent-disabled",
          message: `The agent ${quote(name)} is switched off in its file.`,
          file: context.file,
          ...fields.locate(["disable"]),
        },
      ],
    };
  const description = taker.text("description") ?? "";
  if (description === "")
    taker.report(
      "warning",
      "no-description",
      "There is no `description`, by which a model decides when to use the agent.",
      "description",
    );
  const isPrimary = mode === "primary" || /(?:^|\/)modes?\//.test(context.file.replaceAll("\\", "/"));
  if (isPrimary)
    taker.report(
      "note",
      "unknown-kept",
      "`mode: primary` has no meaning here: the agent can be started like any other.",
      "mode",
    );
  const written: PortableAgent = {
    ...emptyAgent(format, context.file),
    ...rights,
    id: name,
    description,
    prompt: fields.body,
    model: modelOf(taker.text("model"), format),
    limits: { turns: taker.number("steps") ?? taker.number("maxSteps") },
    color: taker.text("color"),
    rest: {},
  };
  const agent = holdRestrictions(written, taker, {
    product: "opencode",
    keys: ["disallowedTools", "permissionMode"],
  });
  reportRest(taker, "opencode");
  const rest = { ...(isPrimary ? { mode: "primary" } : {}), ...taker.rest() };
  return oneAgent(
    { ...agent, rest },
    {
      fields,
      taker,
      places: {
        maxTurns: "steps",
        tools: fields.values.has("permission") ? "permission" : "tools",
        disallowedTools: "permission",
      },
    },
  );
}

/** Nothing unknown is ever written: opencode hands it to the provider. */
function fieldsOf(agent: PortableAgent): (readonly [string, unknown])[] {
  const { mode, ...rest } = Object.fromEntries(restOf(agent, "opencode"));
  const isColor =
    agent.color !== undefined &&
    /^(?:#[0-9a-f]{6}|primary|secondary|accent|success|warning|error|info)$/i.test(agent.color);
  return [
    ["description", agent.description],
    ["mode", mode ?? "subagent"],
    ["model", modelWord(agent, "opencode", /^[\w.-]+\/\S+$/)],
    ["steps", agent.limits.turns],
    ["permission", permissionOf(agent)],
    ["color", isColor ? agent.color : undefined],
    ...Object.entries(rest),
  ];
}

/** Deny everything first and open what is allowed; or, where everything is allowed, only what is denied. */
function permissionOf(agent: PortableAgent): Readonly<Record<string, unknown>> | undefined {
  const { tools, deny } = agent;
  if (tools === "all" && deny.length === 0) return undefined;
  const result: [string, unknown][] = tools === "all" ? [] : [["*", "deny"]];
  for (const [key, classes] of permissionKeys) {
    const written = ruleOf(agent, classes);
    if (written === undefined) continue;
    result.push([key, key === "read" && written === "allow" && tools !== "all" ? protectedRead : written]);
  }
  const serverKeys = (list: readonly PortableTool[]): readonly string[] =>
    list.flatMap((each) =>
      each.class === "mcp" && each.server !== undefined ? [`${each.server}_${each.tool ?? "*"}`] : [],
    );
  const denied = serverKeys(deny);
  const allowed = tools === "all" ? [] : serverKeys(tools).filter((key) => !denied.includes(key));
  // The last rule that matches wins, so denials come last.
  for (const key of allowed) result.push([key, "allow"]);
  for (const key of denied) result.push([key, "deny"]);
  return Object.fromEntries(result);
}

/** Where reading is opened by a rule, files with secrets would be open too, which opencode asks about by itself. */
const protectedRead = { "*": "allow", "*.env": "deny", "*.env/*": "deny", "*.env.*": "deny" };

function ruleOf(agent: PortableAgent, classes: readonly ToolClass[]): unknown {
  const [first = "other"] = classes;
  // `edit` is one key for creating and changing: what one of the two must not do, neither may.
  const kinds = first === "create" ? (["create", "change"] as const) : [first];
  const levels = kinds.map((kind) => hasClass(agent, kind));
  const isListed = agent.tools !== "all";
  if (levels.includes("no")) return isListed ? undefined : "deny";
  const denials = kinds
    .flatMap((kind) => patternsOf(agent.deny, kind))
    .map((each) => deniedWords(first, each));
  // A denial that cannot be said takes the whole tool.
  if (denials.includes(undefined)) return isListed ? undefined : "deny";
  const denied = [...new Set(denials.flatMap((each) => each ?? []))];
  const allowed =
    agent.tools === "all"
      ? undefined
      : sharedPatterns(agent.tools, kinds)
          ?.flatMap((pattern) => allowedWords(first, pattern))
          .filter((pattern) => !denied.includes(pattern));
  if (allowed?.length === 0) return undefined;
  const whole = asks.has(first) ? "ask" : "allow";
  if (allowed === undefined && denied.length === 0) return isListed ? whole : undefined;
  const rules: [string, string][] = [
    ["*", allowed === undefined ? whole : "deny"],
    ...(allowed ?? []).map((pattern): [string, string] => [pattern, "allow"]),
    ...denied.map((pattern): [string, string] => [pattern, "deny"]),
  ];
  return Object.fromEntries(rules);
}

/** What says in opencode what a pattern of a tool denies, or more; undefined where nothing does. */
function deniedWords(kind: ToolClass, pattern: string): readonly string[] | undefined {
  if (pathClasses.has(kind)) return deniedThere(pattern);
  if (kind === "shell") return [commandWord(pattern)];
  if (kind === "subagent") return namesIn(pattern);
  if (kind === "skill") return [pattern.replace(/(?:\s|:).*$/s, "")];
  const host = /^domain:([^*]+)$/.exec(pattern)?.[1];
  if (kind === "fetch") return host === undefined ? undefined : [pattern, `*${host.trim()}*`];
  return undefined;
}

/** What says in opencode what a pattern of a tool allows, or less. */
function allowedWords(kind: ToolClass, pattern: string): readonly string[] {
  if (pathClasses.has(kind)) {
    const there = allowedThere(pattern);
    return there === undefined ? [] : [there];
  }
  if (kind === "shell") return /[?\\]/.test(pattern) ? [] : [commandWord(pattern)];
  if (kind === "subagent") return namesIn(pattern);
  return kind === "skill" && !/[\s:*]/.test(pattern) ? [pattern] : [];
}

const pathClasses: ReadonlySet<ToolClass> = new Set(["read", "create", "change", "list"]);

function commandWord(pattern: string): string {
  return pattern.replace(/:\*$/, " *");
}

function namesIn(pattern: string): readonly string[] {
  return pattern.split(",").map((name) => name.trim());
}

/** Whole tools that change something: a person is asked, as in the session the agent comes from. */
const asks: ReadonlySet<ToolClass> = new Set(["create", "shell"]);

function patternsOf(tools: readonly PortableTool[], kind: ToolClass): readonly string[] {
  return tools.flatMap((tool) => (tool.class === kind && tool.pattern !== undefined ? [tool.pattern] : []));
}

/** Patterns that hold for each of the classes; undefined where all of them are whole. */
function sharedPatterns(
  tools: readonly PortableTool[],
  kinds: readonly ToolClass[],
): readonly string[] | undefined {
  const limited = kinds.filter(
    (kind) => !tools.some((tool) => tool.class === kind && tool.pattern === undefined),
  );
  if (limited.length === 0) return undefined;
  const [first = [], ...others] = limited.map((kind) => patternsOf(tools, kind));
  return first.filter((pattern) => others.every((list) => list.includes(pattern)));
}
