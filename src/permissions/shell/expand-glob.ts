import { unescapePlain } from "./expand-braces.ts";
import { type GlobRequest, markOpaque, type Scene, type Walk } from "./walk.ts";
import { plainWord, type Word } from "./word.ts";
import { finishWord, flush, type WordDraft } from "./word-draft.ts";

const simpleBracket = /^\[[!^]?[A-Za-z0-9_.,@%+-]+\]$/;

/** Adds a sign of a file pattern to a word. */
export function addGlob(walk: Walk, draft: WordDraft, source: string): void {
  if (source.startsWith("[") && !simpleBracket.test(source))
    markOpaque(walk, "a file pattern is not understood");
  flush(draft);
  if (draft.text === "" || draft.text.startsWith("-")) draft.loose = true;
  draft.text += source;
  draft.path += source;
  draft.rendered += source;
  draft.pattern += source;
  draft.literal = false;
  draft.pathKnown = false;
  draft.glob = true;
  draft.stays = true;
  draft.numeric = false;
  draft.isOne = false;
}

/** A pattern is the files that it matches now; they are what runs. */
export function expandGlob(walk: Walk, draft: WordDraft, scene: Scene, source: string): Word[] {
  const { directories } = scene.state;
  const [directory = "unknown"] = directories;
  const known = draft.environment === undefined && !/[$`(]/.test(draft.pattern.replace(/\\[\s\S]/g, ""));
  const isAnywhere = draft.pattern.startsWith("/");
  const request: GlobRequest = { pattern: draft.pattern, directory: isAnywhere ? "" : directory };
  const isPlaced = isAnywhere || (directories.length === 1 && directory !== "unknown");
  if (!known || !isPlaced) {
    markOpaque(
      walk,
      known ? "a file pattern is in a folder that is not known" : "a file pattern is only known when it runs",
    );
    return [finishWord(draft, source)];
  }
  noteListed(walk, request, directories);
  const matches = walk.surroundings.matches(request);
  if (matches === undefined) walk.globs.push(request);
  if (matches === "too-many") markOpaque(walk, "a file pattern matches too many files");
  if (matches === undefined || matches === "too-many") return [finishWord(draft, source)];
  if (matches.length > 0) return matches.map((match) => ({ ...plainWord(match), source }));
  return [{ ...plainWord(unescapePlain(draft.pattern)), source }];
}

/** The names in the folder where a pattern begins become known. */
function noteListed(walk: Walk, { pattern }: GlobRequest, directories: readonly string[]): void {
  const segments = pattern.split("/");
  const first = segments.findIndex((segment) => /[*?[]/.test(segment.replace(/\\[\s\S]/g, "")));
  const folder = segments
    .slice(0, first)
    .join("/")
    .replace(/\\([\s\S])/g, "$1");
  const path = folder === "" && pattern.startsWith("/") ? "/" : folder;
  if (path === "" && directories.every((directory) => directory === "")) return;
  for (const directory of path.startsWith("/") ? [""] : directories)
    walk.listed.push({ path: path === "" ? "." : path, literal: true, directory, use: "read" });
}
