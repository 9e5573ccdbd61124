import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** A text file of the repository; the path is from the root, with forward slashes. */
export interface ProjectFile {
  readonly path: string;
  readonly text: string;
}

export const projectRoot = fileURLToPath(new URL("..", import.meta.url));

const built = [
  "dist",
  "packages/cluster/dist",
  "packages/gate/dist",
  "site/.cache",
  "site/dist",
  "site/pages",
];
const notOurs = new Set([".git", ...built, "test/fixtures"]);

/** All text files below a folder, in order; what is installed, built or kept as test data is left out. */
export function readProjectFiles(folder = ""): ProjectFile[] {
  return listFiles(folder)
    .map((path) => ({ path, text: readProjectFile(path) }))
    .filter(({ text }) => !text.includes("\0"));
}

export function readProjectFile(path: string): string {
  return readFileSync(`${projectRoot}/${path}`, "utf8");
}

export function isTest({ path }: ProjectFile): boolean {
  return path.endsWith(".test.ts");
}

export function isTypeScript({ path }: ProjectFile): boolean {
  return path.endsWith(".ts") || path.endsWith(".tsx");
}

function listFiles(folder: string): string[] {
  return readdirSync(`${projectRoot}/${folder}`, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.name === "node_modules" || notOurs.has(path)) return [];
      if (entry.isDirectory()) return listFiles(path);
      return entry.isFile() ? [path] : [];
    });
}
