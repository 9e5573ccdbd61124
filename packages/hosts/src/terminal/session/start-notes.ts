import { createHash } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isRecord, parseJsonRecord } from "@retinue/base/foundation/json-record.ts";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import { type Preferences, themes } from "./terminal-session.ts";

/** What the terminal has shown this person and asked before, so that it does each once. */
export interface StartNotes {
  readonly isWelcomed: boolean;
  /** Who is to answer without a key was asked. */
  readonly isAccessAsked: boolean;
  /** What each folder wanted to run and set when the person did not trust it. */
  readonly declined: Readonly<Record<string, string>>;
  readonly preferences: Partial<Preferences>;
}

const none: StartNotes = { isWelcomed: false, isAccessAsked: false, declined: {}, preferences: {} };

function fileOf(configDirectory: string): string {
  return join(configDirectory, "retinue", "terminal.json");
}

/** What is damaged or not there counts as nothing: then it is shown once more. */
export function readStartNotes(configDirectory: string): StartNotes {
  try {
    const kept = parseJsonRecord(readFileSync(fileOf(configDirectory), "utf8"));
    if (kept === undefined) return none;
    const declined = isRecord(kept["declined"]) ? Object.entries(kept["declined"]) : [];
    return {
      isWelcomed: kept["isWelcomed"] === true,
      isAccessAsked: kept["isAccessAsked"] === true,
      declined: Object.fromEntries(declined.map(([folder, digest]) => [folder, String(digest)])),
      preferences: readPreferences(kept["preferences"]),
    };
  } catch {
    return none;
  }
}

function readPreferences(kept: unknown): Partial<Preferences> {
  if (!isRecord(kept)) return {};
  const theme = themes.find((one) => one === kept["theme"]);
  return {
    theme,
    ...(kept["hasVimKeys"] === true ? { hasVimKeys: true } : {}),
  };
}

/** Where nothing can be written, it is shown again at the next start; that is no reason to stop. */
export function keepStartNotes(configDirectory: string, more: Partial<StartNotes>): void {
  const before = readStartNotes(configDirectory);
  const notes = {
    ...before,
    ...more,
    declined: { ...before.declined, ...more.declined },
    preferences: { ...before.preferences, ...more.preferences },
  };
  try {
    const file = fileOf(configDirectory);
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    replaceWholeFile(file, `${JSON.stringify({ version: 1, ...notes }, undefined, 2)}\n`);
  } catch {
    // A read-only home is none of the terminal's business.
  }
}

/** Changes with everything that waits for trust, so that a folder that wants more is asked about again. */
export function digestOf(waiting: unknown): string {
  return createHash("sha256").update(JSON.stringify(waiting)).digest("hex");
}
