// @io
import { existsSync } from "node:fs";
import { join } from "node:path";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { invalid } from "@retinue/base/foundation/check-arguments.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import { readVerifyChecks } from "@retinue/config/settings/verify-checks.ts";
import type { AgentPlan, PlannedCheck } from "../../planning/agent-plan.ts";
import type { WorktreePlace } from "../../planning/in-worktree.ts";
import {
  emptyQueue,
  foldEarlierMerge,
  foldMerge,
  type MergeEvent,
  type MergeQueue,
  type MergeStep,
} from "../../protocol/merge-step.ts";
import type { Stopwatch } from "../../tasks/watch-run.ts";
import { findOwnWorktrees, removeUnfinished, whyInUse } from "../../tasks/worktree/find-own-worktrees.ts";
import { findWorktreeRepository } from "../../tasks/worktree/find-worktree-repository.ts";
import { makeWorktree } from "../../tasks/worktree/make-worktree.ts";
import { readWorktreeSettings } from "../../tasks/worktree/read-worktree-settings.ts";
import { recoverWorktrees } from "../../tasks/worktree/recover-worktrees.ts";
import { createWorktreeGit } from "../../tasks/worktree/worktree-git.ts";
import type { AgentServices } from "../agent/agent-services.ts";
import { isServed } from "../choose-model.ts";
import { type AgentHost, startAgent } from "../run-handle.ts";
import type { CheckRunner } from "../verify/create-check-runner.ts";
import { openChecks } from "../verify/open-verifier.ts";
import { finishApplying } from "./apply-merge.ts";
import { findKeptBranches, findMergeSession, type KeptBranch } from "./find-kept-branches.ts";
import { findTarget } from "./find-target.ts";
import { chooseChildren, lookAtChildren, mergeChildren, type ResolverEnd } from "./merge-children.ts";
import { type MergeRepository, type Scratch, takeChanges } from "./merge-git.ts";
import { mergeJournalFile, openMergeJournal, readMergeSteps } from "./merge-journal.ts";
import type { MergeOptions } from "./merge-options.ts";

type RunOptions = Omit<MergeOptions, "signal"> & Pick<MergeStart, "session">;

interface Running {
  readonly signal: AbortSignal;
  readonly emit: (event: MergeEvent) => void;
}

const defaultResolver = "merge-resolver";

/** Everything around the queue: finds what there is, holds the lock, keeps the journal, and gives the queue its tree and its agent. */
export async function runMerge(
  parts: MergeParts,
  options: RunOptions,
  running: Running,
): Promise<MergeQueue> {
  const { runtime } = parts.services;
  if (!runtime.keepsTranscripts)
    throw new RetinueError(
      "nothing-kept",
      "This session keeps no transcript, so its children's changes cannot be merged.",
      {
        advice: "Run it with transcripts, or merge the branches with `git merge`.",
      },
    );
  const { transcripts, cwd } = runtime.discovered.paths;
  const git = createWorktreeGit({
    trusted: runtime.trusted,
    environment: runtime.environment,
    signal: running.signal,
  });
  const found = await findWorktreeRepository(git, cwd);
  if (found.type === "refused")
    throw new RetinueError("no-merge", `Nothing can be merged: ${found.reason}.`, {
      advice: "Run the merge in the repository that the agents worked in.",
    });
  const place = { git, repository: found.repository, transcripts };
  const sessionId =
    "id" in options.session ? options.session.id : await findMergeSession(place, options.session.written);
  if (options.dryRun === true) return planMerge(parts, place, { ...options, sessionId });
  using _lock = lockRepository(found.repository.commonDirectory);
  // A worktree whose removal was cut off has lost files that its agent did not delete.
  await recoverWorktrees(git, found.repository.commonDirectory);
  const file = mergeJournalFile(transcripts, sessionId);
  const earlier = foldEarlierMerge(await readMergeSteps(file));
  using journal = openMergeJournal(file, runtime.durability);
  const note = async (step: MergeStep): Promise<void> => {
    const event = { ...step, at: runtime.epochMs() };
    await journal.write(event);
    running.emit(event);
  };
  const all = await findKeptBranches(place, sessionId);
  if (options.discard !== undefined)
    return await discardChildren(place, chooseChildren(all, options.discard), { sessionId, note });
  const scratch = scratchOf(parts, { sessionId, ...place });
  await scratch.drop();
  await finishApplying(place, earlier, note);
  const children = options.only === undefined ? all : chooseChildren(all, options.only);
  const checks = await checksOf(parts, options.checks, children);
  const request = {
    sessionId,
    into: options.into,
    checks,
    only: options.only,
    resolver: options.resolver ?? defaultResolver,
    apply: options.apply === true,
  };
  let opened: ReturnType<typeof scratch.open> | undefined;
  const open = () => {
    opened ??= scratch.open(checks, running.signal);
    return opened;
  };
  try {
    // The person's branch may just have been brought to where it was to be.
    const now = await findWorktreeRepository(git, cwd);
    const repository = now.type === "found" ? now.repository : found.repository;
    return await mergeChildren(
      {
        git,
        repository,
        signal: running.signal,
        note,
        openScratch: open,
        resolve: async (resolver, prompt) =>
          resolveIn(parts, { place: (await open()).place, resolver, prompt, signal: running.signal }),
      },
      { children, earlier, request },
    );
  } finally {
    if (opened !== undefined) await scratch.drop();
  }
}

