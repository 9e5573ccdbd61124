import type { CallIntent } from "../conversation/call-intent.ts";
import type { ToolResultBlock } from "../conversation/message.ts";
import type { RequestRecord } from "../conversation/request-record.ts";
import type { JournaledPlan } from "./journaled-plan.ts";
import type { TranscriptFacts } from "./transcript-facts.ts";

/**
 * What lines say that only this product writes, for those who find a run cut off. They are no part of the
 * conversation's tree: without `uuid`, viewers and the chain pass over them.
 */
type About = Pick<TranscriptFacts, "sessionId" | "agentId"> & { readonly timestamp: string };

/** Which calls an answer is about to make, and what repeating each would do. */
export function intentsLine(about: About, intents: readonly CallIntent[]) {
  const calls = intents.map(({ callId, tool, repeats }) => ({ id: callId, name: tool, repeats }));
  return { type: "retinue-intents", ...aboutPart(about), calls };
}

/** What the answer before this line was asked with. */
export function requestLine(about: About, request: RequestRecord) {
  return { type: "retinue-request", ...aboutPart(about), ...request };
}

/** The result of a call while others of the same answer still run. */
export function outcomeLine(
  about: About,
  {
    id,
    isError,
    content,
  }: { readonly id: string; readonly isError: boolean; readonly content: ToolResultBlock["content"] },
) {
  return { type: "retinue-outcome", ...aboutPart(about), id, isError, content };
}

/** What was decided for the run that begins here. */
export function planLine(about: About, plan: JournaledPlan) {
  return { type: "retinue-plan", ...aboutPart(about), plan };
}

/** Hooks are about to hear of the child's start or stop; written first, so that no crash makes them hear it twice. */
export function reportedLine(about: About, event: ReportedEvent) {
  return { type: "retinue-told", ...aboutPart(about), event };
}

/** `goes-on`: hooks refused its stop, so it will be reported again. */
export type ReportedEvent = "SubagentStart" | "SubagentStop" | "goes-on";

function aboutPart({ sessionId, agentId, timestamp }: About) {
  return { ...(agentId === undefined ? {} : { isSidechain: true, agentId }), sessionId, timestamp };
}
