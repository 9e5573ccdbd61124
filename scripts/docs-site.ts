/**
 * `npm run docs`: builds the documentation site into `site/dist` and tests it in a browser. `--build` leaves the browser out.
 * The generator is installed into `site/` the first time, so that `npm ci` of the project stays small.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkSite } from "./check-site.ts";
import {
  decisionsIndex,
  llmsFull,
  llmsIndex,
  projectPages,
  readGroups,
  repository,
  type SiteFile,
  sitePath,
  stagePage,
} from "./site-pages.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const site = join(root, "site");
const staged = join(site, "pages");
const address = process.env["RETINUE_SITE_BASE"] ?? "/";
const read = (path: string): string => readFileSync(join(root, path), "utf8");

stageSite();
if (!existsSync(join(site, "node_modules/vitepress"))) run("npm", ["ci", "--no-audit", "--no-fund"]);
run(process.execPath, [join(site, "node_modules/vitepress/bin/vitepress.js"), "build", "."]);
serveMarkdown();
if (!process.argv.includes("--build")) console.log(await checkSite(join(site, "dist"), address));

function stageSite(): void {
  rmSync(staged, { recursive: true, force: true });
  const groups = readGroups(read("docs/README.md"));
  const files = sourceFiles();
  const onSite = new Set(files.map(({ path }) => path));
  for (const file of files) write(sitePath(file.path), stagePage(file, onSite));
  write("index.md", read("site/home.md"));
  write("decisions/index.md", decisionsIndex(files.filter(({ path }) => path.startsWith("docs/decisions/"))));
  const links = groups.map(({ title, pages }) => ({
    title,
    pages: pages.map((page) => ({
      title: page.title,
      link: `/${sitePath(page.path)}`.replace(/(index)?\.md$/, ""),
    })),
  }));
  write("groups.json", JSON.stringify(links, undefined, 2));
  write("site.json", JSON.stringify({ repository }));
  cpSync(join(site, "public"), join(staged, "public"), { recursive: true });
  for (const name of ["images", "terminal.svg", "verify.svg", "quotes.svg", "merge.svg"])
    cpSync(join(root, "docs", name), join(staged, name), { recursive: true });
  mkdirSync(join(staged, "public/schemas"), { recursive: true });
  cpSync(join(root, "schemas"), join(staged, "public/schemas"), { recursive: true });
  write("public/llms.txt", llmsIndex(groups, address));
  write("public/llms-full.txt", llmsFull(groups, read));
}

/** The Markdown of each page beside its HTML, as `llms.txt` says. */
function serveMarkdown(): void {
  for (const name of readdirSync(staged, { recursive: true, encoding: "utf8" }))
    if (name.endsWith(".md") && name !== "index.md") {
      mkdirSync(dirname(join(site, "dist", name)), { recursive: true });
      cpSync(join(staged, name), join(site, "dist", name));
    }
}

function sourceFiles(): SiteFile[] {
  const docs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name.replaceAll("\\", "/")}`);
  return [...docs.sort(), ...projectPages].map((path) => ({ path, text: read(path) }));
}

function write(path: string, text: string): void {
  mkdirSync(dirname(join(staged, path)), { recursive: true });
  writeFileSync(join(staged, path), text);
}

function run(command: string, args: readonly string[]): void {
  const { status, error } = spawnSync(command, args, { cwd: site, stdio: "inherit" });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? 1);
}
