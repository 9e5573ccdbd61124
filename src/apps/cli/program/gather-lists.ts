import { statSync } from "node:fs";
import { resolve } from "node:path";
import { isToolEntry, splitEntries } from "../../../runtime/options/find-bad-rule.ts";
import { namesOf } from "./command-entry.ts";
import { runOptions, sessionOptions } from "./run-options.ts";

interface ListOption {
  /** Whether a further word can be meant by the option; the first that cannot begins the prompt. */
  readonly belongs: (word: string, cwd: string) => boolean;
  /** Whether the words become one value with commas, or the option is written once for each. */
  readonly isJoined: boolean;
}

const tools: ListOption = { belongs: (word) => splitEntries(word).every(isToolEntry), isJoined: true };
const folders: ListOption = {
  belongs: (word, cwd) => statSync(resolve(cwd, word), { throwIfNoEntry: false })?.isDirectory() === true,
  isJoined: false,
};

const listOptions: ReadonlyMap<string, ListOption> = new Map(
  [...sessionOptions, ...runOptions].flatMap(({ flags, moreWords }) =>
    moreWords === undefined
      ? []
      : namesOf(flags).map((name) => [name, moreWords === "tools" ? tools : folders] as const),
  ),
);

/** Gathers the words of `--allowedTools A B` and the like, so that they do not become a prompt, nor the prompt one of them. */
export function gatherLists(arguments_: readonly string[], cwd: string): readonly string[] {
  const gathered: string[] = [];
  for (let at = 0; at < arguments_.length; at += 1) {
    const word = arguments_[at] ?? "";
    if (word === "--") return [...gathered, ...arguments_.slice(at)];
    // Its value is optional; a sentence behind it is the prompt.
    if ((word === "--debug" || word === "-d") && /\s/.test(arguments_[at + 1] ?? "")) {
      gathered.push("--debug=all");
      continue;
    }
    gathered.push(word);
    const option = listOptions.get(word);
    const first = arguments_[at + 1];
    if (option === undefined || first === undefined || first.startsWith("-")) continue;
    const rest = arguments_.slice(at + 2);
    const end = rest.findIndex((next) => /^(-|$)/.test(next) || !option.belongs(next, cwd));
    const more = end === -1 ? rest : rest.slice(0, end);
    if (option.isJoined) gathered.push([first, ...more].join(","));
    else gathered.push(first, ...more.flatMap((next) => [word, next]));
    at += 1 + more.length;
  }
  return gathered;
}
