import { callIfOffered, maxOfflineCalls, type OfflineCall, type OfflineStep } from "./offline-call.ts";
import { callsOf, type OfflineConversation } from "./offline-conversation.ts";
import { childrenOf, exploreCalls, planCalls, spawnToolName } from "./offline-delegation.ts";
import { filesDirectlyIn, type ListedFiles, listedFiles } from "./offline-files.ts";
import { manifestNames } from "./offline-manifests.ts";
import { mapReport } from "./offline-map-report.ts";
import { offlineAnswer } from "./offline-texts.ts";
import { readCountRemark } from "./offline-tool-results.ts";

/** How many files one look at their sizes lists; more would not fit into one answer of the tool. */
const filesPerLook = 500;

/** Lists the files, reads what describes the project (and sends children out where it can), then reports. */
export function mapStep(conversation: OfflineConversation, folder: string | undefined): OfflineStep {
  const looked = callsOf(conversation, "Glob").length + callsOf(conversation, "Grep").length;
  if (looked === 0) return look(conversation, folder);
  const mayDelegate = folder === undefined && spawnToolName(conversation) !== undefined;
  const further = lookFurther(conversation, folder, mayDelegate);
  if (further.length > 0) return { type: "calls", say: "There are more files; listing on.", calls: further };
  const files = listedFiles(conversation);
  const hasRead = callsOf(conversation, "Read").length + childrenOf(conversation, "Explore").length > 0;
  if (!hasRead) {
    const children = mayDelegate ? exploreCalls(conversation, files) : [];
    const room = maxOfflineCalls - looked - (children.length > 0 ? children.length + 1 : 0);
    const reads = filesToRead(files, folder)
      .slice(0, Math.min(room, 4))
      .flatMap((file) => callIfOffered(conversation, "Read", { file_path: file, limit: 300 }));
    const calls = [...reads, ...children];
    if (calls.length > 0) return { type: "calls", say: sayNext(reads.length, children.length), calls };
  }
  const plan = mayDelegate ? planCalls(conversation, files) : [];
  if (plan.length > 0)
    return { type: "calls", say: "The children are back; one more plans a first reading.", calls: plan };
  return { type: "answer", text: mapReport(conversation, files, folder) };
}

function look(conversation: OfflineConversation, folder: string | undefined): OfflineStep {
  const path = pathOf(folder);
  const calls = [
    ...callIfOffered(conversation, "Glob", { pattern: "**/*", ...path }),
    ...callIfOffered(conversation, "Grep", countLines(path)),
  ];
  if (calls.length > 0) return { type: "calls", say: "Listing the files.", calls };
  const text = "A map needs the tool Glob or Grep, and neither is offered here.";
  return { type: "answer", text: offlineAnswer(text) };
}

/** Once more where the first list was too short for all files, as far as the calls that are still needed allow. */
function lookFurther(
  conversation: OfflineConversation,
  folder: string | undefined,
  mayDelegate: boolean,
): readonly OfflineCall[] {
  const counts = callsOf(conversation, "Grep");
  const [first] = counts;
  if (first === undefined || counts.length > 1) return [];
  const { total, shown } = readCountRemark(first.text);
  if (total === undefined || shown === undefined) return [];
  const needed = Math.ceil((total.files - shown) / filesPerLook);
  const pages = Math.min(needed, mayDelegate ? 1 : 2);
  return Array.from({ length: pages }, (_, at) => shown + at * filesPerLook).flatMap((offset) =>
    callIfOffered(conversation, "Grep", { ...countLines(pathOf(folder)), offset }),
  );
}

/** Every line matches, so the count of a file is its length. */
function countLines(path: { readonly path?: string }): Readonly<Record<string, unknown>> {
  return { pattern: "^", output_mode: "count", head_limit: filesPerLook, ...path };
}

function pathOf(folder: string | undefined): { readonly path?: string } {
  return folder === undefined || folder === "." ? {} : { path: folder };
}

function sayNext(reads: number, children: number): string {
  if (children === 0) return "Reading what describes the project.";
  const reading = reads === 0 ? "" : ", and reading what describes the project";
  return `Sending a child agent into each of the largest folders${reading}.`;
}

/** The README and manifests of the folder that is mapped. */
function filesToRead(files: ListedFiles, folder: string | undefined): readonly string[] {
  const here = filesDirectlyIn(files, folder);
  const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);
  const readme = here.filter((path) => /^readme(?:\.\w+)?$/i.test(nameOf(path))).slice(0, 1);
  const manifests = manifestNames.flatMap((name) => here.filter((path) => nameOf(path) === name));
  return [...readme, ...manifests];
}
