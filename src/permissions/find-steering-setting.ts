// @io
import { readFileSync } from "node:fs";
import { posix } from "node:path";

/**
 * Settings of a repository that do nothing when git only reads: plain data, or programs that are switched off for such
 * calls. Compared in lower case, without subsections.
 */
const permittedSettings: readonly RegExp[] = [
  /^core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|autocrlf|eol|symlinks|quotepath|hookspath|fsmonitor|pager|editor|sshcommand|askpass|untrackedcache|preloadindex|fscache|longpaths|protecthfs|protectntfs|splitindex|compression|bigfilethreshold|abbrev|commentchar|safecrlf|whitespace|trustctime|checkstat|multipackindex|commitgraph|sparsecheckout|sparsecheckoutcone)$/,
  /^(?:remote|branch|user|author|committer|submodule|init|pull|push|fetch|rebase|commit|tag|color|lfs|http|url|gui|extensions|gc|maintenance|advice|feature|index|pack|receive|credential|gpg|alias|log|status|rerere|column|stash|worktree|checkout|clone|svn-remote|github|gitlab|hub|vscode-merge-base)\./,
  /^merge\.(?:conflictstyle|ff|tool|stat|renames|log|verbosity|autostash)$/,
  /^diff\.(?:renames|algorithm|colormoved|colormovedws|mnemonicprefix|noprefix|context|interhunkcontext|renamelimit|suppressblankempty|tool|textconv|command|xfuncname|binary|cachetextconv|wordregex|external|guitool|statgraphwidth|indentheuristic)$/,
];

/** The first setting of a repository's own configuration that is not known to be harmless, if there is one. */
export function findSteeringSetting(repository: string): string | undefined {
  const directory = findGitDirectory(repository);
  if (directory === undefined) return undefined;
  const common = read(posix.join(directory, "commondir"))?.trim();
  const shared = common === undefined || common === "" ? directory : posix.resolve(directory, common);
  const files = [posix.join(shared, "config"), posix.join(directory, "config.worktree")];
  for (const file of files) {
    const found = settingsIn(read(file) ?? "").find(
      (name) => !permittedSettings.some((pattern) => pattern.test(name)),
    );
    if (found !== undefined) return found;
  }
  return undefined;
}

function findGitDirectory(repository: string): string | undefined {
  const place = posix.join(repository, ".git");
  const link = read(place);
  if (link === undefined) return place;
  const target = /^gitdir: (.+)$/m.exec(link)?.[1]?.trim();
  return target === undefined ? undefined : posix.resolve(repository, target);
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/** The names of all settings, as `section.key`; a line that is not understood is a name that no one knows. */
function settingsIn(text: string): readonly string[] {
  let section = "";
  const names: string[] = [];
  for (const line of text.replaceAll("\\\n", " ").split("\n")) {
    const trimmed = line.trim();
    if (trimmed === "" || /^[#;]/.test(trimmed)) continue;
    const header = /^\[\s*([\w.-]+)\s*(?:"(?:[^"\\]|\\.)*")?\s*\]\s*(.*)$/.exec(trimmed);
    const rest = header === null ? trimmed : (header[2] ?? "");
    if (header !== null) section = (header[1] ?? "").split(".")[0]?.toLowerCase() ?? "";
    if (rest === "" || /^[#;]/.test(rest)) continue;
    const key = /^([A-Za-z][\w-]*)\s*(?:=|$|[#;])/.exec(rest)?.[1];
    names.push(key === undefined ? `${section}.?` : `${section}.${key.toLowerCase()}`);
  }
  return names;
}
