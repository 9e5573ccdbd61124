import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Workplace } from "./workplace.ts";

export interface SubjectRun {
  readonly wallMs: number;
  readonly cpuMs: number;
  /** The most the process held at once. */
  readonly memoryMiB: number;
  readonly output: string;
}

export interface Subject {
  readonly arguments: readonly string[];
  readonly url: string;
}

/** Runs a program in the workplace against the provider, from start to end. */
export async function runSubject(subject: Subject, place: Workplace): Promise<SubjectRun> {
  const usageFile = join(place.home, "usage.json");
  const start = performance.now();
  const child = spawn(process.execPath, ["--import", reporter, ...subject.arguments], {
    cwd: place.project,
    env: { ...place.environment(subject.url), BENCH_USAGE_FILE: usageFile },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  const wallMs = performance.now() - start;
  if (code !== 0) throw new Error(`${subject.arguments.join(" ")} ended with ${code}: ${errors}${output}`);
  // Written by report-usage.mjs in the shape used here.
  const usage = JSON.parse(readFileSync(usageFile, "utf8")) as Pick<SubjectRun, "cpuMs" | "memoryMiB">;
  return { wallMs, ...usage, output };
}

const reporter = new URL("subjects/report-usage.mjs", import.meta.url).href;

export function subjectFile(name: string): string {
  return fileURLToPath(new URL(`subjects/${name}`, import.meta.url));
}

export const programFile = fileURLToPath(new URL("../bin/retinue.js", import.meta.url));
