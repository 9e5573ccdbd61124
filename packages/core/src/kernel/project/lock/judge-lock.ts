import { canonicalJson } from "@retinue/base/foundation/canonical-json.ts";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { type LockEntry, lockName } from "@retinue/config/lock/lock-file.ts";
import { createPaths } from "@retinue/config/settings/paths.ts";
import { createTrustStore, type TrustAnswer, type TrustStore } from "@retinue/config/settings/trust-store.ts";
import type { LockDifference } from "./compare-lock.ts";
import type { LockedParts, LockPlace } from "./gather-parts.ts";
import { lockFileOf, readLockFile } from "./read-lock-file.ts";

/** How the configuration as it is now compares with a lock. */
export type LockJudgement =
  | { readonly type: "none"; readonly file: string }
  | { readonly type: "broken"; readonly file: string; readonly diagnostics: readonly Diagnostic[] }
  | {
      readonly type: "compared";
      readonly file: string;
      readonly differences: readonly LockDifference[];
      /** One for each difference that has to be accepted. */
      readonly hashes: readonly string[];
      readonly missingPlugins: readonly string[];
      readonly diagnostics: readonly Diagnostic[];
    };

/** Compares a folder with the lock of its project; other folders of the project are left out, unless that is wanted. */
export async function judgeLock(
  place: LockPlace,
  { isWhole = false }: { readonly isWhole?: boolean } = {},
): Promise<LockJudgement> {
  const file = await lockFileOf(place.cwd);
  const reading = await readLockFile(file);
  if (reading === undefined) return { type: "none", file };
  const { entries, diagnostics } = reading;
  if (entries === undefined) return { type: "broken", file, diagnostics };
  const { gatherAllParts, gatherParts } = await import("./gather-parts.ts");
  const parts = isWhole ? await gatherAllParts(place) : await gatherParts(place);
  return { type: "compared", file, ...(await compareParts(entries, parts, { place, file, isWhole })) };
}

async function compareParts(
  locked: readonly LockEntry[],
  { entries, others, missingPlugins, diagnostics }: LockedParts,
  { place, file, isWhole }: { readonly place: LockPlace; readonly file: string; readonly isWhole: boolean },
) {
  const [{ compareLock, matters }, { folderOf, isAbove, isOfPlugins }, { hashOf }] = await Promise.all([
    import("./compare-lock.ts"),
    import("./gather-parts.ts"),
    import("./lock-entries.ts"),
  ]);
  const isAbsent = isOfPlugins(missingPlugins);
  const before = locked.filter(
    (entry) => !isAbsent(entry) && (isWhole || isAbove(folderOf(entry.file), { cwd: place.cwd, lock: file })),
  );
  const differences = compareLock({ before, after: entries, stillThere: others });
  const now = new Map(entries.map((entry) => [`${entry.kind} ${entry.file} ${entry.name}`, entry]));
  const hashes = differences.filter(matters).map(({ kind, file: at, name, status }) => {
    const { text: _text, ...entry } = now.get(`${kind} ${at} ${name}`) ?? { status };
    return hashOf(canonicalJson([kind, at, name, entry]));
  });
  return { differences, hashes, missingPlugins, diagnostics };
}

/**
 * Trust in a folder as it is stored, which holds only as long as the files fit the lock of the project, where it has one or had one
 * before. A session notes the lock that it meets.
 */
export async function findTrust(
  place: LockPlace,
  { isSession = false }: { readonly isSession?: boolean } = {},
): Promise<TrustAnswer> {
  const store = trustStoreOf(place);
  const answer = await store.isTrusted(place.cwd);
  if (!answer.trusted) return answer;
  const judgement = await judgeLock(place);
  const why = refusalOf(judgement, answer);
  if (why !== undefined) return { trusted: false, folder: answer.folder, why, changed: why };
  // Where it cannot be noted, the lock counts all the same while it is there.
  if (isSession && judgement.type === "compared" && answer.hasLock !== true) await store.noteLock(place.cwd);
  return answer;
}

/** Notes in a trusted folder that it has a lock from now on. */
export async function noteLock(place: LockPlace): Promise<void> {
  const store = trustStoreOf(place);
  const answer = await store.isTrusted(place.cwd);
  if (answer.trusted && answer.hasLock !== true) await store.noteLock(place.cwd);
}

function trustStoreOf({ cwd, home, env: environment, platform }: LockPlace): TrustStore {
  const { stateFile } = createPaths({ cwd, home, environment, platform });
  return createTrustStore({ stateFile, home });
}

/** Why the files of a folder are not those that were accepted; undefined where they are. */
function refusalOf(
  judgement: LockJudgement,
  { accepted = [], hasLock = false }: Extract<TrustAnswer, { readonly trusted: true }>,
): string | undefined {
  if (judgement.type === "none") return hasLock ? `its ${lockName} is gone` : undefined;
  if (judgement.type === "broken")
    return `${lockName} cannot be used: ${judgement.diagnostics[0]?.message ?? "it is broken"}`;
  const open = judgement.hashes.filter((hash) => !accepted.includes(hash));
  if (open.length === 0) return undefined;
  const parts = judgement.differences
    .filter(({ status }) => status !== "formatted")
    .map(({ kind, name, status }) => `${kind} ${name} ${status}`);
  const shown = parts.slice(0, 3).join(", ");
  const more = parts.length > 3 ? ` and ${parts.length - 3} more` : "";
  return `its files do not match ${lockName} (${shown}${more})`;
}