/** The queue as it would be taken, with what would be left and why. Changes nothing. */
async function planMerge(
  parts: MergeParts,
  place: MergeRepository & { readonly transcripts: string },
  options: RunOptions & { readonly sessionId: string },
): Promise<MergeQueue> {
  const { sessionId, only } = options;
  const all = await findKeptBranches(place, sessionId);
  const children = only === undefined ? all : chooseChildren(all, only);
  const target = await findTarget(place, options);
  const { order, taken, left } = await lookAtChildren(place, children, { request: { only }, dryRun: true });
  const checks = await checksOf(parts, options.checks, children);
  const started: MergeStep = {
    ...{ type: "started", sessionId, into: target.branch, from: target.tip },
    checks: checks.map(({ run }) => run),
    children: order.map(({ agent, agentType, description, branch }) => ({
      agent,
      agentType,
      description,
      branch,
    })),
  };
  const queue = [started, ...left].reduce<MergeQueue>(foldMerge, emptyQueue);
  const files = new Map(taken.map((child) => [child.kept.agent, child.taken]));
  return {
    ...queue,
    entries: queue.entries.map((entry) => {
      const found = files.get(entry.agent);
      return found === undefined ? entry : { ...entry, files: found.files, tip: found.tip };
    }),
  };
}

function lockRepository(commonDirectory: string): Disposable {
  const answer = takeOwnerLock(join(commonDirectory, "retinue-merge"));
  if (answer.type === "taken") return { [Symbol.dispose]: () => answer.lock.release() };
  const by = answer.by === undefined ? "" : ` (process ${answer.by.pid})`;
  throw new RetinueError("merge-running", `Another merge of this repository is running${by}.`, {
    advice: "Wait until it ends; if no such process is running, try again in a few seconds.",
  });
}

/** Those that were asked for; else those of the main agent and of the types of the children, as they are named now. */
async function checksOf(
  { plan, host }: MergeParts,
  written: MergeOptions["checks"],
  children: readonly KeptBranch[],
): Promise<readonly PlannedCheck[]> {
  if (Array.isArray(written) && written.length === 0) return [];
  if (written !== undefined) {
    const reading = readVerifyChecks(written);
    if (reading.type === "unreadable")
      throw invalid(`The checks of a merge cannot be read: ${reading.reason}`);
    return reading.checks.checks.map((check) => ({ ...check, from: "the merge" }));
  }
  const types = [...new Set(children.map(({ agentType }) => agentType))];
  const planned = await Promise.all(
    types.map((agentType) =>
      host.spawner.plan({ agentType, description: "checks", prompt: "", origin: "program" }),
    ),
  );
  const all = [
    ...(plan.verify?.checks ?? []),
    ...planned.flatMap((answer) => (answer.type === "planned" ? (answer.plan.verify?.checks ?? []) : [])),
  ];
  const checks = new Map<string, PlannedCheck>();
  for (const check of all) {
    const known = checks.get(check.run);
    if (known === undefined || known.refused !== undefined) checks.set(check.run, check);
  }
  return [...checks.values()];
}

