import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Workplace } from "./workplace.ts";

export interface Subject {
  readonly arguments: readonly string[];
  readonly url: string;
  readonly environment?: Readonly<Record<string, string>>;
}

export interface SubjectRun {
  readonly wallMs: number;
  readonly output: string;
}

export interface WeighedRun extends SubjectRun {
  readonly cpuMs: number;
  /** The most the process held at one time. */
  readonly memoryMiB: number;
}

/** Runs a program in the workplace against the provider, from start to end. */
export async function runSubject(subject: Subject, place: Workplace): Promise<SubjectRun> {
  const start = performance.now();
  const child = spawn(process.execPath, subject.arguments, {
    cwd: place.project,
    env: { ...place.environment(subject.url), ...subject.environment },
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
  return { wallMs, output };
}

/** The same, with what the process took; asking costs it a few milliseconds at its start. */
export async function weighSubject(subject: Subject, place: Workplace): Promise<WeighedRun> {
  const weighed = { ...subject, arguments: ["--import", reporter, ...subject.arguments] };
  const run = await runSubject(weighed, place);
  // Written by report-usage.mjs in the shape used here.
  const usage = JSON.parse(readFileSync(place.usageFile, "utf8")) as Pick<WeighedRun, "cpuMs" | "memoryMiB">;
  return { ...run, ...usage };
}

const reporter = new URL("subjects/report-usage.mjs", import.meta.url).href;

export function subjectFile(name: string): string {
  return fileURLToPath(new URL(`subjects/${name}`, import.meta.url));
}

export const programFile = fileURLToPath(new URL("../bin/retinue.js", import.meta.url));
