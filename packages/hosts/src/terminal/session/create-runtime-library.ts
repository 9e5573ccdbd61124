import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { TreeFacts } from "@retinue/core/kernel/agent-tree.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import type { FileCheckpoints } from "../../shared/file-checkpoints.ts";
import { conversationEntries } from "./conversation-entries.ts";
import { readOnly } from "./session-questions.ts";
import type { SessionRecords } from "./session-records.ts";
import type { SessionLibrary } from "./terminal-session.ts";
import type { WatchedConversation } from "./watched-conversation.ts";

export interface LibrarySource {
  readonly context: CommandContext;
  /** The conversation that is open here, or the one of another process that is watched. */
  readonly session: () => TreeFacts | undefined;
  readonly watched: () => WatchedConversation | undefined;
  readonly mode: () => string;
  readonly checkpoints: () => FileCheckpoints | undefined;
  /** Aborted when the terminal is closed. */
  readonly signal: AbortSignal;
  /** Settles when no conversation is being opened. */
  readonly ready: () => Promise<unknown>;
}

/** What the terminal looks up, from the runtime and from disk. What makes it is loaded when it is first asked for. */
export function createRuntimeLibrary(source: LibrarySource): SessionLibrary {
  const { context } = source;
  const opened = async (): Promise<TreeFacts> => {
    await source.ready();
    return openedOf(source);
  };
  const pages = async () => {
    const session = await opened();
    const { createSessionPages } = await import("./session-pages.ts");
    return createSessionPages({ context, session, mode: source.mode() });
  };
  const parked = () => import("./list-parked.ts");
  const records = () => loadRecords(context);
  return {
    async commands() {
      if (source.watched() !== undefined) return [];
      return openedOf(source)
        .skills.filter(({ userInvocable }) => userInvocable)
        .map(({ name, description, argumentHint }) => ({
          name,
          description,
          argumentHint,
        }));
    },
    models: async () => (await pages()).models(),
    async managed(topic) {
      const [{ listManaged }] = await Promise.all([import("./manage-project.ts"), source.ready()]);
      return listManaged(context, topic, source.session()?.mcpServers() ?? []);
    },
    async files() {
      const { findProjectFiles } = await import("@retinue/core/kernel/project/find-project-files.ts");
      return findProjectFiles(context.host.cwd, source.signal);
    },
    report: async (topic, words) => (await pages()).report(topic, words),
    history: async () => (await records()).promptHistory(),
    async transcript() {
      return source.watched()?.entries() ?? conversationEntries(openedOf(source).messages());
    },
    async prompts() {
      const prompts = await (await records()).prompts((await opened()).plan.sessionId);
      const counts = source.checkpoints()?.counts();
      return prompts.map((prompt) => ({ ...prompt, files: counts?.get(prompt.id) ?? 0 }));
    },
    async changedSince(promptId) {
      const found = await source.checkpoints()?.rewind(promptId, true);
      if (found?.canRewind !== true) return { files: [], insertions: 0, deletions: 0 };
      return { files: found.filesChanged, insertions: found.insertions, deletions: found.deletions };
    },
    async exportTo(file) {
      const { plan, messages } = await opened();
      return (await records()).writeExport(file, plan.sessionId, messages());
    },
    sessions: async () => (await records()).list(),
    async deleteSession(sessionId) {
      if (sessionId === source.session()?.plan.sessionId)
        throw new RetinueError("session-open", "This conversation is open; leave it first with /clear.");
      await (await records()).remove(sessionId);
    },
    parked: async (options) => (await parked()).listParked(context, options),
    answerParked: async (id, answer) => (await parked()).answerParked(context, id, answer),
    revokeGrant: async (id) => (await parked()).revokeGrant(context, id),
  };
}

export async function loadRecords({ host }: CommandContext): Promise<SessionRecords> {
  return (await import("./session-records.ts")).createSessionRecords(host);
}

/** The conversation that is open here; throws where there is none. */
export function openedOf({ session, watched }: Pick<LibrarySource, "session" | "watched">): TreeFacts {
  const opened = session();
  if (opened !== undefined) return opened;
  if (watched() !== undefined) throw new RetinueError("session-open", readOnly);
  throw new RetinueError("session-opening", "The conversation is still being opened.");
}
