import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { interruptedStatus } from "./interrupted-outcome.ts";

/** What a main conversation has heard of its children. */
export interface ReportedAgents {
  /** When it was last reported how a child is, in milliseconds since 1970. */
  readonly reportedAt: ReadonlyMap<string, number>;
  /** Those that it was asked to continue without, and by the result of which call. */
  readonly launched: ReadonlyMap<string, string>;
}

/** The same, with the calls that were cut off and are now answered with what their child handed in. */
export interface HeardAgents extends ReportedAgents {
  readonly answered: ReadonlySet<string>;
}

/** Within a notice the opening tag is defused, so what a child says of another is no notice. */
const noticePattern = /<task-notification>\s*<task-id>([A-Za-z0-9_-]{1,64})<\/task-id>/g;

/** Total: any lines will do. */
export function readReportedAgents(records: readonly JsonRecord[]): ReportedAgents {
  const reportedAt = new Map<string, number>();
  const launched = new Map<string, string>();
  for (const record of records) {
    if (record.type !== "user") continue;
    const { toolUseResult: result, timestamp } = record;
    const at = typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
    if (Number.isNaN(at)) continue;
    if (isRecord(result) && typeof result.agentId === "string") {
      // Any other result of such a call is what the child handed in; one that was cut off is informed of when it is found again.
      if (result.status === "async_launched") launched.set(result.agentId, answeredCall(record));
      else if (result.status !== interruptedStatus) reportedAt.set(result.agentId, at);
    }
    for (const [, id = ""] of textIn(record).matchAll(noticePattern)) reportedAt.set(id, at);
  }
  return { reportedAt, launched };
}

function answeredCall({ message }: JsonRecord): string {
  const [block] = isRecord(message) && Array.isArray(message.content) ? message.content : [];
  return isRecord(block) && typeof block.tool_use_id === "string" ? block.tool_use_id : "";
}

/** Only what was said to the agent; results of calls are others' words. */
function textIn({ message }: JsonRecord): string {
  const content = isRecord(message) ? message.content : undefined;
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .flatMap((block: unknown) =>
      isRecord(block) && block.type === "text" && typeof block.text === "string" ? [block.text] : [],
    )
    .join("\n");
}
