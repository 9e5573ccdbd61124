import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { errorCode } from "@retinue/base/foundation/file-error.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { Message } from "@retinue/core/conversation/message.ts";
import { shellAside } from "@retinue/core/kernel/agent-tree.ts";
import { projectPaths } from "@retinue/core/kernel/project/create-project.ts";
import {
  openStoredConversations,
  type StoredConversation,
  type StoredConversations,
} from "@retinue/core/kernel/project/stored-conversations.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { conversationEntries } from "./conversation-entries.ts";
import type { AgentEntry, SessionSummary } from "./terminal-session.ts";

/** The stored conversations of this folder. */
export interface SessionRecords extends Omit<StoredConversations, "list" | "search"> {
  /** The folder that holds them. */
  readonly transcripts: string;
  list(): Promise<readonly SessionSummary[]>;
  search(text: string): Promise<readonly SessionSummary[]>;
  /** Writes a conversation as Markdown, or the session with all its agents as a page where the file is named so. */
  writeExport(file: string, sessionId: string, messages: readonly Message[]): Promise<string>;
}

export function createSessionRecords(host: CommandContext["host"]): SessionRecords {
  const { transcripts, cwd } = projectPaths({ ...host, env: host.environment });
  const stored = openStoredConversations(transcripts, (text) => !text.startsWith(shellAside));
  return {
    ...stored,
    transcripts,
    list: async () => (await stored.list()).map(summaryOf),
    search: async (text) => (await stored.search(text)).map(summaryOf),
    async writeExport(file, sessionId, messages) {
      const isPage = /\.html?$/i.test(file);
      const target = resolve(cwd, file);
      await writeFile(target, isPage ? await sessionPage(host, sessionId) : markdown(messages), {
        flag: "wx",
      }).catch((error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error);
        const what =
          errorCode(error) === "EEXIST"
            ? `${target} already exists and was not changed.`
            : `The conversation was not written to ${target}: ${reason}.`;
        throw new RetinueError("not-exported", what, { advice: "Name another file." });
      });
      return target;
    },
  };
}

function summaryOf({ id, title, modified, messageCount, isOpen }: StoredConversation): SessionSummary {
  return { id, title, modified, messages: messageCount, isOpenElsewhere: isOpen };
}

/** The session with all its agents as a page of the studio in one file. */
async function sessionPage(host: CommandContext["host"], sessionId: string): Promise<string> {
  const [{ exportPage, loadPage }, { collectExport }, { openFolder }] = await Promise.all([
    import("../../studio/export-page.ts"),
    import("@retinue/core/kernel/live/collect-export.ts"),
    import("../../shared/open-project.ts"),
  ]);
  const source = await openFolder(host).sessions.inspect(sessionId);
  return exportPage(await collectExport(await source.load(), source), loadPage());
}

function markdown(messages: readonly Message[]): string {
  const parts = conversationEntries(messages)
    .map(exported)
    .filter((part) => part !== "");
  return `${parts.join("\n\n")}\n`;
}

function exported(entry: AgentEntry): string {
  switch (entry.type) {
    case "prompt":
      return `## Prompt\n\n${entry.text}`;
    case "text":
      return entry.text;
    case "call":
      return `\`${entry.call.tool}\` ${JSON.stringify(entry.call.input)}`;
    case "result":
      return `\`\`\`\n${entry.result.text.trimEnd()}\n\`\`\``;
    case "ended":
      return entry.text;
  }
}
