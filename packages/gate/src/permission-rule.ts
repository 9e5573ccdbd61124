import { quote } from "@retinue/base/foundation/json-record.ts";
import { type SubjectKind, toolFacts } from "@retinue/base/foundation/tool-table.ts";

export type RuleList = "allow" | "ask" | "deny";

/** Where a path pattern starts: `//x`, `~/x`, `/x` (the place of the settings file), and `x` or `./x`. */
type PathAnchor = "root" | "home" | "settings" | "cwd";

export type RuleSpecifier =
  | { readonly type: "whole" }
  /** `prefix` ends at a word; `wildcard` keeps its stars, and a last ` *` also matches nothing at all. */
  | { readonly type: "command"; readonly match: "exact" | "prefix" | "wildcard"; readonly text: string }
  /** Gitignore style, without the sign of the anchor; a leading `./` stays. */
  | { readonly type: "path"; readonly anchor: PathAnchor; readonly pattern: string }
  /** Lower case; `*` may be in it. */
  | { readonly type: "domain"; readonly domain: string }
  /** Without `tool`: the whole server. `glob`: the tool has stars. */
  | {
      readonly type: "mcp";
      readonly server: string;
      readonly tool?: string | undefined;
      readonly glob: boolean;
    }
  | { readonly type: "agent"; readonly names: readonly string[] }
  | { readonly type: "skill"; readonly name: string; readonly anyArguments: boolean }
  /** A saved workflow; a script that a call brings along has no name. */
  | { readonly type: "workflow"; readonly name: string }
  /** An input field with its value, which may have stars; for ask and deny only. */
  | { readonly type: "parameter"; readonly name: string; readonly value: string }
  /** The tool's name itself has stars; for ask and deny only. */
  | { readonly type: "toolGlob" }
  /** Not understood: an allow rule grants nothing by it, ask and deny rules must take it for the whole tool. */
  | { readonly type: "text"; readonly text: string };

export interface PermissionRule {
  /** As written. */
  readonly tool: string;
  /** Today's name of that tool. */
  readonly canonicalTool: string;
  readonly specifier: RuleSpecifier;
}

export type RuleReading =
  | { readonly type: "rule"; readonly rule: PermissionRule }
  | { readonly type: "invalid"; readonly reason: string; readonly advice: string };

interface SpecifierInput {
  readonly tool: string;
  readonly canonicalTool: string;
  /** What is in the parentheses, if there are any. */
  readonly text: string | undefined;
  readonly list?: RuleList;
}

type SpecifierReading =
  | { readonly type: "specifier"; readonly specifier: RuleSpecifier }
  | { readonly type: "invalid"; readonly reason: string; readonly advice: string };

/** Reads what a rule specifies about the calls of its tool. */
export function readSpecifier(input: SpecifierInput): SpecifierReading {
  const text = input.text === undefined ? undefined : trimmed(input.text);
  const everything = text === undefined || isEverything(input, text);
  if (specifierKind(input.canonicalTool) === "mcp") return readMcp(input, everything ? undefined : text);
  if (input.tool.includes("*")) return readToolGlob(input, everything);
  if (everything) return accepted({ type: "whole" });
  return readParameter(input, text) ?? readByKind(input, text);
}

/** A blank after a backslash is escaped and stays. */
function trimmed(text: string): string {
  const bare = text.trim();
  let backslashes = 0;
  while (bare[bare.length - 1 - backslashes] === "\\") backslashes += 1;
  return backslashes % 2 === 1 ? `${bare} ` : bare;
}

/** A star alone is every call; for paths it is every file of the folder, unless it restricts: then all files. */
function isEverything({ canonicalTool, list }: SpecifierInput, text: string): boolean {
  if (text === "*") return specifierKind(canonicalTool) !== "path" || list === "deny" || list === "ask";
  return text === "**" && specifierKind(canonicalTool) === "path" && (list === "deny" || list === "ask");
}

