import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { createPaths } from "@retinue/config/settings/paths.ts";
import { listTranscripts } from "./kept-files.ts";
import { createPowerCutDisk, type PowerCutDisk } from "./power-cut-disk.ts";
import { type RunningProgram, startProgram } from "./start-program.ts";
import type { TortureProvider } from "./torture-provider.ts";

export interface PowerCutOptions {
  readonly provider: TortureProvider;
  /** What the program is described in its settings; absent leaves the default. */
  readonly durability?: string | undefined;
  /** How long the program works before the cut, or how many of its commands have run. */
  readonly after: { readonly milliseconds: number } | { readonly commands: number };
  /** False leaves the session as the cut left it. */
  readonly continues?: boolean;
}

export interface PowerCut {
  /** Calls whose effect was there after the cut. */
  readonly effects: number;
  /** Those of them that no transcript names. */
  readonly unrecorded: readonly string[];
  /** Calls that ran a second time when the session was taken up again. */
  readonly repeated: readonly string[];
}

/**
 * Lets a program work on an ext4 file system of its own, cuts the power, and compares the effects that are there with
 * the contents of the transcripts. Commands write to another disk, as to a remote machine; files are written on the same one.
 */
export async function cutPower(options: PowerCutOptions): Promise<PowerCut> {
  using disk = createPowerCutDisk();
  const place = createPlace(disk, options.durability);
  const program = startProgram(place, ["--session-id", place.sessionId], options.provider.url);
  await Promise.race([untilCut(place, options.after), program.ended]);
  program.process.kill("SIGSTOP");
  disk.cut();
  const running = program.process.exitCode === null;
  program.process.kill("SIGKILL");
  await program.ended;
  disk.restart();
  const before = effectsOf(place);
  const recorded = recordedCalls(place);
  const unrecorded = [...before].filter((id) => !recorded.has(id));
  if (running && options.continues !== false) await takeUpAgain(place, options.provider.url);
  return { effects: before.size, unrecorded, repeated: repeatedIn(place) };
}

async function untilCut({ log }: Place, after: PowerCutOptions["after"]): Promise<void> {
  if ("milliseconds" in after) return wait(after.milliseconds);
  for (let looks = 0; loggedIn(log).length < after.commands && looks < 2_000; looks += 1) await wait(10);
}

interface Place {
  readonly home: string;
  readonly project: string;
  readonly log: string;
  readonly sessionId: string;
  readonly transcript: string;
}

function createPlace({ mount, outside, sync }: PowerCutDisk, durability: string | undefined): Place {
  const [home, project, log] = [join(mount, "home"), join(mount, "project"), join(outside, "log.txt")];
  mkdirSync(join(home, ".claude"), { recursive: true });
  mkdirSync(project);
  writeFileSync(log, "");
  symlinkSync(log, join(project, "log.txt"));
  const settings = { resumeInterruptedAgents: true, durability };
  writeFileSync(join(home, ".claude/settings.json"), JSON.stringify(settings));
  sync();
  const sessionId = randomUUID();
  const { transcripts } = createPaths({ cwd: project, home, environment: {}, platform: process.platform });
  return { home, project, log, sessionId, transcript: join(transcripts, `${sessionId}.jsonl`) };
}

/** The session continues where its transcript ends; one of which nothing is left is started anew. */
async function takeUpAgain(place: Place, url: string): Promise<void> {
  const hasStarted =
    existsSync(place.transcript) && readFileSync(place.transcript, "utf8").includes('"user"');
  const session = hasStarted ? ["--resume", place.sessionId] : ["--session-id", place.sessionId];
  const again: RunningProgram = startProgram(place, session, url);
  const { code, output } = await again.ended;
  if (code !== 0) throw new Error(`The session could not be taken up again: ${output}`);
}

function effectsOf({ log, project }: Place): ReadonlySet<string> {
  const written = join(project, "written");
  const files = existsSync(written) ? readdirSync(written).filter((name) => name.endsWith(".txt")) : [];
  return new Set([...loggedIn(log), ...files.map((name) => name.slice(0, -4))]);
}

function loggedIn(log: string): readonly string[] {
  return readFileSync(log, "utf8").split("\n").filter(Boolean);
}

function repeatedIn({ log }: Place): readonly string[] {
  const logged = loggedIn(log);
  return logged.filter((id, index) => logged.indexOf(id) !== index);
}

function recordedCalls({ transcript }: Place): ReadonlySet<string> {
  const texts = listTranscripts(transcript).map((file) => readFileSync(file, "utf8"));
  return new Set(texts.flatMap((text) => text.match(/\bcall-step\w+-\d+\b/g) ?? []));
}
