import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { type JsonSchema, orNull } from "@retinue/base/foundation/json-schema.ts";
import type { ValueReader, WrongPart } from "./read-environment.ts";

/** A command that the runtime runs after an agent's last turn, in the agent's own working tree. */
export interface VerifyCheck {
  readonly run: string;
  /** How long it may take; two minutes by default. */
  readonly timeoutSeconds?: number;
}

/** The checks of one agent, and how often a failed one goes back to it. */
export interface VerifyChecks {
  readonly checks: readonly VerifyCheck[];
  readonly retries?: number;
}

/** What a person writes: a command, an entry with its limits, or a list of both. */
export type VerifyInput = string | VerifyEntry | readonly (string | VerifyEntry)[];

export interface VerifyEntry {
  readonly run: string;
  /** In seconds, 1 to 600. */
  readonly timeout?: number;
  /** 0 to 10; of several entries the largest counts. */
  readonly retries?: number;
}

export type ChecksReading =
  | { readonly type: "checks"; readonly checks: VerifyChecks }
  | { readonly type: "unreadable"; readonly reason: string };

export const verifyAdvice =
  "Write `verify: npm test`, a list of commands, or entries such as `{ run: npm test, timeout: 300, retries: 1 }`.";

const maxChecks = 20;

const entrySchemas: readonly JsonSchema[] = [
  { type: "string", pattern: "\\S" },
  {
    type: "object",
    properties: {
      run: { type: "string", pattern: "\\S" },
      timeout: { type: "number", minimum: 1, maximum: 600 },
      retries: { type: "integer", minimum: 0, maximum: 10 },
    },
    required: ["run"],
    additionalProperties: false,
  },
];

/** What `readVerifyChecks` takes. */
export const verifySchema: JsonSchema = orNull({
  anyOf: [
    ...entrySchemas,
    { type: "array", items: { anyOf: entrySchemas }, minItems: 1, maxItems: maxChecks },
  ],
});

/** Reads `verify`, wherever it was written. What cannot be honoured makes the whole unreadable: a dropped check would pass. */
export function readVerifyChecks(value: unknown): ChecksReading {
  const entries: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (entries.length === 0) return unreadable("it names no command");
  if (entries.length > maxChecks) return unreadable(`it names more than ${maxChecks} commands`);
  const checks: VerifyCheck[] = [];
  let retries: number | undefined;
  for (const entry of entries) {
    const read = readEntry(entry);
    if (typeof read === "string") return unreadable(read);
    checks.push(read.check);
    if (read.retries !== undefined) retries = Math.max(retries ?? 0, read.retries);
  }
  return { type: "checks", checks: { checks, retries } };
}

/** `verify` of a settings file: the checks of each type of agent. */
export const verifyByAgent: ValueReader<JsonRecord> = {
  expected: 'an object of checks by agent type, as in {"fixer": "npm test", "main": ["npm run lint"]}',
  read: (value) => (isRecord(value) && wrongChecks(value) === undefined ? value : undefined),
  wrongPart: (value) => (isRecord(value) ? wrongChecks(value) : undefined),
  schema: { type: "object", additionalProperties: verifySchema },
};

const advice =
  'Write "npm test", a list of commands, or entries such as {"run": "npm test", "timeout": 300, "retries": 1}.';

function wrongChecks(value: JsonRecord): WrongPart | undefined {
  for (const [type, checks] of Object.entries(value)) {
    const reading = checks === null ? undefined : readVerifyChecks(checks);
    if (reading?.type === "unreadable") return { path: [type], reason: reading.reason, advice };
  }
  return undefined;
}

const known: ReadonlySet<string> = new Set(["run", "timeout", "retries"]);

function readEntry(entry: unknown): { readonly check: VerifyCheck; readonly retries?: number } | string {
  if (typeof entry === "string") {
    return entry.trim() === "" ? "a command is empty" : { check: { run: entry.trim() } };
  }
  if (!isRecord(entry)) return "an entry is neither a command nor `{ run: … }`";
  const strange = Object.keys(entry).find((key) => !known.has(key));
  if (strange !== undefined) return `an entry has the unknown key ${JSON.stringify(strange.slice(0, 40))}`;
  const { run, timeout, retries } = entry;
  if (typeof run !== "string" || run.trim() === "") return "an entry has no command in `run`";
  if (timeout !== undefined && !isBetween(timeout, 1, 600))
    return "`timeout` is not a number of seconds from 1 to 600";
  if (retries !== undefined && !(isBetween(retries, 0, 10) && Number.isSafeInteger(retries)))
    return "`retries` is not a whole number from 0 to 10";
  return {
    check: { run: run.trim(), timeoutSeconds: timeout },
    retries,
  };
}

function isBetween(value: unknown, least: number, most: number): value is number {
  return typeof value === "number" && value >= least && value <= most;
}

function unreadable(reason: string): ChecksReading {
  return { type: "unreadable", reason };
}
