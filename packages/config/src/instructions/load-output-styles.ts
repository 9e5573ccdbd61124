// @io
import { readdir } from "node:fs/promises";
import { basename, join, sep } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import type { MayLoad } from "@retinue/gate/may-load.ts";
import { agentVocabulary } from "../agents/agent-vocabulary.ts";
import { readFrontmatter } from "../agents/read-frontmatter.ts";
import type { Paths } from "../settings/paths.ts";
import { loadInstructionText, loadRealPath } from "./find-instruction-files.ts";

/** How the main agent answers, besides what it can do: a text for its system prompt. */
export interface OutputStyle {
  readonly name: string;
  readonly description: string;
  readonly text: string;
  /** Whether the main prompt's part about changing and checking code stays. */
  readonly keepsCoding: boolean;
  readonly scope: "built-in" | "user" | "project" | "managed";
}

export interface OutputStyleOptions {
  readonly mayLoad?: MayLoad | undefined;
  readonly sources?: readonly ("user" | "project" | "local")[] | undefined;
}

export interface OutputStyles {
  /** By name, each once: the organisation's before the person's own files would hide it, the nearer folder first. */
  readonly styles: readonly OutputStyle[];
  readonly diagnostics: readonly Diagnostic[];
}

/** The name that leaves everything as it is. */
export const defaultStyle = "default";

const builtIn: readonly OutputStyle[] = [
  {
    name: "explanatory",
    description: "Explains its choices while it works",
    keepsCoding: true,
    scope: "built-in",
    text: `Teach while you work. Where you made a choice that somebody who reads this code later should understand, say in two or three
sentences why it is made this way here and what the alternative would have cost. Begin such a passage with "Why:". Speak of this code base, not of
programming in general, and keep the passages in your answer, never in files.`,
  },
  {
    name: "learning",
    description: "Leaves small, telling pieces of the work to you",
    keepsCoding: true,
    scope: "built-in",
    text: `The person wants to learn by doing. Where a piece of five to fifteen lines holds a real decision (a rule of the business, an algorithm,
how errors are treated), prepare everything around it, leave a comment "TODO(you)" at its place, and say in your answer what it has to do, what to
consider, and how to check it. Then wait for the person. Do everything else yourself, and nothing of this kind for mere repetition. When the person has
written the piece, look at it as a good colleague would: first what is right, then what you would change and why.`,
  },
];

/** The output styles of a place: files of the organisation, the project and the person, and the built-in ones. Never throws. */
export async function loadOutputStyles(
  { outputStyles, projectRoot }: Pick<Paths, "outputStyles" | "projectRoot">,
  { mayLoad, sources = ["user", "project", "local"] }: OutputStyleOptions,
): Promise<OutputStyles> {
  const folders: readonly (readonly [OutputStyle["scope"], string])[] = [
    ["managed", outputStyles.managed],
    ...(sources.includes("project")
      ? outputStyles.project.map((folder) => ["project", folder] as const)
      : []),
    ...(sources.includes("user") ? ([["user", outputStyles.user]] as const) : []),
  ];
  const styles = new Map<string, OutputStyle>();
  const diagnostics: Diagnostic[] = [];
  const root = await loadRealPath(projectRoot);
  for (const [scope, folder] of folders)
    for (const file of await markdownFiles(folder)) {
      const read = await loadStyle(file, {
        scope,
        mayLoad,
        root: root.type === "real" ? root.path : projectRoot,
      });
      if (read.style !== undefined && !styles.has(read.style.name.toLowerCase()))
        styles.set(read.style.name.toLowerCase(), read.style);
      diagnostics.push(...read.diagnostics);
    }
  for (const style of builtIn) if (!styles.has(style.name)) styles.set(style.name, style);
  return { styles: [...styles.values()], diagnostics };
}

/** The style of a name, in any case; undefined for the style that changes nothing. */
export function findOutputStyle(
  name: string,
  { styles }: Pick<OutputStyles, "styles">,
): { readonly style?: OutputStyle; readonly problem?: string } {
  const wanted = name.trim().toLowerCase();
  if (wanted === "" || wanted === defaultStyle) return {};
  const style = styles.find((one) => one.name.toLowerCase() === wanted);
  if (style !== undefined) return { style };
  const names = [defaultStyle, ...styles.map((one) => one.name)].join(", ");
  return {
    problem: `Unknown output style ${JSON.stringify(name)}; the default is used. Available: ${names}.`,
  };
}

async function markdownFiles(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch(() => []);
  return names
    .filter((name) => name.endsWith(".md"))
    .sort()
    .map((name) => join(folder, name));
}

async function loadStyle(
  file: string,
  {
    scope,
    mayLoad,
    root,
  }: Pick<OutputStyle, "scope"> & { readonly mayLoad: MayLoad | undefined; readonly root: string },
): Promise<{ readonly style?: OutputStyle; readonly diagnostics: readonly Diagnostic[] }> {
  const refused = (why: string) => ({
    diagnostics: [
      {
        severity: "warning" as const,
        code: "output-style-unusable",
        message: `The output style is not used: ${why}.`,
        file,
      },
    ],
  });
  const real = await loadRealPath(file);
  if (real.type !== "real")
    return real.type === "unusable" ? { diagnostics: [real.diagnostic] } : { diagnostics: [] };
  // A repository can hold links; what they lead to is not the project's to show.
  if (scope === "project" && !real.path.startsWith(`${root}${sep}`))
    return refused("a link leads out of the project");
  for (const path of new Set([file, real.path]))
    if (mayLoad !== undefined && !(await mayLoad(path))) return refused("a rule denies reading it");
  const read = await loadInstructionText(real.path, () => undefined);
  if (read.type !== "text")
    return read.type === "unusable" ? { diagnostics: [read.diagnostic] } : { diagnostics: [] };
  return readStyle(read.text, { file, scope });
}

/** Pure. A file without a frontmatter is a style named after the file. */
export function readStyle(
  text: string,
  { file, scope }: { readonly file: string; readonly scope: OutputStyle["scope"] },
): { readonly style?: OutputStyle; readonly diagnostics: readonly Diagnostic[] } {
  const { type, fields, body, diagnostics } = readFrontmatter(text, agentVocabulary);
  const found = diagnostics.map((one) => ({ ...one, file }));
  if (type === "unclosed" || type === "too-large")
    return {
      diagnostics: [
        ...found,
        {
          severity: "warning",
          code: "output-style-unusable",
          message: "The output style is not used: its `---` block is never closed, or too long.",
          file,
        },
      ],
    };
  const written = type === "none" ? text : body;
  const value = (key: string): unknown => fields.get(key)?.value;
  const name = value("name");
  const description = value("description");
  if (written.trim() === "") return { diagnostics: found };
  return {
    style: {
      name: typeof name === "string" && name.trim() !== "" ? name.trim() : basename(file, ".md"),
      description: typeof description === "string" ? description.trim() : "",
      text: written.trim(),
      keepsCoding: value("keep-coding-instructions") === true || value("keep-coding-instructions") === "true",
      scope,
    },
    diagnostics: found,
  };
}
