// @io

import { type Stats, statSync } from "node:fs";
import { toolTable } from "../../foundation/tool-table.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import { decide } from "../../permissions/decide.ts";
import { literalPath } from "../../permissions/gather-path-facts.ts";
import type { PolicyRule, ToolScopes } from "../../permissions/permission-policy.ts";
import { parseRule } from "../../permissions/rules/parse-rule.ts";
import type { RunPlan } from "../../planning/plan-tools.ts";
import { createTemporaryNotes } from "../../storage/create-temporary-notes.ts";
import { createSessionFiles, type FileLedger } from "../../tools/file-ledger.ts";
import type { ToolContext } from "../../tools/tool.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { LiveControls } from "./open-agent.ts";
import { createMemoryTurns } from "./prepare-memory.ts";

/** Contexts of one session: each agent knows what it has read itself, and all know who changed what. */
export function createToolContexts(world: RuntimeContext, added: ReadonlyMap<string, string> = new Map()) {
  const { paths } = world.discovered;
  const sessionLedger = createSessionFiles();
  const noteTemporary = createTemporaryNotes(paths.temporaryNotes);
  // `~` must mean to the tools what it means to the rules.
  const environment = () => ({ ...world.environment, ...Object.fromEntries(added), HOME: paths.home });
  return (plan: RunPlan, directory: () => string) => {
    const files = withKnownFiles(sessionLedger.forAgent(), "task" in plan ? undefined : world.live?.seenFile);
    const mayRead = createMayRead(plan);
    const writeInTurn = createMemoryTurns(plan, paths);
    return (
      call: Pick<ToolContext, "callId" | "signal" | "progress" | "allowedBy" | "approvedPaths" | "judged">,
    ): ToolContext => ({
      ...call,
      idempotencyKey:
        world.idempotencyKey?.(call.callId) ?? `${plan.sessionId}/${plan.agent.id}/${call.callId}`,
      directory: directory(),
      workingDirectories: plan.policy.workingDirectories,
      agent: plan.agent,
      files,
      host: world.host,
      environment: environment(),
      outputDirectory: sessionFiles(paths.transcripts, plan.sessionId).toolResults,
      writeInTurn,
      ...(world.keepsTranscripts ? { noteTemporary } : {}),
      ...(mayRead === undefined ? {} : { mayRead }),
    });
  };
}

/** A child knows only what it has read itself. */
function withKnownFiles(files: FileLedger, known: LiveControls["seenFile"]): FileLedger {
  if (known === undefined) return files;
  return { ...files, seen: (path) => files.seen(path) ?? known(path) };
}

type MayRead = NonNullable<ToolContext["mayRead"]>;

/**
 * Whether a search may show what it finds in a file, by real path: not where a rule denies that it is read or searched,
 * or wants to be asked first. Undefined where no rule speaks of that, so that searches need not ask for each file.
 */
function createMayRead(plan: Pick<RunPlan, "tools" | "policy" | "directory">): MayRead | undefined {
  const { policy } = plan;
  const deny = [...policy.deny, ...scopedDenials(plan)].filter(speaksOfReading);
  const ask = policy.ask.filter(speaksOfReading);
  if (deny.length + ask.length === 0) return undefined;
  // Only what rules forbid is left out: the search itself was allowed, and its tools need not include Read.
  const { toolScopes: _scopes, outerModes: _modes, ...rest } = policy;
  const open = { ...rest, mode: "bypassPermissions", deny, ask } as const;
  const isForbiddenName = createNameCheck(deny, plan);
  return (path, tool) =>
    decide({ tool, effect: "read", paths: [path], input: {} }, open).type === "allow" &&
    !isForbiddenName(path);
}

/** Tools that show what is in files. */
const readingTools: ReadonlySet<string> = new Set(
  toolTable
    .filter(({ effect, pathFields = [] }) => effect === "read" && pathFields.length > 0)
    .map(({ name }) => name),
);

function speaksOfReading({ rule: { canonicalTool, specifier } }: PolicyRule): boolean {
  return specifier.type === "toolGlob" || readingTools.has(canonicalTool);
}

/** What the definitions of this agent and of those above it take away from their tools. */
function scopedDenials({
  tools,
  policy,
  directory,
}: Pick<RunPlan, "tools" | "policy" | "directory">): readonly PolicyRule[] {
  const scopes: readonly ToolScopes[] = [{ anchor: directory, tools }, ...(policy.toolScopes ?? [])];
  return scopes.flatMap(({ anchor, tools: scoped, deny: excluded = [] }) => [
    ...scoped.flatMap(({ name, deny = [] }) => deny.flatMap((text) => ruleOf(`${name}(${text})`, anchor))),
    ...excluded.flatMap((text) => ruleOf(text, anchor)),
  ]);
}

function ruleOf(text: string, anchor: string): readonly PolicyRule[] {
  const reading = parseRule(text);
  return reading.type === "rule" ? [{ rule: reading.rule, anchor }] : [];
}

/** Whether a file with several names is, or may be, one that a rule forbids under another. */
function createNameCheck(
  deny: readonly PolicyRule[],
  { policy, directory }: Pick<RunPlan, "policy" | "directory">,
): (path: string) => boolean {
  const named = deny.filter(({ rule }) => rule.specifier.type === "path");
  const world = { directory, home: policy.home, platform: policy.platform ?? "linux", policy };
  const literal = named.map((rule) => literalPath(rule, world));
  return (path) => {
    const own = named.length === 0 ? undefined : statsOf(path);
    if (own === undefined || !own.isFile() || own.nlink < 2) return false;
    return literal.some((name) => name === undefined || isSame(statsOf(name), own));
  };
}

function isSame(stats: Stats | undefined, { ino, dev }: Stats): boolean {
  return stats?.ino === ino && stats.dev === dev;
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
