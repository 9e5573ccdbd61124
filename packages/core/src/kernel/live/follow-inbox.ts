// @io
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { findSessions } from "../../journal/find-sessions.ts";
import { isSessionId, sessionFiles } from "../../journal/session-files.ts";
import { readApprovals } from "../approvals/find-approvals.ts";
import type { FollowOptions } from "./follow-session.ts";
import { findProjects, type StudioScope } from "./follow-sessions.ts";
import { type Asker, readAsker } from "./read-asker.ts";
import type { InboxQuestion, StudioQuestion } from "./session-update.ts";
import { studioQuestion } from "./studio-question.ts";
import { createRefresher, watchFolders } from "./watch-folders.ts";

/** The folder of a session's first question appears below the folders that are watched. */
const lookMs = 2000;
const maxAnswered = 50;

function nameOf(asker: Asker | undefined): Pick<Asker, "name"> {
  return asker?.name === undefined ? {} : { name: asker.name };
}

/** Sends the questions of all sessions, those that wait the longest first, and again when one of them changes. */
export function followInbox(
  scope: StudioScope,
  { send, onError }: FollowOptions<readonly InboxQuestion[]>,
): () => void {
  const titles = new Map<string, string>();
  // While it waits, an agent says nothing more.
  const askers = new Map<string, Promise<Asker>>();
  const withAskers = async (question: StudioQuestion, folder: string, sessionId: string) => {
    const files = sessionFiles(folder, sessionId);
    if (question.state !== "waiting") return question;
    const known = await Promise.all(
      question.places.map(({ agent }) => {
        const key = `${question.id} ${agent}`;
        const asker =
          askers.get(key) ??
          readAsker(files, agent === sessionId ? undefined : agent).catch((): Asker => ({}));
        askers.set(key, asker);
        return asker;
      }),
    );
    const said = known[0]?.said;
    return {
      ...question,
      places: question.places.map((place, at) => ({ ...place, ...nameOf(known[at]) })),
      ...(said === undefined ? {} : { said }),
    };
  };
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
        const place = { project, sessionId: id, title };
        for (const question of own) questions.push({ ...(await withAskers(question, folder, id)), ...place });
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
