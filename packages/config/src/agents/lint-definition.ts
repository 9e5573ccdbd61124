import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import type { Diagnostic, DocumentPath, Issue, Place } from "@retinue/base/foundation/diagnostic.ts";
import { quote } from "@retinue/base/foundation/json-record.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import {
  type AliasTable,
  parseModelReference,
  resolveModelReference,
  shippedAliases,
} from "../models/select-subagent-model.ts";
import { builtinTools } from "../tools/builtin-tools.ts";
import type { AvailableTool } from "../tools/match-tools.ts";
import { parseToolEntry, resolveToolName } from "../tools/tool-entry.ts";
import { grantTools } from "../tools/tool-grants.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import { mayWiden } from "./agent-source.ts";
import { rateDescription } from "./rate-description.ts";

/** About 10,000 tokens, which every turn of the agent carries. */
const promptAtMost = 40_000;

const agentColors = ["red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan"] as const;

/** A description must say what the agent does, when to use it, and what it is not for. */
function lintDescription({ description }: AgentDefinition): Issue[] {
  if (description === "") return [];
  const { vague, advice, ...parts } = rateDescription(description);
  if (advice.length === 0) return [];
  const missing = [
    ...(parts.action ? [] : ["what the agent does"]),
    ...(parts.trigger ? [] : ["when to use it"]),
    ...(parts.limits ? [] : ["what it is not for"]),
  ];
  const reason = missing.length === 0 ? "it is too short" : `it does not say ${listWords(missing)}`;
  return [
    {
      severity: vague ? "warning" : "note",
      code: vague ? "vague-description" : "long-description",
      message: vague
        ? `A model cannot see from this description when to delegate: ${reason}.`
        : "The description is longer than it should be.",
      advice: vague ? (advice.find((line) => line.startsWith("For example")) ?? formula) : advice.join("\n"),
      path: ["description"],
    },
  ];
}

const formula = "Write: <what it does>. Use when <situation>. Not for <neighbouring work>.";

export const lintModel: LintRule = ({ model }, { aliases }) => {
  if (model === undefined) return [];
  const reference = parseModelReference(model, aliases);
  const resolved = resolveModelReference(reference, { aliases });
  const path = ["model"];
  if (resolved.type === "unclear") {
    const nearest = resolved.nearest === undefined ? "" : ` Did you mean \`${resolved.nearest}\`?`;
    return [
      {
        severity: "warning",
        code: "unclear-model",
        message: `\`model\` cannot be used: ${resolved.why}.`,
        advice: `Write an alias (sonnet, opus, haiku, inherit), a model id, or provider/model.${nearest}`,
        path,
      },
    ];
  }
  if (reference.type !== "id" || reference.nearest === undefined) return [];
  const message = `Unknown model alias ${quote(model)}; it is used as the id of a model.`;
  const advice = `Did you mean \`${reference.nearest}\`?`;
  return [{ severity: "warning", code: "model-near-miss", message, advice, path }];
};

