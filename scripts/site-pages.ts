/** The pages of the documentation site, made from `docs/README.md` (the index), `docs/` and the project's own pages. */
import { posix } from "node:path";

export interface SiteFile {
  /** The path in the repository, with slashes. */
  readonly path: string;
  readonly text: string;
}

export interface SiteGroup {
  readonly title: string;
  readonly pages: readonly { readonly title: string; readonly about: string; readonly path: string }[];
}

export const repository = "https://github.com/retinue/retinue";

/** Pages outside `docs/` that are on the site. */
export const projectPages = [
  "ARCHITECTURE.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "GLOSSARY.md",
  "PRIVACY.md",
  "ROADMAP.md",
  "SECURITY.md",
];

/** The groups of the index: a heading, then a table whose first column links to a page. */
export function readGroups(index: string): SiteGroup[] {
  return index
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const [title = ""] = section.split("\n");
      const rows = [...section.matchAll(/^\| \[([^\]]+)\]\(([^)]+\.md)\) \| (.*) \|$/gm)];
      const pages = rows.map(([, name = "", target = "", about = ""]) => ({
        title: name,
        about,
        path: posix.join("docs", target),
      }));
      return { title, pages };
    })
    .filter(({ pages }) => pages.length > 0);
}

/** Where a page of the repository is on the site, as a path without a leading slash. */
export function sitePath(path: string): string {
  if (path === "docs/README.md") return "pages.md";
  if (path === "docs/api/README.md") return "api/index.md";
  if (path === "docs/decisions/README.md") return "decisions/index.md";
  return path.startsWith("docs/") ? path.slice("docs/".length) : path.toLowerCase();
}

/**
 * The text of a page for the site: links to pages of the site lead there, links to anything else in the repository lead to
 * the repository, and marks that only the tests read (`ts run`) are removed from code blocks.
 */
export function stagePage({ path, text }: SiteFile, onSite: ReadonlySet<string>): string {
  const parts = text.split(/^(```[\s\S]*?^```$)/m);
  return parts
    .map((part) =>
      part.startsWith("```")
        ? part.replace(/^```(\w+) (?:run|output).*$/m, "```$1")
        : part.replace(/(\]\()([^)\s]+)(\))/g, (_, open, target, close) => {
            return `${open}${siteLink(path, target, onSite)}${close}`;
          }),
    )
    .join("");
}

function siteLink(from: string, target: string, onSite: ReadonlySet<string>): string {
  if (/^[a-z]+:/.test(target) || target.startsWith("#")) return target;
  const [file = "", anchor] = target.split("#");
  const found = posix.join(posix.dirname(from), file).replace(/\/$/, "");
  const page = [found, `${found}/README.md`].find((each) => onSite.has(each));
  const hash = anchor === undefined ? "" : `#${anchor}`;
  if (page !== undefined) return `${posix.join("/", sitePath(page))}${hash}`;
  if (/\.(png|svg)$/.test(found)) return posix.join("/", sitePath(found));
  return `${repository}/blob/main/${found}${hash}`;
}

/** `llms.txt`: what Retinue is, and one line for each page with its address. */
export function llmsIndex(groups: readonly SiteGroup[], site: string): string {
  const lines = groups.flatMap(({ title, pages }) => [
    `## ${title}`,
    "",
    ...pages.map((page) => `- [${page.title}](${site}${sitePath(page.path)}): ${page.about}`),
    "",
  ]);
  return [
    "# Retinue",
    "",
    "> Retinue is a subagent runtime for TypeScript: child agents with their own prompt, tools, model, permissions, hooks, skills",
    "> and memory, from a library, a terminal command or an MCP server. It reads the agent files people already have and works",
    "> with any model provider.",
    "",
    "Every page is also served as Markdown at the addresses below. The whole text is in llms-full.txt.",
    "",
    ...lines,
  ].join("\n");
}

/** `llms-full.txt`: every page of the index, one after the other. */
export function llmsFull(groups: readonly SiteGroup[], read: (path: string) => string): string {
  const paths = groups.flatMap(({ pages }) => pages.map(({ path }) => path));
  return paths
    .map(
      (path) =>
        `<!-- ${sitePath(path)} -->\n\n${stagePage({ path, text: read(path) }, new Set(paths)).trim()}\n`,
    )
    .join("\n");
}

/** The index of the decision records, from their titles. */
export function decisionsIndex(records: readonly SiteFile[]): string {
  const rows = records.map(({ path, text }) => {
    const title = /^# (.*)$/m.exec(text)?.[1] ?? posix.basename(path);
    return `- [${title}](${posix.basename(path)})`;
  });
  return `# Decisions\n\nChoices that shaped Retinue, each with its reasons and measurements.\n\n${rows.join("\n")}\n`;
}
