import { type ChildProcess, spawn } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { CliHost } from "@retinue/hosts/shared/cli-host.ts";
import type { EndSignal } from "@retinue/hosts/shared/end-signal.ts";
import { onTestFinished } from "vitest";
import { projectRoot } from "../project-files.ts";
import { startInProcess } from "../start-in-process.ts";

const program = join(projectRoot, "bin/retinue.js");

export interface Place {
  readonly cwd: string;
  readonly home: string;
  write(name: string, text: string): void;
  /** The lines of all transcripts of the project, by session. */
  transcripts(): ReadonlyMap<string, readonly Record<string, unknown>[]>;
}

/** Takes what is to be done when the test, or all tests that share something, are over. */
export type AtEnd = (end: () => void | PromiseLike<void>) => void;

/** A project and an empty home in a temporary folder. */
export function createPlace(atEnd: AtEnd = onTestFinished): Place {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-print-")));
  atEnd(() => rmSync(root, { recursive: true, force: true, maxRetries: 3 }));
  const [cwd, home] = [join(root, "project"), join(root, "home")];
  mkdirSync(cwd);
  mkdirSync(home);
  return {
    cwd,
    home,
    write(name, text) {
      const file = join(cwd, name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    },
    transcripts() {
      const folder = join(home, ".claude/projects", cwd.replace(/[^A-Za-z0-9]/g, "-"));
      const files = readdirSync(folder).filter((name) => name.endsWith(".jsonl"));
      return new Map(
        files.map((name) => [name.slice(0, -6), readJsonLines(readFileSync(join(folder, name), "utf8"))]),
      );
    },
  };
}

export interface Finished {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface CommandOptions {
  readonly environment?: Readonly<Record<string, string>>;
  /** What is piped in; a pipe that stays open, after its text, where it is `open`; nothing by default. */
  readonly input?: string | { readonly open: true; readonly text?: string };
  /** Called with everything written to stdout so far, whenever more comes. */
  readonly watch?: (out: string, child: ChildProcess) => void;
  /** Called when the process has been started. */
  readonly started?: (child: ChildProcess) => void;
}

export interface InProcessOptions extends Pick<CommandOptions, "environment" | "input"> {
  /** Called with everything written to stdout so far, whenever more comes; `kill` sends a signal to this command alone. */
  readonly watch?: (out: string, command: { kill(signal: EndSignal): void }) => void;
  /** What differs from a command in a pipe. */
  readonly host?: Partial<CliHost>;
  readonly atEnd?: AtEnd;
}

/** Runs a command in this process: for all that does not depend on a process of its own, which takes half a second. */
export async function runInProcess(
  { cwd, home }: Pick<Place, "cwd" | "home">,
  arguments_: readonly string[],
  { environment = {}, input, watch, host = {}, atEnd = onTestFinished }: InProcessOptions = {},
): Promise<Finished> {
  const written = { out: "", err: "" };
  const command = startInProcess(arguments_, {
    cwd,
    environment: { HOME: home, ...environment },
    out(text) {
      written.out += text;
      watch?.(written.out, command);
    },
    err(text) {
      written.err += text;
    },
    host,
  });
  atEnd(() => command.kill("SIGTERM"));
  if (typeof input !== "object") command.stdin.end(input);
  else if (input.text !== undefined) command.stdin.write(input.text);
  return { code: await command.code, ...written };
}

/** Runs the built command as a user does, beside whatever else this process does: where the process is the point. */
export function runCommand(
  { cwd, home }: Pick<Place, "cwd" | "home">,
  arguments_: readonly string[],
  { environment = {}, input, watch, started }: CommandOptions = {},
): Promise<Finished> {
  const child = spawn(process.execPath, [program, ...arguments_], {
    cwd,
    env: { HOME: home, PATH: process.env["PATH"], RETINUE_LOCAL_MODELS: "0", ...environment },
    stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  started?.(child);
  const written = { out: "", err: "" };
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    written.out += text;
    watch?.(written.out, child);
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    written.err += text;
  });
  if (typeof input === "string") child.stdin?.end(input);
  else if (input?.text !== undefined) child.stdin?.write(input.text);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, ...written }));
  });
}

export function readJsonLines(text: string): Record<string, unknown>[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}
