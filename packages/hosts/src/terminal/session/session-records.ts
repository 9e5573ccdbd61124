import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
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
  writeExport(file: string, messages: readonly Message[]): Promise<string>;
}

export function createSessionRecords(host: CommandContext["host"]): SessionRecords {
  const { transcripts, cwd } = projectPaths({ ...host, env: host.environment });
  const stored = openStoredConversations(transcripts, (text) => !text.startsWith(shellAside));
  return {
    ...stored,
    transcripts,
    list: async () => (await stored.list()).map(summaryOf),
    search: async (text) => (await stored.search(text)).map(summaryOf),
    writeExport: (file, messages) => writeExport(resolve(cwd, file), messages),
  };
}

function summaryOf({ id, title, modified, messageCount, isOpen }: StoredConversation): SessionSummary {
  return { id, title, modified, messages: messageCount, isOpenElsewhere: isOpen };
}

async function writeExport(target: string, messages: readonly Message[]): Promise<string> {
  const text = conversationEntries(messages)
    .map(exported)
    .filter((part) => part !== "")
    .join("\n\n");
  await writeFile(target, `${text}\n`, { flag: "wx" }).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    throw new RetinueError("not-exported", `The conversation was not written to ${target}: ${reason}.`, {
      advice: "Name another file.",
    });
  });
  return target;
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
