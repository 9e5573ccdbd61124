import { execFile } from "node:child_process";
import { chmod, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { findProgram } from "../program-tables/laboratory.ts";
import { texts } from "./case-settings.ts";
import { runCaseSession, writeCaseSettings } from "./run-case-session.ts";
import { NotHonoured, type Roots, type SecurityCase, type Verdict } from "./security-case.ts";

/** What the stand-in prints. */
const shown = "the-stand-in-has-run";

/** Allowed is a program that a start of a session runs. A stand-in for it is alone on the path and shows its words. */
export async function judgeStartup(testCase: SecurityCase, roots: Roots): Promise<Verdict> {
  const { context = {} } = testCase;
  const { command } = context;
  const [program, ...words] = typeof command === "string" ? command.split(/\s+/) : texts(command);
  if (program === undefined || program === "") throw new NotHonoured("the case names no program");
  await writeRepositoryFile(context["repoFile"], roots);
  const folder = join(roots.W, "programs");
  const said = join(roots.W, "programs.said");
  await mkdir(folder);
  const script = join(folder, basename(program));
  const real = await findProgram(basename(program));
  const rest = real === undefined ? "" : `exec ${real} "$@"\n`;
  // What a start runs may be isolated, so that it can write nothing; what it prints reaches the model all the same.
  await writeFile(
    script,
    `#!/bin/sh\n{ echo "$@" >> '${said}'; } 2>/dev/null\ncase " $* " in *" ${words[0] ?? ""} "*) echo '?? ${shown}';; esac\n${rest}`,
  );
  await chmod(script, 0o755);
  // Without a repository there is no reason to ask git anything.
  await promisify(execFile)("git", ["init", "--quiet", roots.P]);
  await writeCaseSettings(testCase, roots);
  const { requests } = await runCaseSession(testCase, roots, { env: { PATH: folder } });
  const lines = (await readFile(said, "utf8").catch(() => "")).split("\n").filter((line) => line !== "");
  const hasRun = lines.some((line) => words.every((word) => line.split(" ").includes(word)));
  const hasEffect = await stat(join(roots.T, "pwned")).then(
    () => true,
    () => false,
  );
  return hasRun || hasEffect || JSON.stringify(requests).includes(shown) ? "allow" : "deny";
}

/** `.yarnrc.yml with plugins`: a file of the repository, and words about what is in it. */
async function writeRepositoryFile(written: unknown, { P }: Roots): Promise<void> {
  const [name, ...about] = typeof written === "string" ? written.split(" ") : [];
  if (name === undefined) return;
  await mkdir(dirname(join(P, name)), { recursive: true });
  await writeFile(join(P, name), `# ${about.join(" ")}\n`);
}
