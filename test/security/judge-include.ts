import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import { runCaseSession, writeCaseSettings } from "./run-case-session.ts";
import { NotHonoured, type Roots, type SecurityCase, type Verdict } from "./security-case.ts";

const text = "A text that is nowhere else.";

/** Allowed is what reaches the model's prompt when a session starts. */
export async function judgeInclude(testCase: SecurityCase, roots: Roots): Promise<Verdict> {
  const { context = {}, cwd = roots.P } = testCase;
  const { import: imported, include = imported, file: written = "AGENTS.md" } = context;
  if (typeof include !== "string" || typeof written !== "string")
    throw new NotHonoured("the case names no include");
  const file = placeOf(written, roots, cwd);
  const path = include.replace(/^@/, "");
  const target = placeOf(path, roots, dirname(file));
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `Heed this:\n\n@${path}\n`);
  const kind = await stat(target).catch(() => undefined);
  if (kind === undefined) {
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, text);
  }
  const held = kind === undefined || kind.isFile() ? (await readFile(target, "utf8")).trim() : text;
  await writeCaseSettings(testCase, roots);
  const { requests } = await runCaseSession(testCase, roots);
  return requests.some(({ system }) => system.join("\n").includes(held)) ? "allow" : "deny";
}

function placeOf(path: string, { H }: Roots, base: string): string {
  if (path.startsWith("~/")) return join(H, path.slice(2));
  return isAbsolute(path) ? path : join(base, path);
}
