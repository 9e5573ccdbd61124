import { dirname, join, posix } from "node:path";
import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { withoutByteOrderMark } from "@retinue/base/foundation/parse-json-document.ts";
import { parse, stringify, TomlError } from "smol-toml";
import {
  emptyAgent,
  fileStem,
  hasClass,
  modelOf,
  modelWord,
  needsText,
  oneAgent,
  refusedReading,
  restOf,
} from "../common-fields.ts";
import { createForeignFields, reportRest } from "../field-reader.ts";
import { holdRestrictions } from "../hold-restrictions.ts";
import type {
  AgentFormat,
  PortableAgent,
  PortableReading,
  PortableTool,
  ReadContext,
} from "../portable-agent.ts";
import type { SourceFields, SourceRefusal } from "../read-fenced.ts";

/** Codex role files: instructions and a model; of the tools only the shell can be switched off. */
export const codexFormat: AgentFormat = {
  id: "codex",
  read(text, context) {
    const fields = readToml(text, context);
    if ("refused" in fields) return refusedReading(fields);
    const declared = fields.values.get("agents");
    if (!isConfig(context, fields))
      return isDeclaredElsewhere(fields, context)
        ? { agents: [], diagnostics: [] }
        : readRole(fields, context);
    return isRecord(declared) ? readDeclared(declared, fields, context) : { agents: [], diagnostics: [] };
  },
  write: writeRole,
  fileName: (agent) => `${fileStem(agent)}.toml`,
};

/** Codex's own settings, which can declare roles and hold much else; a file of a role has instructions. */
function isConfig({ file }: ReadContext, { values }: SourceFields): boolean {
  return (
    /(?:^|[\\/])\.codex[\\/]config\.toml$/.test(file) ||
    (isRecord(values.get("agents")) && !values.has("developer_instructions"))
  );
}

/** A file without a name or a description of its own can have them from config.toml, and is read with that. */
function isDeclaredElsewhere({ values }: SourceFields, { relative, include }: ReadContext): boolean {
  if (values.has("name") && values.has("description")) return false;
  const config = include?.(`${"../".repeat(relative.split("/").length)}config.toml`);
  if (config === undefined) return false;
  const fields = readToml(config, { file: "", relative: "" });
  const declared = "refused" in fields ? undefined : fields.values.get("agents");
  return (
    isRecord(declared) &&
    Object.values(declared).some(
      (role) =>
        isRecord(role) &&
        typeof role["config_file"] === "string" &&
        posix.normalize(role["config_file"].replaceAll("\\", "/")) === `agents/${relative}`,
    )
  );
}

/** `[agents.NAME]` names a file; name and description of the table hold where the file has none. */
function readDeclared(
  declared: Readonly<Record<string, unknown>>,
  { locate }: SourceFields,
  context: ReadContext,
): PortableReading {
  if (declared["enabled"] === false) return { agents: [], diagnostics: [] };
  const roles = Object.entries(declared).filter(([, role]) => isRecord(role));
  const readings = roles.map(([name, role]): PortableReading => {
    const { config_file: file, description } = isRecord(role) ? role : {};
    const problem = (message: string, advice: string): PortableReading => ({
      agents: [],
      diagnostics: [
        {
          severity: "warning",
          code: "unreadable-file",
          message,
          advice,
          file: context.file,
          ...locate([`agents.${name}`]),
        },
      ],
    });
    if (typeof file !== "string")
      return problem(
        `The role ${quote(name)} names no file, so it has no instructions; it was left out.`,
        "Write its instructions into a file and name it with `config_file`.",
      );
    const text = context.include?.(file);
    if (text === undefined)
      return problem(
        `The role ${quote(name)} names a file that does not exist or is outside the project: ${quote(file, 120)}.`,
        "Name a file below the folder of the project.",
      );
    const fields = readToml(text, { ...context, file: join(dirname(context.file), file) });
    if ("refused" in fields) return refusedReading(fields);
    // Such a file was found by itself.
    const isFound =
      /^(?:\.[\\/])?agents[\\/]/.test(file) && fields.values.has("name") && fields.values.has("description");
    if (isFound) return { agents: [], diagnostics: [] };
    const values = new Map([
      ["name", name],
      ...(description === undefined ? [] : [["description", description] as const]),
      ...fields.values,
    ]);
    return readRole({ ...fields, values }, { ...context, file: join(dirname(context.file), file) });
  });
  return {
    agents: readings.flatMap(({ agents }) => agents),
    diagnostics: readings.flatMap(({ diagnostics }) => diagnostics),
  };
}

