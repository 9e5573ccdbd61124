// @io
import { hash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import { isRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import { withFileLock } from "@retinue/base/storage/owner-lock.ts";
import {
  livenessOf,
  type ProcessIdentity,
  thisProcess,
  toIdentity,
} from "@retinue/base/storage/process-identity.ts";
import { maxQuotaMs, type QuotaReport } from "./read-quota-report.ts";

/** The state of an account: `closing` while only last turns should be taken, `closed` while no request may be made. */
export type QuotaStanding =
  | { readonly type: "open" }
  | { readonly type: "closing" | "closed"; readonly until: number };

/** The right to make one request. */
export interface QuotaTurn {
  /** Called when the answer has started or the request has failed; further calls do nothing. */
  leave(): void;
}

/** The quota of one account at a provider, as all processes of this machine know it. */
export interface QuotaWindow {
  standing(): QuotaStanding;
  /**
   * Gives the right to ask, or the time until which it is not available. Near the end of a quota, and after it was used up, requests
   * are made one after another, so that a single one finds out the state of the quota.
   */
  enter(
    signal: AbortSignal,
  ): Promise<
    { readonly type: "entered"; readonly turn: QuotaTurn } | Extract<QuotaStanding, { until: number }>
  >;
  /** A request was answered; the report is what the answer contained about the quota. */
  answered(report: QuotaReport | undefined): Promise<void>;
  /**
   * A request was refused; gives until when no other is made, in milliseconds since 1970: what the provider said, but later
   * each time it refuses the first request after the time it had named.
   */
  refused(resetsInMs: number): Promise<number>;
  /** Milliseconds since 1970, by the clock that the window keeps. */
  now(): number;
}

export interface QuotaWindowOptions {
  readonly file: string;
  readonly clock: WaitClock;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export interface QuotaWindows {
  of(provider: string): QuotaWindow;
  /** What distinguishes the account from others in files: a name and a digest. */
  accountOf(provider: string): string;
  /** Where the files of all accounts are. */
  readonly directory: string;
}

export interface QuotaWindowsOptions extends Pick<QuotaWindowOptions, "clock" | "now"> {
  readonly directory: string;
  /** What distinguishes one account of a provider from another: addresses and keys. Only their digest is written anywhere. */
  readonly accountOf: (provider: string) => unknown;
}

/** One window for each account, in a file that all processes of this user share. */
export function createQuotaWindows({ directory, accountOf, ...time }: QuotaWindowsOptions): QuotaWindows {
  const windows = new Map<string, QuotaWindow>();
  const nameOf = (provider: string): string => {
    const digest = hash("sha256", JSON.stringify([provider, accountOf(provider)])).slice(0, 16);
    return `${provider.replace(/[^\w-]/g, "_").slice(0, 40)}-${digest}`;
  };
  return {
    directory,
    accountOf: nameOf,
    of(provider) {
      const known = windows.get(provider);
      if (known !== undefined) return known;
      const window = openQuotaWindow({ ...time, file: join(directory, `${nameOf(provider)}.json`) });
      windows.set(provider, window);
      return window;
    },
  };
}

/** From here on one request at a time. */
const tightFrom = 0.9;
/** The rest is for last turns. */
const reservedFrom = 0.95;
const lookMs = 200;
/** A turn that is held longer was forgotten. */
const maxTurnMs = 900_000;
/** The pause after a second refusal in a row, four times as long after each further one. */
const firstPauseMs = 1_000;
const maxPauseMs = 300_000;

/** What is in the file. Times are milliseconds since 1970. */
interface WindowState {
  readonly closedUntil?: number;
  /** How often a request was refused at the end of that time, since one was answered. */
  readonly refusedAgain?: number;
  readonly used?: number;
  readonly resetsAt?: number;
  readonly turn?: { readonly id: string; readonly at: number; readonly process: ProcessIdentity };
}

export function openQuotaWindow({ file, clock, now }: QuotaWindowOptions): QuotaWindow {
  // Where nothing can be written, this process keeps to itself what it learns: its requests must not fail for that.
  let own: WindowState | undefined;
  const read = (): WindowState => own ?? readState(file);
  const change = async (decide: (state: WindowState) => WindowState): Promise<void> => {
    if (own !== undefined) {
      own = decide(own);
      return;
    }
    let after: WindowState | undefined;
    try {
      await withFileLock(file, () => {
        const before = read();
        after = decide(before);
        if (after !== before) replaceWholeFile(file, `${JSON.stringify({ version: 1, ...after })}\n`);
      });
    } catch {
      own = after ?? decide(read());
    }
  };

  async function takeTurn(): Promise<QuotaTurn | undefined> {
    const id = randomUUID();
    let isMine = false;
    await change((state) => {
      isMine = !isHeld(state, now());
      return isMine ? { ...state, turn: { id, at: now(), process: thisProcess() } } : state;
    });
    if (!isMine) return undefined;
    let isInside = true;
    return {
      leave() {
        if (!isInside) return;
        isInside = false;
        // A turn that cannot be given back runs out with its process.
        void change((state) => {
          const { turn, ...rest } = state;
          return turn?.id === id ? rest : state;
        }).catch(() => undefined);
      },
    };
  }

  return {
    now,
    standing: () => standingOf(read(), now()),
    async enter(signal) {
      while (true) {
        signal.throwIfAborted();
        const state = read();
        const standing = standingOf(state, now());
        if (standing.type === "closed") return standing;
        if (!isTight(state, now())) return { type: "entered", turn: { leave: () => undefined } };
        const turn = isHeld(state, now()) ? undefined : await takeTurn();
        if (turn !== undefined) {
          // The one before may have found out that there is nothing left.
          const later = standingOf(read(), now());
          if (later.type !== "closed") return { type: "entered", turn };
          turn.leave();
          return later;
        }
        await clock.sleep(lookMs, signal);
      }
    },
    async answered(report) {
      const known = read();
      if (report === undefined && known.closedUntil === undefined) return;
      const isWorthKnowing = (report?.used ?? 0) >= tightFrom;
      if (!isWorthKnowing && known.closedUntil === undefined && known.used === undefined) return;
      await change((state) => {
        // What was asked before the quota was used up says nothing about what comes after.
        if (standingOf(state, now()).type === "closed") return state;
        return {
          turn: state.turn,
          ...(report === undefined || !isWorthKnowing
            ? {}
            : { used: report.used, resetsAt: now() + report.resetsInMs }),
        };
      });
    },
    async refused(resetsInMs) {
      let until = now() + withinBounds(resetsInMs);
      await change((state) => {
        const standing = standingOf(state, now());
        const { refusedAgain = 0, closedUntil } = state;
        if (standing.type === "closed") {
          // Asked before it was known to be closed: that says nothing new.
          until = Math.max(until, standing.until);
          return { ...state, closedUntil: until };
        }
        const again = closedUntil === undefined ? 0 : refusedAgain + 1;
        until = Math.max(until, now() + pauseAfter(again));
        return { ...state, closedUntil: until, ...(again === 0 ? {} : { refusedAgain: again }) };
      });
      return until;
    },
  };
}

function withinBounds(milliseconds: number): number {
  return Math.min(Math.max(0, milliseconds), maxQuotaMs);
}

/** A provider whose times are in the past is not asked at its full speed for that. */
function pauseAfter(again: number): number {
  return again === 0 ? 0 : Math.min(firstPauseMs * 4 ** (again - 1), maxPauseMs);
}

function standingOf({ closedUntil = 0, used = 0, resetsAt = 0 }: WindowState, now: number): QuotaStanding {
  if (closedUntil > now && closedUntil <= now + maxQuotaMs) return { type: "closed", until: closedUntil };
  const isClosing = used >= reservedFrom && resetsAt > now && resetsAt <= now + maxQuotaMs;
  return isClosing ? { type: "closing", until: resetsAt } : { type: "open" };
}

/** A window that was closed stays tight until a request has been answered in the next one. */
function isTight({ closedUntil, used = 0, resetsAt = 0 }: WindowState, now: number): boolean {
  return closedUntil !== undefined || (used >= tightFrom && resetsAt > now);
}

function isHeld({ turn }: WindowState, now: number): boolean {
  if (turn === undefined || now - turn.at > maxTurnMs) return false;
  return livenessOf(turn.process) !== "gone";
}

/** Total: a file that cannot be read says nothing. */
function readState(file: string): WindowState {
  let value: unknown;
  try {
    value = parseJson(readFileSync(file, "utf8"));
  } catch {
    return {};
  }
  if (!isRecord(value) || value["version"] !== 1) return {};
  const { closedUntil, refusedAgain, used, resetsAt, turn } = value;
  const process = isRecord(turn) ? toIdentity(turn["process"]) : undefined;
  return {
    ...(isTime(closedUntil) ? { closedUntil } : {}),
    ...(isTime(closedUntil) && isTime(refusedAgain) ? { refusedAgain } : {}),
    ...(isTime(used) && isTime(resetsAt) ? { used, resetsAt } : {}),
    ...(isRecord(turn) && process !== undefined && typeof turn["id"] === "string" && isTime(turn["at"])
      ? { turn: { id: turn["id"], at: turn["at"], process } }
      : {}),
  };
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}
