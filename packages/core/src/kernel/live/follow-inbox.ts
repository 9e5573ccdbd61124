// @io
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { findSessions } from "../../journal/find-sessions.ts";
import { isSessionId, sessionFiles } from "../../journal/session-files.ts";
import { readApprovals } from "../approvals/find-approvals.ts";
import type { FollowOptions } from "./follow-session.ts";
import { findProjects, type StudioScope } from "./follow-sessions.ts";
import type { InboxQuestion } from "./session-update.ts";
import { studioQuestion } from "./studio-question.ts";
import { createRefresher, watchFolders } from "./watch-folders.ts";

/** The folder of a session's first question appears below the folders that are watched. */
const lookMs = 2000;
const maxAnswered = 50;

/** Sends the questions of all sessions, those that wait the longest first, and again when one of them changes. */
export function followInbox(
  scope: StudioScope,
  { send, onError }: FollowOptions<readonly InboxQuestion[]>,
): () => void {
  const titles = new Map<string, string>();
  let sent: string | undefined;
  const refresher = createRefresher(async () => {
    const questions: InboxQuestion[] = [];
    for (const project of await findProjects(scope)) {
      const folder = join(scope.projects, project);
      watch.add([{ path: folder }]);
      for (const id of await sessionsWithQuestions(folder)) {
        const { approvals } = sessionFiles(folder, id);
        watch.add([{ path: approvals }]);
        const found = readApprovals(approvals, { now: Date.now });
        if (found.length > 0 && !titles.has(id))
          for (const session of await findSessions(folder, { limit: 500 }))
            titles.set(session.id, session.title);
        const title = titles.get(id) ?? id;
        const own = await Promise.all(found.map(studioQuestion));
        questions.push(...own.map((question) => ({ ...question, project, sessionId: id, title })));
      }
    }
    // Those that wait in the order in which they were asked, then the newest of the others.
    const waiting = questions.filter(({ state }) => state === "waiting").toSorted((a, b) => a.at - b.at);
    const answered = questions
      .filter(({ state }) => state !== "waiting")
      .toSorted((a, b) => (b.answeredAt ?? 0) - (a.answeredAt ?? 0));
    const update: readonly InboxQuestion[] = [...waiting, ...answered.slice(0, maxAnswered)];
    const text = JSON.stringify(update);
    if (text !== sent) send(update);
    sent = text;
  }, onError);
  const watch = watchFolders([{ path: scope.projects }], refresher.request);
  const timer = setInterval(refresher.request, lookMs).unref();
  refresher.request();
  return () => {
    clearInterval(timer);
    watch.close();
    refresher.close();
  };
}

async function sessionsWithQuestions(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => isSessionId(name) && existsSync(sessionFiles(folder, name).approvals));
}