interface OpenScratch extends Scratch {
  readonly checks: CheckRunner;
  readonly place: WorktreePlace;
}

const dropWaitMs = 200;
const maxDropMs = 10_000;
/** Of the tree and its branch, which are there only while a merge holds the lock of the repository. */
const scratchName = /^merge-[0-9a-f]{8}$/;

/** The tree in which changes are put together and checked. What an earlier merge has left of one is removed first. */
function scratchOf(
  parts: MergeParts,
  { sessionId, git, repository }: MergeRepository & { readonly sessionId: string },
) {
  const { services, plan } = parts;
  const { runtime } = services;
  const name = `merge-${sessionId.slice(0, 8)}`;
  const { commonDirectory, main } = repository;

  async function drop(): Promise<void> {
    const still = createWorktreeGit({
      trusted: runtime.trusted,
      environment: runtime.environment,
      signal: new AbortController().signal,
    });
    for (let waited = 0; ; waited += dropWaitMs) {
      const left = (await findOwnWorktrees(commonDirectory)).filter(({ mark }) =>
        scratchName.test(mark.agentId),
      );
      const reasons = await Promise.all(
        left.map(async (own) => {
          const { path } = own.mark;
          // The folder was removed; what git keeps of it goes too.
          if (!existsSync(path)) await still(main, ["worktree", "prune"]);
          else {
            const removal = await removeUnfinished(still, own);
            if (removal.type === "kept")
              return `The scratch tree ${path} could not be removed: ${removal.reason}.`;
          }
          return undefined;
        }),
      );
      const reason = reasons.find((text) => text !== undefined);
      if (reason === undefined) break;
      // A git that outlives the process that has started it may still be at work in it.
      if (waited >= maxDropMs) throw new RetinueError("no-merge", reason);
      await sleep(dropWaitMs, still.signal);
    }
    const listed = await still(main, ["for-each-ref", "--format=%(refname)", "refs/heads/retinue/"]);
    const left = listed.type === "done" ? listed.text.split("\n") : [];
    for (const reference of left)
      if (scratchName.test(reference.slice("refs/heads/retinue/".length)))
        await still(main, ["update-ref", "-d", reference], { isUnstoppable: true });
  }

  async function open(checks: readonly PlannedCheck[], signal: AbortSignal): Promise<OpenScratch> {
    const settings = readWorktreeSettings(runtime.discovered.settings.settings.plain.worktree);
    if (settings.type === "refused") throw new RetinueError("no-merge", settings.reason);
    const made = await makeWorktree({
      directory: runtime.discovered.paths.cwd,
      agentId: name,
      agentName: "merge",
      own: { name, branch: `retinue/${name}` },
      settings: { ...settings.settings, baseRef: "head" },
      environment: runtime.environment,
      trusted: runtime.trusted,
      signal,
    });
    if (made.type === "refused") throw new RetinueError("no-merge", made.reason);
    const { path, directory, markStarted } = made.worktree;
    markStarted();
    // Its branch stays where it began, so that it can be told apart from one in use.
    const detached = await git(path, ["checkout", "--quiet", "--detach"]);
    if (detached.type === "failed") throw new RetinueError("no-merge", detached.reason);
    const tree: WorktreePlace = { path, directory, root: runtime.discovered.paths.projectRoot };
    const runner = openChecks({ ...plan, verify: { checks } }, tree, parts);
    await runner.askAll(checks, signal);
    return { path, git, checks: runner, place: tree };
  }

  return { open, drop };
}

/** What the resolver may do in its tree without being asked: decide about files that have no markers. */
const resolverRules = ["add", "rm", "checkout --ours", "checkout --theirs"].map(
  (words) => `Bash(git ${words} *)`,
);

