import type { ConversationEntry } from "../../inspection/conversation-fold.ts";
import type { Inspection } from "../../inspection/inspection.ts";
import { bounded } from "../../inspection/read-answer.ts";
import { createConversationSource, readParts, type SessionPlace, summariesOf } from "./follow-session.ts";
import { overviewOf } from "./session-overview.ts";
import type { AgentUpdate, ExportedSession } from "./session-update.ts";
import { workflowView } from "./workflow-view.ts";

/** Reads the conversations of all agents that an inspection shows. */
export async function collectExport(inspection: Inspection, place: SessionPlace): Promise<ExportedSession> {
  const agents: [string, AgentUpdate][] = [];
  for (const { id } of inspection.agents) {
    const conversation = await createConversationSource({ ...place, agentId: id }).load({ all: true });
    agents.push([id, conversation]);
  }
  const parts = await readParts(place);
  return fitting({
    session: { ...overviewOf(inspection), ...summariesOf(parts) },
    agents: Object.fromEntries(agents),
    merge: parts.merge,
    ...(parts.runs.length === 0 ? {} : { runs: parts.runs.map(workflowView) }),
  });
}

/** More than this takes browsers long to open. */
const maxCharacters = 24_000_000;
/** Texts are cut to these lengths, one after the other, until the whole is short enough; then entries are left out. */
const textLimits = [10_000, 2000, 400];
const keptEntries = [200, 40];

/** The session, cut where it is too long for one file; what was cut is in its notes. */
export function fitting(whole: ExportedSession, limit = maxCharacters): ExportedSession {
  let fitted = whole;
  for (const length of textLimits) {
    if (JSON.stringify(fitted).length <= limit) return fitted;
    fitted = withNote(
      changeAgents(whole, (agent) => ({
        ...agent,
        entries: agent.entries.map(([at, entry]) => [at, shortened(entry, length)]),
      })),
      `To keep this file small, texts of more than ${length} characters are cut.`,
    );
  }
  for (const kept of keptEntries) {
    if (JSON.stringify(fitted).length <= limit) return fitted;
    const shorter = changeAgents(fitted, (agent) => newest(agent, kept));
    fitted = withNote(
      shorter,
      `To keep this file small, only the newest ${kept} entries of each agent are included.`,
    );
  }
  return fitted;
}

function changeAgents(whole: ExportedSession, change: (agent: AgentUpdate) => AgentUpdate): ExportedSession {
  const agents = Object.entries(whole.agents).map(([id, agent]) => [id, change(agent)]);
  return { ...whole, agents: Object.fromEntries(agents) };
}

function withNote(whole: ExportedSession, note: string): ExportedSession {
  return { ...whole, session: { ...whole.session, notes: [...whole.session.notes, note] } };
}

function newest(agent: AgentUpdate, kept: number): AgentUpdate {
  const from = Math.max(agent.from, agent.count - kept);
  return { ...agent, from, entries: agent.entries.filter(([at]) => at >= from) };
}

function shortened(entry: ConversationEntry, limit: number): ConversationEntry {
  if (entry.type === "note" || entry.type === "turn") return entry;
  if (entry.type !== "call") return { ...entry, text: bounded(entry.text, limit) };
  const { edits, result } = entry;
  return {
    ...entry,
    input: bounded(entry.input, limit),
    ...(edits === undefined
      ? {}
      : {
          edits: edits.map((edit) => ({
            ...edit,
            before: bounded(edit.before, limit),
            after: bounded(edit.after, limit),
          })),
        }),
    ...(result === undefined ? {} : { result: bounded(result, limit) }),
  };
}
