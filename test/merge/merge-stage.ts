import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { Session } from "@retinue/core/kernel/session.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { ScriptedStep, Step } from "@retinue/testing/script.ts";
import { onTestFinished } from "vitest";

/** Runs git as a person does, in a folder. */
export function git(directory: string, ...words: readonly string[]): string {
  const identity = [
    "-c",
    "user.name=Test",
    "-c",
    "user.email=test@example.com",
    "-c",
    "commit.gpgsign=false",
  ];
  return execFileSync("git", [...identity, ...words], {
    cwd: directory,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  }).trimEnd();
}

export interface MergeStage {
  readonly sample: SampleRuntime;
  readonly project: string;
  readonly session: Session;
  /** Has a child change files in a worktree of its own; null deletes one. */
  readonly child: (task: string, files: FileChanges, options?: ChildWork) => Promise<Child>;
  /** What agents do whose task is `<task NAME>`, by that name. */
  readonly works: Map<string, (directory: string) => void>;
  readonly git: (...words: readonly string[]) => string;
  /** A file of a commit or branch. */
  readonly show: (commit: string, path: string) => string;
}

export type FileChanges = Readonly<Record<string, string | Buffer | null>>;

export interface ChildWork {
  /** Does something in the worktree besides, as its shell would. */
  readonly also?: (directory: string) => void;
  readonly verify?: string;
  readonly agentType?: string;
}

export interface Child {
  readonly id: string;
  readonly branch: string;
  readonly path: string;
}

/** The folder that is given to an agent as the one it works in. */
export function directoryOf({ system }: Pick<ModelRequest, "system">): string {
  return /Working directory: ([^\\"]+)/.exec(JSON.stringify(system))?.[1] ?? "";
}

/** Whether the model is asked by an agent that has a conflict to resolve. */
export function isResolver({ messages }: Pick<ModelRequest, "messages">): boolean {
  return JSON.stringify(messages[0]).includes("Resolve this merge conflict");
}

const taskOf = (text: string): string | undefined => /<task (.+?)>/.exec(text)?.[1];

/** A repository with children that have worked in worktrees of their own. The model says what `steps` say, then ends each child. */
export async function createMergeStage(
  files: FileChanges,
  { steps = [], options = {} }: { readonly steps?: readonly Step[]; readonly options?: RuntimeOptions } = {},
): Promise<MergeStage> {
  const works = new Map<string, (directory: string) => void>();
  const work: ScriptedStep = {
    match: (request) => !isResolver(request) && works.has(taskOf(JSON.stringify(request.messages[0])) ?? ""),
    times: "any",
    respond(request) {
      const task = taskOf(JSON.stringify(request.messages[0])) ?? "";
      works.get(task)?.(directoryOf(request));
      return "Done.";
    },
  };
  const sample = await createSampleRuntime([work, ...steps], { trusted: true, ...options });
  onTestFinished(() => sample[Symbol.asyncDispose]());
  const { project } = sample.workspace;
  git(project, "init", "-q", "-b", "main");
  git(project, "config", "user.name", "Person");
  git(project, "config", "user.email", "person@example.com");
  change(project, files);
  git(project, "add", "-A");
  git(project, "commit", "-q", "-m", "first");
  const session = await sample.runtime.open({ skipPermissions: true });
  return {
    sample,
    project,
    session,
    works,
    async child(task, changes, { also, verify, agentType = "general-purpose" } = {}) {
      works.set(task, (directory) => {
        change(directory, changes);
        also?.(directory);
      });
      const handle = session.spawn(agentType, `Do <task ${task}>.`, {
        isolation: "worktree",
        description: task,
        verify,
      });
      const { agentId } = await handle.result;
      const branch = `retinue/${agentType}-${agentId}`;
      return { id: agentId, branch, path: join(project, ".claude/worktrees", `${agentType}-${agentId}`) };
    },
    git: (...words) => git(project, ...words),
    show: (commit, path) => git(project, "show", `${commit}:${path}`),
  };
}

export function change(directory: string, files: FileChanges): void {
  for (const [name, content] of Object.entries(files)) {
    const path = join(directory, name);
    if (content === null) rmSync(path, { recursive: true, force: true });
    else {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, content);
    }
  }
}

export function readIfThere(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}
