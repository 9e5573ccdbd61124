import { isRecord } from "../../foundation/json-record.ts";
import { foldersBelow, type ListedFiles, type ListedFolder } from "./listed-files.ts";
import { callIfOffered, type OfflineCall } from "./offline-call.ts";
import { callsOf, type FinishedCall, type OfflineConversation } from "./offline-conversation.ts";
import { byText } from "./read-listing.ts";

const childrenConcurrency = 3;

/** The tool that starts child agents, if one is offered in the shape we know. */
export function spawnToolName({ tools }: OfflineConversation): string | undefined {
  return ["Agent", "Task"].find((name) => {
    const fields = tools.get(name)?.inputSchema["properties"];
    return (
      isRecord(fields) &&
      ["description", "prompt", "subagent_type"].every((key) => Object.hasOwn(fields, key))
    );
  });
}

/** One Explore child for each of the largest folders. A prompt that names a folder is never handed on again. */
export function exploreCalls(conversation: OfflineConversation, files: ListedFiles): readonly OfflineCall[] {
  const tool = spawnToolName(conversation);
  if (tool === undefined) return [];
  return foldersToExplore(files).flatMap(({ path }) =>
    callIfOffered(conversation, tool, {
      description: `Map ${path}`,
      prompt: `Map the folder \`${path}\`: which files and folders it holds, what they are for, and where to start reading. Be quick, and change nothing.`,
      subagent_type: "Explore",
    }),
  );
}

/** After the others are back, one Plan child for an order to read in. */
export function planCalls(conversation: OfflineConversation, files: ListedFiles): readonly OfflineCall[] {
  const tool = spawnToolName(conversation);
  const back = childrenOf(conversation, "Explore").filter(({ isError }) => !isError);
  if (tool === undefined || back.length === 0 || childrenOf(conversation, "Plan").length > 0) return [];
  const largest = foldersToExplore(files)[0]?.path ?? ".";
  const explored = back.map(({ input }) => String(input["description"]));
  return callIfOffered(conversation, tool, {
    description: "Plan a first reading",
    prompt: `Plan in which order a newcomer should read the folder \`${largest}\`: name the files, the entry points first, and say why. Already looked at: ${explored.join(", ")}. Change nothing.`,
    subagent_type: "Plan",
  });
}

export function childrenOf(conversation: OfflineConversation, type: string): readonly FinishedCall[] {
  return ["Agent", "Task"]
    .flatMap((name) => callsOf(conversation, name))
    .filter(({ input }) => input["subagent_type"] === type);
}

/** Where everything lies in one or two folders, the largest is looked at by its parts. */
function foldersToExplore(files: ListedFiles): readonly ListedFolder[] {
  const top = foldersBelow(files).filter(({ path }) => !path.startsWith("."));
  const largest = top[0];
  if (top.length >= childrenConcurrency || largest === undefined) return top.slice(0, childrenConcurrency);
  const parts = foldersBelow(files, largest.path);
  if (parts.length === 0) return top;
  return [...parts, ...top.slice(1)]
    .toSorted((a, b) => b.files.length - a.files.length || byText(a.path, b.path))
    .slice(0, childrenConcurrency);
}
