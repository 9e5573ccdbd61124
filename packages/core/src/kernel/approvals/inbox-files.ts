// @io
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  type FSWatcher,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  watch,
} from "node:fs";
import { join } from "node:path";
import { errorCode, fileError } from "@retinue/base/foundation/file-error.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { createWholeFile, replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import {
  type ApprovalQuestion,
  type ApprovalRecord,
  type GrantUse,
  readAnswer,
  readQuestion,
  readUse,
} from "@retinue/gate/grants/approval-record.ts";

/** A question with everything that belongs to it. */
export interface InboxEntry {
  readonly question: ApprovalQuestion;
  readonly answer?: ApprovalRecord;
  readonly revoked?: { readonly by: string; readonly at: number };
  readonly uses: readonly GrantUse[];
}

/** The approvals of one session on disk: questions, answers, uses and revocations, one file each. */
export interface InboxFiles {
  readonly directory: string;
  /** Everything there is now; files that do not count are reported once. */
  read(): readonly InboxEntry[];
  putQuestion(question: ApprovalQuestion): void;
  /** False where another answer is there already, which counts. */
  putAnswer(answer: ApprovalRecord): boolean;
  /** False where another process took this number meanwhile. */
  putUse(use: GrantUse, number: number): boolean;
  revoke(id: string, by: string, at: number): void;
  /** Takes a question away that nothing waits for any more. */
  remove(id: string): void;
}

export interface InboxFileOptions {
  /** Called with what was left out, and why. */
  readonly ignored?: ((message: string) => void) | undefined;
}

/** A new id for a question. */
export function newQuestionId(): string {
  return randomBytes(6).toString("hex");
}

/** Makes the folder for this user alone where it is missing. */
export function openInboxFiles(directory: string, { ignored }: InboxFileOptions = {}): InboxFiles {
  const reported = new Set<string>();
  const ignore = (name: string, why: string): undefined => {
    if (!reported.has(name)) ignored?.(`${join(directory, name)} was ignored: ${why}.`);
    reported.add(name);
    return undefined;
  };
  const read = (): readonly InboxEntry[] => readEntries(directory, ignore);
  const place = (kind: string, id: string): string => join(directory, `${kind}-${id}.json`);
  const write = (file: string, value: object): void => {
    makeOwnFolder(directory);
    replaceWholeFile(file, textOf(value), { durable: true });
  };
  return {
    directory,
    read,
    putQuestion: (question) => write(place("q", question.id), question),
    putAnswer(answer) {
      makeOwnFolder(directory);
      const file = place("a", answer.question);
      if (createWholeFile(file, textOf(answer), { durable: true }) === "created") return true;
      const known = read().find(({ question }) => question.id === answer.question);
      // What is there does not count, so it must not keep a real answer away.
      if (known?.answer !== undefined) return false;
      write(file, answer);
      return true;
    },
    putUse(use, number) {
      makeOwnFolder(directory);
      const file = place("u", `${use.grant}-${number}`);
      return createWholeFile(file, textOf(use), { durable: true }) === "created";
    },
    revoke: (id, by, at) => write(place("r", id), { version: 1, question: id, by, at }),
    remove: (id) => rmSync(place("q", id), { force: true }),
  };
}

/** Every question with its answer and uses; files that do not count are reported by name. */
function readEntries(
  directory: string,
  ignore: (name: string, why: string) => undefined,
): readonly InboxEntry[] {
  const load = (name: string): unknown => {
    const read = readOwnFile(join(directory, name));
    return read.type === "refused" ? ignore(name, read.reason) : read.value;
  };
  const names = listOwnFolder(directory);
  const uses = groupUses(names.filter((name) => name.startsWith("u-")).map((name) => readUse(load(name))));
  const has = new Set(names);
  return names.flatMap((name): InboxEntry[] => {
    const id = /^q-([0-9a-f]{12})\.json$/.exec(name)?.[1];
    if (id === undefined) return [];
    const question = readQuestion(load(name));
    if (question?.id !== id) return ignore(name, "it is not a question of this version") ?? [];
    const answer = has.has(`a-${id}.json`) ? answerTo(question, load(`a-${id}.json`)) : undefined;
    if (typeof answer === "string") ignore(`a-${id}.json`, answer);
    const revoked = has.has(`r-${id}.json`) ? readRevocation(load(`r-${id}.json`)) : undefined;
    return [
      {
        question,
        ...(answer === undefined || typeof answer === "string" ? {} : { answer }),
        revoked,
        uses: uses.get(id) ?? [],
      },
    ];
  });
}

