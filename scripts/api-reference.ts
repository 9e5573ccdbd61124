import { posix } from "node:path";

/** Reads a file of the repository by its path from the root. */
export type ReadFile = (path: string) => string;

/** The exports of the package: the subpath, its source file, and what it is for where the file does not say it. */
const entries = [
  {
    subpath: "retinue",
    file: "src/index.ts",
    about: "The root entry: creating a runtime, running and spawning agents, defining agents and tools.",
  },
  { subpath: "retinue/definitions", file: "src/definitions.ts" },
  { subpath: "retinue/permissions", file: "src/permissions.ts" },
  { subpath: "retinue/model", file: "src/model.ts" },
  { subpath: "retinue/mcp", file: "src/mcp.ts" },
  {
    subpath: "retinue/cluster",
    file: "packages/cluster/src/index.ts",
    about: "Agents that run on many machines over a shared store.",
  },
  {
    subpath: "retinue/testing",
    file: "packages/testing/src/index.ts",
    about: "Scripted models, a fake provider and a fake MCP server for tests without a network.",
  },
] as const;

const notice = "<!-- Generated from the types by `npm run docs:api`. Do not edit. -->";

/** The pages of the reference, by their paths. */
export function apiReference(read: ReadFile): ReadonlyMap<string, string> {
  const pages = entries.map((entry) => ({ ...entry, page: describeEntry(entry, read) }));
  const rows = pages.map(
    ({ subpath, page }) => `| [\`${subpath}\`](${pageName(subpath)}) | ${page.about} | ${page.names} |`,
  );
  const index = [
    "# API reference",
    "",
    notice,
    "",
    "Every name that the package exports, with its type and its description. The pages that explain how to use them:",
    "[quickstart](../quickstart.md), [embedding](../embedding.md), [events](../events.md).",
    "",
    "| import | about | names |",
    "|---|---|---|",
    ...rows,
    "",
  ];
  return new Map([
    ["docs/api/README.md", index.join("\n")],
    ...pages.map(({ subpath, page }) => [`docs/api/${pageName(subpath)}`, page.text] as const),
  ]);
}

function pageName(subpath: string): string {
  return `${subpath.split("/")[1] ?? "retinue"}.md`;
}

interface Declared {
  readonly name: string;
  readonly kind: "value" | "type";
  readonly about: string;
  readonly code: string;
}

function describeEntry(
  { subpath, file, about }: { readonly subpath: string; readonly file: string; readonly about?: string },
  read: ReadFile,
): { readonly text: string; readonly about: string; readonly names: number } {
  const source = read(file);
  const ownAbout = /^\/\*\* `[^`]*`: ([\s\S]*?) \*\//.exec(source)?.[1];
  const said = about ?? sentence(ownAbout ?? "");
  const found = readExports(source)
    .map(({ name, original, from }) => declare(name, original, { file: resolve(file, from), read }))
    .sort((one, other) => (one.name.toLowerCase() < other.name.toLowerCase() ? -1 : 1));
  const section = (title: string, kind: Declared["kind"]): string[] => {
    const own = found.filter((each) => each.kind === kind);
    return own.length === 0 ? [] : [`## ${title}`, "", ...own.flatMap(describeName)];
  };
  const lines = [
    `# ${subpath}`,
    "",
    notice,
    "",
    said,
    "",
    ...section("Functions and values", "value"),
    ...section("Types", "type"),
  ];
  return { text: `${lines.join("\n").trimEnd()}\n`, about: said, names: found.length };
}

/** Capital first, a full stop at the end. */
function sentence(text: string): string {
  return text === "" ? "" : `${text[0]?.toUpperCase()}${text.slice(1).replace(/\.?$/, ".")}`;
}

function describeName({ name, about, code }: Declared): string[] {
  return [`### ${name}`, "", ...(about === "" ? [] : [about, ""]), "```typescript", code, "```", ""];
}

interface Exported {
  readonly name: string;
  readonly original: string;
  readonly from: string;
}

