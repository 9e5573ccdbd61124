// @io
import type { GivenAnswer } from "./answer-question.ts";
import type { Approval, Approvals } from "./find-approvals.ts";

/** What a program can do with the approvals of its folder's sessions. */
export interface RuntimeApprovals {
  /** Questions that wait first, then the newest. */
  list(): Promise<readonly Approval[]>;
  /** Answers a question, by id or the beginning of it, also one of a session that another process runs. */
  answer(id: string, given: GivenAnswer, options?: { readonly by?: string }): Promise<Approval>;
  /** Takes a grant back. */
  revoke(id: string, options?: { readonly by?: string }): Promise<Approval>;
}

/** What it needs is loaded with the first call. */
export function runtimeApprovals(findTranscripts: () => Promise<string>): RuntimeApprovals {
  const open = async (): Promise<Approvals> => {
    const [{ findApprovals }, transcripts] = await Promise.all([
      import("./find-approvals.ts"),
      findTranscripts(),
    ]);
    return findApprovals(() => [transcripts], { now: Date.now });
  };
  return {
    list: async () => (await open()).list(),
    answer: async (id, given, { by = "program" } = {}) =>
      (await open()).answer(id, given, { by, via: "program" }),
    revoke: async (id, { by = "program" } = {}) => (await open()).revoke(id, { by, via: "program" }),
  };
}
