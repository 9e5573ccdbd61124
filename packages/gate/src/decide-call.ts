import type { PermissionRequest } from "./call-facts.ts";
import { type DecideOptions, type Decision, decide } from "./decide.ts";
import { type CallToJudge, gatherCallFacts } from "./gather-call-facts.ts";
import { repositoryOptions } from "./gather-shell-facts.ts";
import type { AskOptions } from "./git/ask-repository.ts";
import { createRepositoryAsker, type RepositoryAsker } from "./git/create-repository-asker.ts";
import type { PermissionPolicy } from "./permission-policy.ts";

/** Where a call is made, and what else its decision depends on. */
export interface GateOptions extends DecideOptions {
  /** The folder the call starts in; absolute and real. */
  readonly directory: string;
  /** Where its commands look for programs; absent means that of this process. */
  readonly searchPath?: string | undefined;
  /** What earlier calls found out and still holds. */
  readonly memory?: CallMemory | undefined;
}

/** What is remembered from call to call of an agent: what git said of folders, as long as no file that decides it has changed. */
export interface CallMemory {
  askerFor(options: AskOptions): RepositoryAsker;
}

export function createCallMemory(): CallMemory {
  let last: { readonly key: string; readonly ask: RepositoryAsker } | undefined;
  return {
    askerFor(options) {
      const key = JSON.stringify(options);
      if (last?.key !== key) last = { key, ask: createRepositoryAsker(options) };
      return last.ask;
    },
  };
}

/** A decision with the facts it rests on, which suggestions and seals are made from. */
export interface DecidedCall extends Decision {
  readonly request: PermissionRequest;
}

/** Decides whether a call may run: finds out once what it would touch, then decides. Never rejects. */
export async function decideCall(
  call: CallToJudge,
  policy: PermissionPolicy,
  { directory, searchPath, memory, ...options }: GateOptions,
): Promise<DecidedCall> {
  const askRepository = memory?.askerFor(repositoryOptions({ home: policy.home, policy, searchPath }));
  const request = await gatherCallFacts(call, { policy, directory, searchPath, askRepository });
  return { ...decide(request, policy, options), request };
}