/** The answer, or why it does not count. */
function answerTo(question: ApprovalQuestion, value: unknown): ApprovalRecord | string {
  const answer = readAnswer(value);
  if (answer === undefined) return "it is not an answer of this version";
  if (answer.question !== question.id) return "it answers another question";
  return answer.digest === question.digest ? answer : "it was given for a different call";
}

function readRevocation(value: unknown): InboxEntry["revoked"] {
  // Taking something back needs no more than the file: what cannot be read still takes it back.
  const record = isRecord(value) ? value : {};
  const { by, at } = record;
  return { by: typeof by === "string" ? by : "somebody", at: typeof at === "number" ? at : 0 };
}

function groupUses(uses: readonly (GrantUse | undefined)[]): ReadonlyMap<string, readonly GrantUse[]> {
  const groups = new Map<string, GrantUse[]>();
  for (const use of uses) {
    if (use === undefined) continue;
    groups.set(use.grant, [...(groups.get(use.grant) ?? []), use]);
  }
  return groups;
}

function textOf(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

/** Who may have written a file or folder besides this user; undefined where there is no such user. */
function foreignWriter({ uid, mode }: { readonly uid: number; readonly mode: number }): string | undefined {
  const own = process.getuid?.();
  if (own === undefined) return undefined;
  if (uid !== own) return "it belongs to another user";
  return (mode & 0o022) === 0 ? undefined : "other users may write to it";
}

function makeOwnFolder(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw fileError("make", directory, error);
  }
  listOwnFolder(directory);
}

/** The names in the folder; a folder that others could have written to is an error, a missing one is empty. */
function listOwnFolder(directory: string): readonly string[] {
  try {
    const facts = lstatSync(directory);
    const foreign = facts.isDirectory() ? foreignWriter(facts) : "it is not a folder";
    if (foreign !== undefined)
      throw new RetinueError("unsafe-inbox", `The approvals in ${directory} are ignored: ${foreign}.`, {
        advice: "Make yourself the owner of the folder and set its mode to 700, or remove it.",
      });
    return readdirSync(directory).toSorted();
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    throw error;
  }
}

const maxBytes = 4_000_000;

/** The JSON of a plain file that this user alone can have written; links are not followed. */
function readOwnFile(
  file: string,
):
  | { readonly type: "read"; readonly value: unknown }
  | { readonly type: "refused"; readonly reason: string } {
  let descriptor: number;
  try {
    // Without O_NONBLOCK a pipe in the place of a file would wait for ever.
    descriptor = openSync(
      file,
      constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0),
    );
  } catch (error) {
    return { type: "refused", reason: `it cannot be opened (${errorCode(error) ?? "unknown"})` };
  }
  try {
    const facts = fstatSync(descriptor);
    if (!facts.isFile()) return { type: "refused", reason: "it is not a plain file" };
    const foreign = foreignWriter(facts);
    if (foreign !== undefined) return { type: "refused", reason: foreign };
    if (facts.size > maxBytes) return { type: "refused", reason: "it is too large" };
    return { type: "read", value: JSON.parse(readFileSync(descriptor, "utf8")) };
  } catch {
    return { type: "refused", reason: "it is not JSON" };
  } finally {
    closeSync(descriptor);
  }
}

/** Waits for changes in a folder; the operating system reports them, nothing is polled. */
export interface FolderWatch extends Disposable {
  /** Resolves with the next change after this call. Rejects when the folder cannot be watched any more. */
  changed(): Promise<void>;
}

/** The folder must be there. Watches while a caller waits. */
export function watchFolder(directory: string): FolderWatch {
  let next = Promise.withResolvers<void>();
  let watcher: FSWatcher | undefined;
  // A rejection that nothing waits for is no error.
  next.promise.catch(() => undefined);
  const fail = (error: unknown): void => {
    const why = error instanceof Error ? error.message : String(error);
    next.reject(
      new RetinueError("cannot-watch", `The approvals in ${directory} cannot be watched: ${why}.`, {
        advice: "On Linux, raise fs.inotify.max_user_watches or fs.inotify.max_user_instances.",
        cause: error,
      }),
    );
  };
  return {
    changed() {
      if (watcher === undefined) {
        try {
          watcher = watch(directory, () => {
            const reached = next;
            next = Promise.withResolvers<void>();
            next.promise.catch(() => undefined);
            reached.resolve();
          });
          watcher.on("error", fail);
        } catch (error) {
          fail(error);
        }
      }
      return next.promise;
    },
    [Symbol.dispose]() {
      watcher?.close();
      watcher = undefined;
    },
  };
}