function readByKind({ tool, canonicalTool, list }: SpecifierInput, text: string): SpecifierReading {
  switch (specifierKind(canonicalTool)) {
    case "command":
      return readCommand(tool, text, list === "deny" || list === "ask");
    case "path":
      return (
        (list === "allow" ? undefined : (refuseField(tool, text) ?? refusePath(tool, text))) ?? readPath(text)
      );
    case "web": {
      const [, domain] = /^domain:\s*(?:https?:\/\/)?(\S+?)\/?$/i.exec(text) ?? [];
      if (domain === undefined) return accepted({ type: "text", text });
      if (/[/@"'?#]/.test(domain)) {
        const host = /^(?:[a-z][a-z0-9+.-]*:\/\/)?(?:[^/@]*@)?([^/?#]*)/i.exec(
          domain.replace(/["']/g, ""),
        )?.[1];
        return rejected(
          `${quote(domain)} is not a host`,
          `Write the host alone, as in ${quote(`${tool}(domain:${host === "" ? "example.com" : host})`)}.`,
        );
      }
      return domain === "*"
        ? accepted({ type: "whole" })
        : accepted({ type: "domain", domain: domain.toLowerCase() });
    }
    case "agent": {
      const names = text.split(",").map((name) => name.trim());
      if (!names.includes("") && !/[\\()"']/.test(text)) return accepted({ type: "agent", names });
      return rejected(
        `${quote(text)} does not name an agent`,
        `Write ${tool}(name), or ${tool} for every agent.`,
      );
    }
    case "skill": {
      const anyArguments = /[:\s]\*$/.test(text.slice(-2));
      const name = anyArguments ? text.slice(0, -2).trim() : text;
      if (name !== "") return accepted({ type: "skill", name, anyArguments });
      return rejected(`${quote(text)} names no skill`, "Write Skill(name), or Skill for every skill.");
    }
    case "workflow":
      return accepted({ type: "workflow", name: text });
    default:
      return accepted({ type: "text", text });
  }
}

function readCommand(tool: string, written: string, restricts: boolean): SpecifierReading {
  if (restricts && /:\*\s*,/.test(written)) {
    const advice = `Write one rule for each, as in "${tool}(rm:*)", "${tool}(sudo:*)".`;
    return rejected(`in ${quote(`${tool}(${written})`)} contains several patterns`, advice);
  }
  const refusal = restricts ? (refuseExpression(tool, written) ?? refuseColon(tool, written)) : undefined;
  if (refusal !== undefined) return refusal;
  const text = written.endsWith(":*") ? `${written.slice(0, -2).trimEnd()} *` : written;
  if (text.trim() === "*")
    return rejected("there is no command before the asterisk", `Write ${tool} for every command.`);
  const before = text.endsWith(" *") ? text.slice(0, -2).trim() : undefined;
  if (before !== undefined && before !== "" && !before.includes("*")) {
    return accepted({ type: "command", match: "prefix", text: before });
  }
  return accepted({ type: "command", match: text.includes("*") ? "wildcard" : "exact", text });
}

/** `^rm`, `rm|mv` and `rm.*` are regular expressions, and no program has such a name. */
function refuseExpression(tool: string, written: string): SpecifierReading | undefined {
  const [program = ""] = written.split(/[\s:]/, 1);
  if (!/[\^$|[\]?;\\]|\.\*/.test(program)) return undefined;
  const names = program.split("|").map((name) => name.replace(/[\^$[\]?;\\]|\.?\*/g, ""));
  const meant = names.filter((name) => name !== "").map((name) => quote(`${tool}(${name}:*)`));
  return rejected(
    `${quote(`${tool}(${written})`)} matches no command: only \`*\` is special, and it matches any text`,
    `Write ${meant.join(" and ") || quote(`${tool}(rm:*)`)}.`,
  );
}

/** `touch:x` is no command, and `:*` means any arguments only at the end: such a rule would restrict nothing. */
function refuseColon(tool: string, written: string): SpecifierReading | undefined {
  const meant = written
    .replace(/^([A-Za-z][\w.+-]+):(?!\*$|\/\/)(?=\S)/, "$1 ")
    .replaceAll(/\s*:\*(?!$)/g, " *");
  if (meant === written) return undefined;
  return rejected(
    `${quote(`${tool}(${written})`)} matches no command: arguments follow after a space, and \`:*\` is only at the end`,
    `Write ${quote(`${tool}(${meant})`)}, or ${quote(`${tool}(${written.split(":")[0]}:*)`)} for any arguments.`,
  );
}

/** `Read(path:x)` matches a file of that name, which is never meant. */
function refuseField(tool: string, text: string): SpecifierReading | undefined {
  const [, field, path] =
    /^(files?|paths?|file_?name|glob|pattern|dir|directory|folder):\s*(.+)$/is.exec(text) ?? [];
  if (field === undefined || path === undefined) return undefined;
  return rejected(`${tool} has no field "${field}"`, `Write ${quote(`${tool}(${path})`)}.`);
}

/** Signs that are none in paths: such a rule would match a file that does not exist. */
function refusePath(tool: string, text: string): SpecifierReading | undefined {
  const [, quoted] = /^(?:"([^"]*)"|'[^']*')$/.exec(text) ?? [];
  const bare = quoted ?? text.replace(/^'|'$/g, "");
  if (bare !== text)
    return rejected(
      `the path in ${quote(`${tool}(${text})`)} is in quotes`,
      `Write ${quote(`${tool}(${bare})`)}.`,
    );
  if (text.startsWith("!"))
    return rejected(
      `${quote(`${tool}(${text})`)} matches a file whose name begins with "!"; a rule cannot exclude files`,
      `Write ${quote(`${tool}(${text.slice(1)})`)}, or ${quote(`${tool}(\\${text})`)} for a file of that name.`,
    );
  if (text.endsWith(":*"))
    return rejected(
      `${quote(`${tool}(${text})`)} matches no file: \`:*\` is for commands`,
      `Write ${quote(`${tool}(${text.slice(0, -2)})`)}.`,
    );
  const [start, name] = /^\$\{?([A-Z_][A-Z0-9_]*)\}?(?=\/|$)/.exec(text) ?? [];
  if (start === undefined) return undefined;
  const home = name === "HOME" ? `~${text.slice(start.length)}` : `//…${text.slice(start.length)}`;
  return rejected(
    `variables such as $${name} are not expanded`,
    `Write the path itself, as in ${quote(`${tool}(${home})`)}.`,
  );
}

function readPath(written: string): SpecifierReading {
  // A path without the folders that it leaves again: `./src/../.env` is `./.env`.
  const kept: string[] = [];
  for (const name of written.split("/")) {
    const before = kept.at(-1);
    const isLeft = before !== undefined && !/^(?:|~|\.\.?)$/.test(before) && !/[*?[]/.test(before);
    if (name === ".." && isLeft) kept.pop();
    else kept.push(name);
  }
  const text = kept.join("/");
  if (text.startsWith("//"))
    return accepted({ type: "path", anchor: "root", pattern: text.replace(/^\/+/, "") });
  if (text === "~") return accepted({ type: "path", anchor: "home", pattern: "" });
  if (text.startsWith("~/"))
    return accepted({ type: "path", anchor: "home", pattern: text.slice(2).replace(/^\/+/, "") });
  if (text.startsWith("/")) return accepted({ type: "path", anchor: "settings", pattern: text.slice(1) });
  return accepted({ type: "path", anchor: "cwd", pattern: text });
}

function readParameter({ canonicalTool, list }: SpecifierInput, text: string): SpecifierReading | undefined {
  const colon = text.indexOf(":");
  // `Bash(timeout:*)` is the command of that name with any arguments.
  if (colon < 1 || (specifierKind(canonicalTool) === "command" && text.endsWith(":*"))) return undefined;
  const name = text.slice(0, colon).trim();
  const value = text.slice(colon + 1).trimStart();
  if (name === toolFacts.get(canonicalTool)?.mainField) {
    return rejected(
      `"${name}" is what a ${canonicalTool} rule applies to anyway`,
      `Write ${quote(`${canonicalTool}(${value})`)}.`,
    );
  }
  if (!isParameterName(canonicalTool, name) || value === "") return undefined;
  if (list !== "allow") return accepted({ type: "parameter", name, value });
  return rejected(
    `a rule on the field "${name}" can only restrict, so it cannot be under "allow"`,
    'Move it to "ask" or "deny", or allow the tool by another rule.',
  );
}

function readToolGlob({ tool, list }: SpecifierInput, everything: boolean): SpecifierReading {
  if (!everything)
    return rejected(
      `${quote(tool)} has a star and parentheses`,
      "Name one tool, or leave the parentheses out.",
    );
  if (list !== "allow") return accepted({ type: "toolGlob" });
  return rejected(
    `${quote(tool)} would allow tools that are not named`,
    'Name each tool, or each server as in "mcp__server__*"; stars in names may be under "ask" and "deny".',
  );
}

function readMcp(input: SpecifierInput, text: string | undefined): SpecifierReading {
  const name = input.tool.slice("mcp__".length);
  const end = name.indexOf("__");
  const server = end === -1 ? name : name.slice(0, end);
  const tool = end === -1 ? undefined : name.slice(end + 2);
  if (server.includes("*")) return readToolGlob(input, text === undefined);
  if (server === "" || tool === "") {
    return rejected(
      `${quote(input.tool)} is not complete`,
      "Write mcp__server for all its tools, or mcp__server__tool.",
    );
  }
  if (text !== undefined) {
    const parameter = readParameter(input, text);
    return (
      parameter ??
      rejected(
        `${quote(input.tool)} does not accept a specifier`,
        "Write mcp__server__tool without parentheses.",
      )
    );
  }
  if (tool === undefined || tool === "*") return accepted({ type: "mcp", server, glob: false });
  return accepted({ type: "mcp", server, tool, glob: tool.includes("*") });
}

function accepted(specifier: RuleSpecifier): SpecifierReading {
  return { type: "specifier", specifier };
}

function rejected(reason: string, advice: string): SpecifierReading {
  return { type: "invalid", reason, advice };
}

/** How the text in a rule's parentheses is read, by tool. */
export function specifierKind(canonicalTool: string): SubjectKind {
  return canonicalTool.startsWith("mcp__") ? "mcp" : (toolFacts.get(canonicalTool)?.subject ?? "other");
}

/**
 * Whether `name:value` in parentheses means an input field. Where other things have colons too (commands, paths,
 * names of plugin agents) only the tool's known fields do.
 */
function isParameterName(canonicalTool: string, name: string): boolean {
  if (!/^[A-Za-z_]\w*$/.test(name)) return false;
  const known = toolFacts.get(canonicalTool)?.parameters;
  if (known !== undefined) return known.includes(name);
  const kind = specifierKind(canonicalTool);
  return kind === "mcp" || kind === "other";
}
