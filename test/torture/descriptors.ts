import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { projectRoot } from "../project-files.ts";

/** What is run with few file descriptors: one agent, one with children, and a program that embeds the library. */
export const descriptorSubjects = ["alone", "children", "embedded"] as const;
export type DescriptorSubject = (typeof descriptorSubjects)[number];

export interface DescriptorRun {
  readonly subject: DescriptorSubject;
  readonly limit: number;
  /** `done`: everything was done; `failed`: it said what is wrong and ended in order; `crashed`: neither. */
  readonly outcome: "done" | "failed" | "crashed";
  readonly output: string;
}

const program = join(projectRoot, "bin/retinue.js");
const embedded = fileURLToPath(new URL("embedded-program.ts", import.meta.url));
const deadlineMs = 60_000;
const printOptions = ["--output-format", "json", "--dangerously-skip-permissions"];

export interface DescriptorOptions {
  readonly url: string;
  /** A model that does not give up would continue for ever where nothing can be started. */
  readonly seconds?: number;
}

/** Runs a subject with at most so many open files (`ulimit -n`). */
export async function runWithDescriptors(
  subject: DescriptorSubject,
  limit: number,
  { url, seconds = 20 }: DescriptorOptions,
): Promise<DescriptorRun> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-descriptors-")));
  const [home, project] = [join(root, "home"), join(root, "project")];
  mkdirSync(join(home, ".claude"), { recursive: true });
  mkdirSync(project);
  const report = [{ hooks: [{ type: "command", command: "true" }] }];
  writeFileSync(
    join(home, ".claude/settings.json"),
    JSON.stringify({ hooks: { PreToolUse: report, SubagentStart: report, SubagentStop: report } }),
  );
  try {
    const own =
      subject === "embedded"
        ? [embedded, String(seconds)]
        : [program, "-p", "Do all steps.", ...printOptions, "--max-time", `${seconds}s`];
    const child = spawn("sh", ["-c", `ulimit -n ${limit}; exec "$@"`, "sh", process.execPath, ...own], {
      cwd: project,
      env: { PATH: process.env["PATH"], HOME: home, ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "none" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    const timer = setTimeout(() => child.kill("SIGKILL"), deadlineMs);
    const [code, signal]: readonly unknown[] = await once(child, "close");
    clearTimeout(timer);
    return { subject, limit, outcome: judge(subject, { code, signal, output }), output };
  } finally {
    rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  }
}

const crashes = [
  /Unhandled/,
  /node:internal/,
  /node:events/,
  /\n {4}at /,
  /Unexpected error:/,
  /assert/i,
  /fatal/i,
];

function judge(
  subject: DescriptorSubject,
  { code, signal, output }: { readonly code: unknown; readonly signal: unknown; readonly output: string },
): DescriptorRun["outcome"] {
  if (signal !== null || crashes.some((crash) => crash.test(output))) return "crashed";
  if (subject === "embedded" && !output.includes("host alive true")) return "crashed";
  // A mistake of the torture itself must not pass for a run that ended in order.
  if (/limits\.|Unknown option/.test(output)) return "crashed";
  const hasResult = /"type":"result"/.test(output) || /^retinue: /m.test(output);
  if (!hasResult) return "crashed";
  return code === 0 && /ALL DONE|"completed"|"subtype":"success"/.test(output) ? "done" : "failed";
}
