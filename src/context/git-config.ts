import { bounded } from "./git-state.ts";

export interface GitConfigTexts {
  /** The repository's own configuration. */
  readonly repository: string;
  /** The person's files, the stronger one last. */
  readonly personal: readonly string[];
}

/** The person's name as git would take it, or nothing where other files that we do not read could say otherwise. */
export function readUserName({ repository, personal }: GitConfigTexts): string | undefined {
  const own = readSetting(repository, "name");
  if (own !== undefined) return own;
  if ([repository, ...personal].some((text) => /^\s*\[\s*include(?:if)?\b/im.test(text))) return undefined;
  return personal.reduce<string | undefined>((found, text) => readSetting(text, "name") ?? found, undefined);
}

/** A key of the section `user`; the last one counts. */
function readSetting(text: string, key: string): string | undefined {
  let isUser = false;
  let found: string | undefined;
  for (const line of text.split(/\r?\n/)) {
    const [, section] = /^\s*\[\s*([^\]]*?)\s*\]/.exec(line) ?? [];
    if (section !== undefined) isUser = section.toLowerCase() === "user";
    const [, name = "", value = ""] = /^\s*(?:\[[^\]]*\]\s*)?([A-Za-z][\w-]*)\s*=\s*(.*)$/.exec(line) ?? [];
    if (isUser && name.toLowerCase() === key) found = plainValue(value);
  }
  return found === undefined || found === "" ? undefined : bounded(found);
}

function plainValue(value: string): string {
  const [, quoted] = /^"((?:[^"\\]|\\.)*)"/.exec(value) ?? [];
  if (quoted !== undefined) return quoted.replace(/\\(.)/g, "$1").trim();
  return value.replace(/\s*[#;].*$/, "").trim();
}