/** Starts the agent in the scratch tree, with the rules of the session. */
async function resolveIn(
  { host, services, plan }: MergeParts,
  {
    place,
    resolver,
    prompt,
    signal,
  }: {
    readonly place: WorktreePlace;
    readonly resolver: string;
    readonly prompt: string;
    readonly signal: AbortSignal;
  },
): Promise<ResolverEnd> {
  if (!isServed(services.runtime, plan.chosenModel)) return { failure: "no model is configured" };
  const request = {
    agentType: resolver,
    description: "Resolve a merge conflict",
    prompt,
    origin: "program",
    mode: "acceptEdits",
    given: { worktree: place, rules: resolverRules },
    background: false,
  } as const;
  try {
    const handle = startAgent(request, { host, sessionId: () => plan.sessionId, signal });
    const { status, reason, error } = await handle.result;
    const by = handle.id;
    return status === "completed" ? { by } : { by, failure: `it ended as ${status} (${error ?? reason})` };
  } catch (error) {
    signal.throwIfAborted();
    return { failure: error instanceof Error ? error.message : String(error) };
  }
}

/** Removes worktrees and branches with everything in them; each last commit is written down and shown, so that it can be had back. */
async function discardChildren(
  place: MergeRepository,
  children: readonly KeptBranch[],
  { sessionId, note }: { readonly sessionId: string; readonly note: (step: MergeStep) => Promise<void> },
): Promise<MergeQueue> {
  let queue: MergeQueue = emptyQueue;
  const show = async (step: MergeStep): Promise<void> => {
    queue = foldMerge(queue, step);
    await note(step);
  };
  const listed = children.map(({ agent, agentType, description, branch }) => ({
    agent,
    agentType,
    description,
    branch,
  }));
  await show({ type: "started", sessionId, into: "", from: "", checks: [], children: listed });
  for (const kept of children) {
    const { agent, branch, worktree } = kept;
    const leave = (reason: string) =>
      show({ type: "left", agent, because: "not-ended", reason, commands: [`retinue stop ${agent}`] });
    const inUse = kept.state === "running" ? "it still works" : worktree && whyInUse(worktree.mark);
    if (inUse !== undefined) {
      await leave(inUse);
      continue;
    }
    const taking = await takeChanges(place, kept, { dryRun: false });
    const tip = taking.type === "taken" ? taking.tip : await tipOf(place, branch);
    await show({ type: "taken", agent, tip, base: tip, files: taking.type === "taken" ? taking.files : [] });
    if (worktree !== undefined) {
      const removal = await removeUnfinished(place.git, worktree);
      if (removal.type === "kept" && existsSync(worktree.mark.path)) {
        await leave(removal.reason);
        continue;
      }
    }
    await place.git(place.repository.main, ["update-ref", "-d", `refs/heads/${branch}`], {
      isUnstoppable: true,
    });
    await show({ type: "discarded", agent, branch, tip });
  }
  const status = queue.entries.some(({ state }) => state === "left") ? "partial" : "nothing";
  await show({ type: "ended", status });
  return queue;
}

async function tipOf({ git, repository }: MergeRepository, branch: string): Promise<string> {
  const answer = await git(repository.main, ["rev-parse", "--verify", "--quiet", `refs/heads/${branch}`]);
  return answer.type === "done" ? answer.text.trim() : "";
}

/** What a merge needs of the session that carries it out. */
export interface MergeParts {
  readonly services: AgentServices;
  /** The main agent, whose rules hold. */
  readonly plan: AgentPlan;
  readonly stopwatch: Stopwatch;
  readonly host: AgentHost;
}

export interface MergeStart {
  readonly parts: MergeParts | Promise<MergeParts>;
  /** The session whose children are merged: an id; or what a person wrote to name one, and absent for the newest. */
  readonly session: { readonly id: string } | { readonly written: string | undefined };
  /** Ends what carries it out. */
  readonly end: AbortSignal;
}