/** The names that a file exports from others, also those it imports first. */
function readExports(source: string): Exported[] {
  const named = (words: string) =>
    [...source.matchAll(new RegExp(`^${words} (?:type )?\\{([^}]*)\\} from "([^"]+)";$`, "gm"))].flatMap(
      ([, list = "", from = ""]) => readNames(list).map((each) => ({ ...each, from })),
    );
  const imported = new Map(named("import").map((each) => [each.name, each]));
  const passed = [...source.matchAll(/^export (?:type )?\{([^}]*)\};$/gm)]
    .flatMap(([, list = ""]) => readNames(list))
    .flatMap(({ name, original }) => {
      const origin = imported.get(original);
      return origin === undefined ? [] : [{ ...origin, name }];
    });
  return [...named("export"), ...passed];
}

function readNames(list: string): Omit<Exported, "from">[] {
  return list
    .split(",")
    .map((part) => part.trim().replace(/^type /, ""))
    .filter((part) => part !== "")
    .map((part) => {
      const [original = "", name = original] = part.split(" as ");
      return { name, original };
    });
}

function resolve(file: string, from: string): string {
  const [, name, path] = /^@retinue\/([a-z]+)\/(.*)$/.exec(from) ?? [];
  return name === undefined ? posix.join(posix.dirname(file), from) : `packages/${name}/src/${path}`;
}

/** Finds a declaration where it is written, also behind files that only pass it on. */
function declare(
  name: string,
  original: string,
  { file, read }: { readonly file: string; readonly read: ReadFile },
): Declared {
  const source = read(file);
  const declaration = new RegExp(
    `^export (?:async )?(interface|type|function\\*?|class|const) ${original}\\b`,
    "m",
  ).exec(source);
  if (declaration === null) {
    const passed = readExports(source).find((each) => each.name === original);
    if (passed === undefined) throw new Error(`${file} does not declare ${original}.`);
    return declare(name, passed.original, { file: resolve(file, passed.from), read });
  }
  const [, keyword = ""] = declaration;
  const before = source.slice(0, declaration.index);
  return {
    name,
    kind: keyword === "interface" || keyword === "type" ? "type" : "value",
    about: commentBefore(before),
    code: signature(keyword, source.slice(declaration.index + "export ".length)),
  };
}

/** The text of the comment that ends right before a declaration. */
function commentBefore(before: string): string {
  const comment = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n$/.exec(before)?.[1] ?? "";
  return comment
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, "").trim())
    .join("\n")
    .trim();
}

/** What a declaration promises, without how it does it. */
function signature(keyword: string, text: string): string {
  if (keyword === "interface")
    return /^.*\{\}$/m.exec(text)?.index === 0 ? firstLine(text) : text.slice(0, text.indexOf("\n}") + 2);
  if (keyword === "type") return text.slice(0, endOfStatement(text));
  if (keyword === "class") return classSignature(text);
  if (keyword === "const") return `${text.slice(0, text.indexOf(" =")).trim()};`;
  return `${functionHead(text)};`;
}

function firstLine(text: string): string {
  return text.slice(0, text.indexOf("\n"));
}

/** Where the first semicolon outside of brackets and comments ends. */
function endOfStatement(text: string): number {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text.startsWith("/*", at)) at = text.indexOf("*/", at) + 1;
    const sign = text[at] ?? "";
    if ("{([".includes(sign)) depth += 1;
    if ("})]".includes(sign)) depth -= 1;
    if (sign === ";" && depth === 0) return at + 1;
  }
  return text.length;
}

/** Everything before the brace that opens the body: the first one outside of brackets after the parameters. */
function functionHead(text: string): string {
  const lines = text.split("\n");
  const last = lines.findIndex((line) => / \{$/.test(line) && !/(?:: |<|\()\{$/.test(line));
  return lines
    .slice(0, last + 1)
    .join("\n")
    .replace(/ \{$/, "")
    .replace(/^async /, "");
}

function classSignature(text: string): string {
  const lines = text.slice(0, text.indexOf("\n}")).split("\n");
  const members = lines.slice(1).flatMap((line, at, all) => {
    if (/^ {2}\/\*\*.*\*\/$/.test(line)) return [line];
    if (/^ {2}(?:override |readonly |static )*\w+(?:[?!]?: .*)?(?: = .*)?;$/.test(line))
      return [line.replace(/(: .*) = .*;$/, "$1;")];
    if (/^ {2}constructor\(/.test(line)) return [`  ${functionHead(all.slice(at).join("\n")).trim()};`];
    return [];
  });
  return [lines[0], ...members, "}"].join("\n");
}
