// @io
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { errorCode } from "@retinue/base/foundation/file-error.ts";
import { quote } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import {
  type ApprovalQuestion,
  type ApprovalRecord,
  type GrantUse,
  grantEnd,
} from "@retinue/gate/grants/approval-record.ts";
import { isSessionId, sessionFiles } from "../../journal/session-files.ts";
import { answerQuestion, type GivenAnswer } from "./answer-question.ts";
import { type InboxEntry, type InboxFiles, openInboxFiles } from "./inbox-files.ts";

export type { ApprovalGrant, GrantScope } from "@retinue/gate/grants/approval-record.ts";

/**
 * A question with its answer. `waiting`: there is no answer yet. `allowed`: the grant still holds. Otherwise it says why
 * it can have no effect any more.
 */
export interface Approval {
  readonly state: "waiting" | "allowed" | "denied" | "revoked" | "expired" | "used up";
  readonly question: ApprovalQuestion;
  readonly answer?: ApprovalRecord;
  readonly revoked?: { readonly by: string; readonly at: number };
  readonly uses: readonly GrantUse[];
}

/** The approvals of sessions: listed, answered and revoked. */
export interface Approvals {
  /** Those that wait first, then the newest. */
  list(): readonly Approval[];
  /** Answers a question, by its id or the beginning of it. */
  answer(id: string, given: GivenAnswer, options: ApprovalAuthor & { readonly digest?: string }): Approval;
  /** Takes a grant back; what it has allowed before stays done. */
  revoke(id: string, options: ApprovalAuthor): Approval;
  find(id: string): Approval;
}

export interface ApprovalAuthor {
  readonly by: string;
  readonly via: string;
}

export interface FindApprovalsOptions {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Called with files and folders that do not count, and why. */
  readonly ignored?: ((message: string) => void) | undefined;
}

/** The approvals in these folders of transcripts. */
export function findApprovals(
  folders: () => readonly string[],
  { now, ignored }: FindApprovalsOptions,
): Approvals {
  const inboxes = (): readonly InboxFiles[] =>
    folders().flatMap((folder) =>
      namesIn(folder)
        .filter(isSessionId)
        .map((id) => skipUnsafe(openInboxFiles(sessionFiles(folder, id).approvals, { ignored }), ignored)),
    );
  const list = (): readonly Approval[] =>
    inboxes()
      .flatMap((files) => files.read())
      .map((entry) => describe(entry, now()))
      .toSorted((a, b) => rank(a) - rank(b) || b.question.at - a.question.at);
  const locate = (written: string): { readonly files: InboxFiles; readonly id: string } => {
    const all = inboxes().flatMap((files) => files.read().map(({ question: { id } }) => ({ files, id })));
    const found = all.filter(({ id }) => id === written || (written.length >= 4 && id.startsWith(written)));
    const [first, ...others] = found;
    if (first === undefined)
      throw new RetinueError("unknown-approval", `There is no question ${quote(written)}.`, {
        advice: "`retinue approvals` lists the waiting questions.",
      });
    if (others.length === 0) return first;
    throw new RetinueError("ambiguous-approval", `Several questions begin with ${quote(written)}.`, {
      advice: `Write more of the id: ${found.map(({ id }) => id).join(", ")}.`,
    });
  };
  const show = ({ files, id }: ReturnType<typeof locate>): Approval => {
    const entry = files.read().find(({ question }) => question.id === id);
    if (entry === undefined)
      throw new RetinueError("unknown-approval", `The question ${id} no longer exists.`);
    return describe(entry, now());
  };
  return {
    list,
    find: (written) => show(locate(written)),
    answer(written, given, options) {
      const found = locate(written);
      answerQuestion(found.files, found.id, { ...options, given, now: now() });
      return show(found);
    },
    revoke(written, { by }) {
      const found = locate(written);
      const { state, answer } = show(found);
      if (answer?.type !== "allow")
        throw new RetinueError(
          "nothing-granted",
          `The question ${found.id} is ${state}, so there is nothing to revoke.`,
        );
      found.files.revoke(found.id, by, now());
      return show(found);
    },
  };
}

/** The approvals of one session, those that wait first. */
export function readApprovals(
  directory: string,
  { now, ignored }: FindApprovalsOptions,
): readonly Approval[] {
  return skipUnsafe(openInboxFiles(directory, { ignored }), ignored)
    .read()
    .map((entry) => describe(entry, now()))
    .toSorted((a, b) => rank(a) - rank(b) || b.question.at - a.question.at);
}

/** A folder that others could have written to costs only itself. */
function skipUnsafe(files: InboxFiles, ignored: FindApprovalsOptions["ignored"]): InboxFiles {
  return {
    ...files,
    read() {
      try {
        return files.read();
      } catch (error) {
        if (!isRetinueError(error)) throw error;
        ignored?.(error.message);
        return [];
      }
    },
  };
}

/** Every folder of transcripts beside this one. */
export function siblingFolders(transcripts: string): readonly string[] {
  const projects = join(transcripts, "..");
  return namesIn(projects).map((name) => join(projects, name));
}

function describe(entry: InboxEntry, now: number): Approval {
  return { ...entry, state: stateOf(entry, now) };
}

function stateOf({ answer, revoked, uses }: InboxEntry, now: number): Approval["state"] {
  if (answer === undefined) return "waiting";
  if (answer.type === "deny") return "denied";
  const isRevoked = revoked !== undefined;
  const end = grantEnd(answer, { uses, isRevoked }, { now, usd: 0, run: "" });
  if (end !== undefined) return end === "spent" ? "used up" : end;
  return answer.scope === "call" && uses.length >= answer.agents.length ? "used up" : "allowed";
}

function rank({ state }: Approval): number {
  return ["waiting", "allowed"].indexOf(state) === -1 ? 2 : ["waiting", "allowed"].indexOf(state);
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (errorCode(error) === "ENOENT" || errorCode(error) === "ENOTDIR") return [];
    throw error;
  }
}
