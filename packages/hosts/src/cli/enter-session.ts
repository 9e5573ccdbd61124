import { appendFileSync, mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileError } from "@retinue/base/foundation/file-error.ts";
import { openSessionWorktree } from "@retinue/core/kernel/project/session-worktree.ts";
import type { CommandContext } from "../shared/command-context.ts";
import type { RunFlags } from "../shared/flags.ts";
import { gatherSession } from "../shared/open-project.ts";

type Run = (context: CommandContext) => Promise<number>;

/** Runs a session where `--worktree` says, and writes down what happens where `--debug-file` says. */
export async function enterSession(
  context: CommandContext,
  { worktree, debugFile }: Pick<RunFlags, "worktree" | "debugFile">,
  run: Run,
): Promise<number> {
  const inside: Run =
    worktree === undefined || worktree === false
      ? run
      : async (own) => run(await enterWorktree(own, worktree === true ? undefined : String(worktree)));
  return debugFile === undefined ? inside(context) : writeDown(context, debugFile, inside);
}

async function enterWorktree(context: CommandContext, name: string | undefined): Promise<CommandContext> {
  const { host } = context;
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  try {
    const {
      directory,
      path,
      branch,
      name: worktree,
    } = await openSessionWorktree(await gatherSession(context), {
      name,
      signal: stop.signal,
    });
    host.stderr.write(`retinue: Working in ${path}, on the branch ${branch}.\n`);
    return { ...context, host: { ...host, cwd: directory, worktree } };
  } finally {
    forget();
  }
}

/** One line for each thing with its time: the start, messages to the person, errors with their stack, the end. */
async function writeDown(context: CommandContext, written: string, run: Run): Promise<number> {
  const { host } = context;
  const file = resolve(host.cwd, written);
  const write = (level: "DEBUG" | "ERROR", text: string): void => {
    const at = new Date().toISOString();
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    appendFileSync(file, lines.map((line) => `${at} [${level}] ${line}\n`).join(""), { mode: 0o600 });
  };
  try {
    mkdirSync(dirname(file), { recursive: true });
    write(
      "DEBUG",
      `retinue ${host.version}, Node ${host.nodeVersion}, ${host.platform}, process ${process.pid}`,
    );
  } catch (error) {
    throw fileError("write to", file, error);
  }
  write("DEBUG", `working in ${host.cwd}`);
  const stderr: CommandContext["host"]["stderr"] = {
    ...host.stderr,
    write(text, options) {
      host.stderr.write(text, options);
      write("DEBUG", text);
    },
  };
  try {
    const code = await run({ ...context, host: { ...host, stderr }, debug: (text) => write("DEBUG", text) });
    write("DEBUG", `ended with ${code}`);
    return code;
  } catch (error) {
    write("ERROR", error instanceof Error ? (error.stack ?? error.message) : String(error));
    throw error;
  }
}
