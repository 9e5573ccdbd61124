import { isRecord } from "@retinue/base/foundation/json-record.ts";

/** What a project's own description contains. */
export interface ManifestFacts {
  readonly title?: string;
  /** Commands a person can type, with what they run. */
  readonly commands: readonly (readonly [string, string])[];
  readonly entries: readonly string[];
}

/** Files at the root that show what a project is, the most informative first. */
export const manifestNames: readonly string[] = [
  "package.json",
  "Cargo.toml",
  "pyproject.toml",
  "go.mod",
  "deno.json",
  "composer.json",
  "Makefile",
  "justfile",
  "Justfile",
  "Gemfile",
  "pom.xml",
  "build.gradle",
  "build.gradle.kts",
  "CMakeLists.txt",
  "setup.py",
  "mix.exs",
];

/** Reads a manifest by its name; never throws. */
export function readManifest(name: string, text: string): ManifestFacts {
  if (name.endsWith(".json")) {
    const value = parse(text);
    const scripts = value["scripts"] ?? value["tasks"];
    const runner = { "package.json": "npm run", "deno.json": "deno task" }[name] ?? "composer";
    const commands = isRecord(scripts) ? Object.entries(scripts) : [];
    const fields = [value["main"], value["module"], value["bin"], value["exports"]];
    const files = fields.flatMap((field) => filesIn(field)).map((file) => file.replace(/^\.\//, ""));
    return {
      ...titleOf(value["name"], value["description"]),
      commands: commands.map(([command, runs]) => [
        `${runner} ${command}`,
        typeof runs === "string" ? runs : "",
      ]),
      entries: [...new Set(files)],
    };
  }
  if (name.endsWith(".toml")) {
    const value = (key: string) => new RegExp(`^${key}\\s*=\\s*"([^"\\n]*)"`, "m").exec(text)?.[1];
    const [, scripts = ""] =
      /^\[(?:project|tool\.poetry)\.scripts\]\n([\s\S]*?)(?=^\[|$(?![\s\S]))/m.exec(text) ?? [];
    return {
      ...titleOf(value("name"), value("description")),
      commands: [...scripts.matchAll(/^([\w-]+)\s*=\s*"([^"\n]*)"/gm)].map((match) => [
        match[1] ?? "",
        match[2] ?? "",
      ]),
      entries: [...text.matchAll(/^path\s*=\s*"([^"\n]+\.rs)"/gm)].map((match) => match[1] ?? ""),
    };
  }
  if (/^(?:makefile|justfile)$/i.test(name)) {
    const run = name.toLowerCase() === "makefile" ? "make" : "just";
    const targets = [...text.matchAll(/^([A-Za-z][\w-]*)(?:\s[^:=\n]*)?:(?!=)/gm)].map(
      (match) => match[1] ?? "",
    );
    return {
      commands: [...new Set(targets)].map((target) => [`${run} ${target}`, ""] as const),
      entries: [],
    };
  }
  const [, module] = /^module\s+(\S+)/m.exec(text) ?? [];
  return { title: module, commands: [], entries: [] };
}

function titleOf(name: unknown, description: unknown): { title?: string } {
  const parts = [name, description].filter((part): part is string => typeof part === "string" && part !== "");
  return parts.length === 0 ? {} : { title: parts.join(": ") };
}

/** All texts in a value that look like files; `exports` nests them, but never this deep. */
function filesIn(value: unknown, depth = 4): string[] {
  if (typeof value === "string")
    return /\.\w+$/.test(value) && !/\.(?:d\.ts|json)$/.test(value) ? [value] : [];
  if (!isRecord(value) || depth === 0) return [];
  return Object.values(value).flatMap((inner) => filesIn(inner, depth - 1));
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

/** The title of a README and its first paragraph of prose. */
export function readReadme(lines: readonly string[]): string | undefined {
  const title = lines.find((line) => /^#\s+\S/.test(line))?.replace(/^#\s+/, "");
  const start = lines.findIndex((line) => /^[\p{L}\p{N}*_`"'][^\s]*(?:\s+\S+){2}/u.test(line.trim()));
  const paragraph: string[] = [];
  for (const line of start === -1 ? [] : lines.slice(start)) {
    if (line.trim() === "" || line.startsWith("#")) break;
    paragraph.push(line.trim());
  }
  const parts = [title, paragraph.join(" ").slice(0, 600)].filter(
    (part) => part !== undefined && part !== "",
  );
  return parts.length === 0 ? undefined : parts.join("\n");
}
