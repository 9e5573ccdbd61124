import { common, createLowlight } from "lowlight";
import { type ComponentChild, h } from "preact";

const lowlight = createLowlight(common);
const maxCharacters = 60_000;

/** What `lowlight` makes of a code: texts, and elements with classes. */
interface CodeNode {
  readonly type: string;
  readonly value?: string;
  readonly properties?: { readonly className?: unknown };
  readonly children?: readonly CodeNode[];
}

/** Code with colours; as it is where the language is not known, or the code too long to be worth it. */
export function colouredCode(code: string, language: string | undefined): ComponentChild {
  if (language === undefined || code.length > maxCharacters || !lowlight.registered(language)) return code;
  const tree: CodeNode = lowlight.highlight(language, code);
  return (tree.children ?? []).map(toElement);
}

function toElement(node: CodeNode): ComponentChild {
  if (node.type === "text") return node.value ?? "";
  const names = node.properties?.className;
  const name = Array.isArray(names) ? names.join(" ") : "";
  return h("span", { class: name }, (node.children ?? []).map(toElement));
}

const languages: Readonly<Record<string, string>> = {
  ts: "typescript",
  tsx: "typescript",
  mts: "typescript",
  cts: "typescript",
  js: "javascript",
  jsx: "javascript",
  mjs: "javascript",
  cjs: "javascript",
  json: "json",
  jsonl: "json",
  css: "css",
  scss: "scss",
  html: "xml",
  xml: "xml",
  svg: "xml",
  md: "markdown",
  yml: "yaml",
  yaml: "yaml",
  toml: "ini",
  ini: "ini",
  sh: "bash",
  bash: "bash",
  py: "python",
  rb: "ruby",
  go: "go",
  rs: "rust",
  java: "java",
  kt: "kotlin",
  c: "c",
  h: "c",
  cc: "cpp",
  cpp: "cpp",
  cs: "csharp",
  php: "php",
  sql: "sql",
  swift: "swift",
  lua: "lua",
  diff: "diff",
};

/** By the ending of a file's name. */
export function languageOf(file: string): string | undefined {
  return languages[/\.(\w+)$/.exec(file)?.[1]?.toLowerCase() ?? ""];
}