function readRole(fields: SourceFields, context: ReadContext): PortableReading {
  const taker = createForeignFields(fields.values, context, fields.locate);
  const id = needsText(taker, "name", "codex");
  const description = needsText(taker, "description", "codex");
  const prompt = needsText(taker, "developer_instructions", "codex");
  const { features, others } = featuresOf(taker.take("features"));
  if (features["shell_tool"] !== undefined && typeof features["shell_tool"] !== "boolean")
    taker.fails("features", "`shell_tool` is neither true nor false");
  if (taker.has("sandbox_mode") && typeof taker.peek("sandbox_mode") !== "string")
    taker.fails("sandbox_mode", "it is not a string");
  const sandbox = taker.text("sandbox_mode");
  const search = taker.peek("web_search");
  const isOffline = search === false || search === "disabled";
  const isReadOnly = sandbox?.toLowerCase() === "read-only";
  for (const key of ["sandbox_mode", "approval_policy", "mcp_servers", "web_search"]) {
    if (!taker.has(key)) continue;
    const isHeld = (key === "sandbox_mode" && isReadOnly) || (key === "web_search" && isOffline);
    const effect = key === "web_search" ? "it does not search the web" : "the agent only plans";
    const held = isHeld ? `; here ${effect}` : "";
    taker.loses(
      key === "mcp_servers" ? "mcp-dropped" : "mode-dropped",
      `Codex ignores \`${key}\` of an agent${held}.`,
      key,
    );
  }
  const written: PortableAgent = {
    ...emptyAgent("codex", context.file),
    id,
    description,
    prompt,
    model: modelOf(taker.text("model"), "codex"),
    effort: taker.text("model_reasoning_effort"),
    deny: features["shell_tool"] === false ? withoutShell : [],
    rest: {},
  };
  const held = holdRestrictions(written, taker, {
    product: "Codex",
    keys: ["tools", "disallowedTools", "permissionMode"],
  });
  const { tools, deny } = written;
  const there = { tools, deny, mode: undefined };
  const offline: PortableAgent = isOffline
    ? { ...held, deny: [...held.deny, { class: "websearch", raw: "web_search" }], there }
    : held;
  const agent: PortableAgent = isReadOnly ? { ...offline, mode: "plan", there } : offline;
  reportRest(taker, "Codex", ["nickname_candidates", "mcp_servers", "approval_policy", "web_search"]);
  const rest = {
    ...taker.rest(),
    ...(sandbox === undefined ? {} : { sandbox_mode: sandbox }),
    ...(Object.keys(others).length === 0 ? {} : { features: others }),
  };
  return oneAgent(
    { ...agent, rest },
    {
      fields,
      taker,
      places: {
        prompt: "developer_instructions",
        effort: "model_reasoning_effort",
        disallowedTools: "features",
        permissionMode: "sandbox_mode",
      },
    },
  );
}

/** Codex reads and searches with its shell, so that without it neither is there. */
const withoutShell: readonly PortableTool[] = (["shell", "read", "find", "search", "list"] as const).map(
  (kind) => ({ class: kind, raw: "shell_tool" }),
);

function featuresOf(value: unknown): {
  readonly features: Readonly<Record<string, unknown>>;
  readonly others: Readonly<Record<string, unknown>>;
} {
  if (!isRecord(value)) return { features: {}, others: {} };
  const { shell_tool: _shell, ...others } = value;
  return { features: value, others };
}

function readToml(text: string, { file }: ReadContext): SourceFields | SourceRefusal {
  const source = withoutByteOrderMark(text).replace(/\r\n?/g, "\n");
  try {
    const values = new Map<string, unknown>(Object.entries(parse(source)));
    return { values, body: "", diagnostics: [], locate: ([key]) => placeOfKey(source, String(key)) };
  } catch (error) {
    const place =
      error instanceof TomlError ? { line: error.line, column: error.column } : { line: 1, column: 1 };
    const reason = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    return {
      refused: [
        {
          severity: "error",
          code: "invalid-toml",
          message: `This is not valid TOML: ${reason}`,
          advice: "Fix the file here; none of it was used.",
          file,
          ...place,
        },
      ],
    };
  }
}

function placeOfKey(source: string, key: string): { line: number; column: number } {
  const escaped = key.replace(/[^\w-]/g, "\\$&");
  const at = source.search(new RegExp(`^(?:${escaped}\\s*[=.]|\\[+\\s*${escaped}\\b)`, "m"));
  return { line: at === -1 ? 1 : source.slice(0, at).split("\n").length, column: 1 };
}

function writeRole(agent: PortableAgent, note?: string): string {
  const rest = Object.fromEntries(restOf(agent, "codex"));
  const { sandbox_mode: _never, features, ...others } = rest;
  const model = modelWord(agent, "codex", /^(?:gpt|o\d|codex)/);
  const effort = agent.effort === "max" ? "xhigh" : agent.effort;
  const isEffort =
    effort !== undefined && ["none", "minimal", "low", "medium", "high", "xhigh"].includes(effort);
  const switches = {
    ...(isRecord(features) ? features : {}),
    ...(hasClass(agent, "shell") === "no" ? { shell_tool: false } : {}),
  };
  const plain = Object.fromEntries(Object.entries(others).filter(([, value]) => !isRecord(value)));
  const tables = Object.fromEntries(Object.entries(others).filter(([, value]) => isRecord(value)));
  return [
    ...(note === undefined
      ? []
      : [
          `${note
            .split("\n")
            .map((line) => `# ${line}\n`)
            .join("")}`,
        ]),
    `name = ${basic(agent.id)}\n`,
    `description = ${basic(agent.description)}\n`,
    ...(model === undefined ? [] : [`model = ${basic(model)}\n`]),
    ...(isEffort ? [`model_reasoning_effort = ${basic(effort)}\n`] : []),
    ...(Object.keys(plain).length === 0 ? [] : [`${stringify(plain).trimEnd()}\n`]),
    `developer_instructions = ${multiline(agent.prompt)}\n`,
    ...(Object.keys(switches).length === 0 ? [] : [`\n[features]\n${stringify(switches).trimEnd()}\n`]),
    ...(Object.keys(tables).length === 0 ? [] : [`\n${stringify(tables).trimEnd()}\n`]),
  ].join("");
}

/** JSON's escapes are TOML's, but for the delete character. */
function basic(text: string): string {
  return JSON.stringify(text.toWellFormed()).replaceAll("\u007f", "\\u007f");
}

function multiline(text: string): string {
  const escaped = basic(text)
    .slice(1, -1)
    .replaceAll("\\n", "\n")
    .replaceAll('\\"', '"')
    .replaceAll('"""', '""\\"');
  return /[\\]/.test(text) || text.endsWith('"') ? basic(text) : `"""\n${escaped}\n"""`;
}
