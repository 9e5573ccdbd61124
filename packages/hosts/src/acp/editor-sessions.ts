import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ListSessionsResponse } from "@agentclientprotocol/sdk";
import { projectPaths } from "@retinue/core/kernel/project/create-project.ts";
import { openStoredConversations } from "@retinue/core/kernel/project/stored-conversations.ts";
import type { CliHost } from "../shared/cli-host.ts";

const pageSize = 100;

/** The stored sessions of a folder, or of all folders, the newest first; `cursor` is where the next page begins. */
export async function listEditorSessions(
  host: CliHost,
  { cwd, cursor }: { readonly cwd?: string | null | undefined; readonly cursor?: string | null | undefined },
): Promise<ListSessionsResponse> {
  const folders = typeof cwd === "string" ? [transcriptsOf({ ...host, cwd })] : await transcriptFolders(host);
  const found = await Promise.all(folders.map((folder) => openStoredConversations(folder).list()));
  const sessions = found
    .flat()
    .toSorted((a, b) => b.modified - a.modified)
    .flatMap(({ id, title, modified, cwd: own = cwd }) =>
      typeof own === "string"
        ? [{ sessionId: id, cwd: own, title, updatedAt: new Date(modified).toISOString() }]
        : [],
    );
  const from = Math.max(0, Number.parseInt(cursor ?? "0", 10) || 0);
  const next = from + pageSize;
  return {
    sessions: sessions.slice(from, next),
    ...(next < sessions.length ? { nextCursor: String(next) } : {}),
  };
}

/** Deletes a session with its agents, in whichever folder it worked; one that is gone is deleted already. */
export async function deleteEditorSession(host: CliHost, sessionId: string): Promise<void> {
  for (const folder of await transcriptFolders(host)) {
    const names = await readdir(folder).catch((): readonly string[] => []);
    if (names.includes(`${sessionId}.jsonl`)) await openStoredConversations(folder).remove(sessionId);
  }
}

function transcriptsOf(host: CliHost): string {
  return projectPaths({ ...host, env: host.environment }).transcripts;
}

async function transcriptFolders(host: CliHost): Promise<readonly string[]> {
  const projects = dirname(transcriptsOf(host));
  const entries = await readdir(projects, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(projects, name));
}
