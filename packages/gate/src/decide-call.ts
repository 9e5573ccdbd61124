import type { PermissionRequest } from "./call-facts.ts";
import { type DecideOptions, type Decision, decide } from "./decide.ts";
import { type CallToJudge, gatherCallFacts } from "./gather-call-facts.ts";
import type { PermissionPolicy } from "./permission-policy.ts";

/** Where a call is made, and what else its decision depends on. */
export interface GateOptions extends DecideOptions {
  /** The folder the call starts in; absolute and real. */
  readonly directory: string;
  /** Where its commands look for programs; absent means that of this process. */
  readonly searchPath?: string | undefined;
}

/** A decision with the facts it rests on, which suggestions and seals are made from. */
export interface DecidedCall extends Decision {
  readonly request: PermissionRequest;
}

/** Decides whether a call may run: finds out once what it would touch, then decides. Never rejects. */
export async function decideCall(
  call: CallToJudge,
  policy: PermissionPolicy,
  { directory, searchPath, ...options }: GateOptions,
): Promise<DecidedCall> {
  const request = await gatherCallFacts(call, { policy, directory, searchPath });
  return { ...decide(request, policy, options), request };
}