function lintColor({ color }: AgentDefinition): Issue[] {
  if (color === undefined || agentColors.some((known) => known === color)) return [];
  const nearest = nearestName(color, agentColors);
  const advice = `Write one of ${agentColors.join(", ")}.${nearest === undefined ? "" : ` Did you mean \`${nearest}\`?`}`;
  const message = `${quote(color)} is not a colour of the display; another one is chosen.`;
  return [{ severity: "note", code: "unknown-color", message, advice, path: ["color"] }];
}

function lintPrompt({ prompt, behaviour }: AgentDefinition): Issue[] {
  const path = ["prompt"];
  if (prompt.trim() === "" && behaviour?.computePrompt === undefined) {
    const message = "No prompt was given, so the agent knows nothing but the task it is given.";
    const advice = "Write below the closing `---` what the agent is to do, how, and what it returns.";
    return [{ severity: "warning", code: "empty-prompt", message, advice, path }];
  }
  if (prompt.length <= promptAtMost) return [];
  const tokens = Math.round(prompt.length / 4000);
  const message = `The prompt is about ${tokens},000 tokens long; every turn of the agent carries it.`;
  const advice = "Move reference material into skills or files that the agent reads when it needs them.";
  return [{ severity: "note", code: "long-prompt", message, advice, path }];
}

function listWords(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

/** Fields by which a definition asks for more than its reader may expect, or for more than it will get. */
const lintRights: LintRule = (definition, { trusted }) =>
  cases
    .filter(({ applies }) => applies(definition, isHeldBack(definition, trusted)))
    .map(({ applies: _applies, ...issue }) => issue);

interface RightsCase extends Issue {
  readonly applies: (definition: AgentDefinition, isHeldBack: boolean) => boolean;
}

const howToTrust =
  "Trust the folder (`--trust` for one run; `retinue doctor` shows more) once you have read it.";

const cases: readonly RightsCase[] = [
  {
    severity: "warning",
    code: "bypass-not-granted",
    message: "No file can give `bypassPermissions`: the agent gets it only from a parent that has it.",
    advice: "Remove it, or write `acceptEdits` if only edits should need no question.",
    path: ["permissionMode"],
    applies: ({ permissionMode }) => permissionMode === "bypassPermissions",
  },
  {
    severity: "warning",
    code: "mode-needs-trust",
    message: "`acceptEdits` from a project file holds only in a trusted folder; here the agent asks.",
    advice: howToTrust,
    path: ["permissionMode"],
    applies: ({ permissionMode }, isHeldBack) => permissionMode === "acceptEdits" && isHeldBack,
  },
  {
    severity: "warning",
    code: "edits-and-shell",
    message: "The agent edits without asking and may propose any shell command.",
    advice: "Narrow the shell to what it needs, such as `Bash(npm test *)`, or leave out `acceptEdits`.",
    path: ["permissionMode"],
    applies: (definition) => definition.permissionMode === "acceptEdits" && namesWholeShell(definition),
  },
  {
    severity: "note",
    code: "hooks-need-trust",
    message: "Hooks of a project file run only in a trusted folder; here they are held back.",
    advice: howToTrust,
    path: ["hooks"],
    applies: ({ hooks = [] }, isHeldBack) => hooks.length > 0 && isHeldBack,
  },
  {
    severity: "note",
    code: "servers-need-trust",
    message: "An MCP server from a project file starts only in a trusted folder; here it is held back.",
    advice: howToTrust,
    path: ["mcpServers"],
    applies: ({ mcpServers = [] }, isHeldBack) =>
      isHeldBack && mcpServers.some((server) => server.type === "inline"),
  },
];

function isHeldBack({ source }: AgentDefinition, trusted: boolean): boolean {
  return !mayWiden(source, trusted);
}

function namesWholeShell({ tools = [] }: AgentDefinition): boolean {
  return tools.map(parseToolEntry).some((entry) => {
    const meaning = resolveToolName(entry.name);
    return entry.type === "whole" && "name" in meaning && meaning.name === "Bash";
  });
}

export interface LintFacts {
  /** Whether the folder is trusted; what only trust puts in force is reported otherwise. */
  readonly trusted?: boolean | undefined;
  readonly aliases?: AliasTable | undefined;
  /** Whether a setting lets subagents start the agents that they name. */
  readonly nests?: boolean | undefined;
  /** The text of the definition's file, so that one entry of a list can be pointed at. */
  readonly text?: string | undefined;
}

type LintRule = (definition: AgentDefinition, facts: Required<Omit<LintFacts, "text">>) => Issue[];

const definitionShape = checks.shape({ name: checks.text, source: checks.thing }, ["name", "source"]);

/** What a person should know about a definition that can be read: mistakes, contradictions and weak spots. */
export function lintDefinition(definition: AgentDefinition, facts: LintFacts = {}): Diagnostic[] {
  checkArgument("The first argument of lintDefinition()", definitionShape, definition);
  checkArgument("The second argument of lintDefinition()", checks.thing, facts);
  const { trusted = false, aliases = shippedAliases, nests = false } = facts;
  const known = { trusted, aliases, nests };
  const { file } = definition.source;
  return rules
    .flatMap((rule) => rule(definition, known))
    .map(({ path, ...issue }) => ({
      ...issue,
      file,
      ...placeOf(path, definition, facts.text),
    }));
}

const rules: readonly LintRule[] = [lintDescription, lintTools, lintModel, lintRights, lintColor, lintPrompt];

function placeOf([key, index]: DocumentPath, definition: AgentDefinition, text?: string): Place | undefined {
  const field = String(key);
  const place = Object.hasOwn(definition.written, field) ? definition.written[field]?.place : undefined;
  if (place === undefined || text === undefined || typeof index !== "number") return place;
  const list = field === "tools" ? definition.tools : definition.disallowedTools;
  return placeOfEntry(text, place, list?.[index] ?? "") ?? place;
}

/** Where an entry of a list is in the text, from the place of the list's key on; undefined when it is spelt otherwise there. */
export function placeOfEntry(text: string, key: Place, entry: string): Place | undefined {
  if (entry === "") return undefined;
  const lines = text.split("\n");
  for (let index = key.line - 1; index < lines.length; index += 1) {
    const line = lines[index] ?? "";
    const isFirst = index === key.line - 1;
    if (!isFirst && endsField(line, key.column)) return undefined;
    const at = findWhole(line, entry, isFirst ? key.column - 1 + (key.length ?? 0) : 0);
    if (at !== -1) return { line: index + 1, column: at + 1, length: entry.length };
  }
  return undefined;
}

/** A list continues while lines are indented deeper than its key, or begin with a dash. */
function endsField(line: string, keyColumn: number): boolean {
  const indent = line.search(/\S/);
  if (indent === -1) return false;
  return indent < keyColumn && !/^\s*-(?:\s|$)/.test(line) && !/^\s*[\]#]/.test(line);
}

/** `Edit` must not be found inside `NotebookEdit`. */
function findWhole(line: string, entry: string, from: number): number {
  for (let at = line.indexOf(entry, from); at !== -1; at = line.indexOf(entry, at + 1)) {
    const before = line[at - 1] ?? " ";
    const after = line[at + entry.length] ?? " ";
    if (!/[\w(]/.test(before) && !/[\w(]/.test(after)) return at;
  }
  return -1;
}

/** Entries of `tools` and `disallowedTools` that do not do what their author meant. */
export function lintTools(definition: AgentDefinition, { nests = false }: LintFacts = {}): Issue[] {
  const available = assumedTools(definition);
  const grant = grantTools({ definition, available, role: "subagent", nests });
  const notes = grant.notes.map((note) => (note.code === "tool-is-disallowed" ? contradiction(note) : note));
  if (grant.type === "granted") return notes;
  const asMain = grantTools({ definition, available, role: "main" });
  return [asMain.type === "granted" ? onlyForMain() : noToolLeft(), ...notes];
}

/** The built-in tools, and every MCP tool that is named: which servers will run is not known from a file. */
export function assumedTools(
  definition: Pick<AgentDefinition, "tools" | "disallowedTools">,
): readonly AvailableTool[] {
  const named = [...(definition.tools ?? []), ...(definition.disallowedTools ?? [])]
    .map((entry) => parseToolEntry(entry).name)
    .filter((name) => name.startsWith("mcp__") && name.length > "mcp__".length);
  return [
    ...builtinTools.map(({ description: _text, ...tool }): AvailableTool => ({ ...tool, origin: "builtin" })),
    ...[...new Set(named)].map((name): AvailableTool => ({ name, effect: "network", origin: "mcp" })),
  ];
}

function contradiction(note: Issue): Issue {
  return { ...note, severity: "warning", advice: "Remove it from one of the two lists." };
}

function noToolLeft(): Issue {
  return {
    severity: "error",
    code: "no-tool-left",
    message: "No entry of `tools` is a tool that this agent can have, so starting it is refused.",
    advice: "Name at least one tool, such as `tools: Read, Grep`, or remove the key to give all tools.",
    path: ["tools"],
  };
}

function onlyForMain(): Issue {
  return {
    severity: "warning",
    code: "only-for-main-agent",
    message:
      "`tools` allows nothing but starting other agents, which only a main agent may; as a subagent it is refused.",
    advice: "Add a tool that works in a subagent, such as `Read`, unless it is only started with `--agent`.",
    path: ["tools"],
  };
}
