import { posix } from "node:path";
import { gitChangingCommands, gitReadingCommands } from "../shell/programs/git-commands.ts";

/** One setting as git reports it. */
export interface GitSetting {
  readonly scope: string;
  /** The file that holds it, absolute; absent for one that is in none. */
  readonly file?: string;
  /** Section and name in lower case, with the subsection between them as it is written. */
  readonly key: string;
  /** Absent for a name alone, which means true. */
  readonly value?: string;
}

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/** Sections of which every name is plain data, or is switched off for certain by the options of `hardenedGit`. */
const plainSections = words(
  `branch user author committer color advice gui gitg lfs http push maintenance feature index pack repack receive transfer
  column rerere pager i18n versionsort notes ssh gpg github gitlab hub vscode-merge-base gitflow gitbutler svn-remote`,
);

/**
 * Settings of a repository that start no program, load no further settings and show no other file, or that are switched
 * off as above; names without their subsections. Everything that is missing may do any of that.
 */
const plainNames: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    core: `repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode autocrlf eol symlinks quotepath
      untrackedcache preloadindex fscache longpaths protecthfs protectntfs splitindex compression loosecompression abbrev
      bigfilethreshold commentchar safecrlf whitespace trustctime checkstat checkroundtripencoding multipackindex
      commitgraph sparsecheckout sparsecheckoutcone usereplacerefs createobject sharedrepository warnambiguousrefs fsync
      fsyncmethod deltabasecachelimit packedgitlimit packedgitwindowsize hookspath fsmonitor fsmonitorhookversion pager
      editor sshcommand askpass`,
    extensions: "worktreeconfig objectformat partialclone preciousobjects noop relativeworktrees",
    remote: `url fetch push pushurl tagopt mirror prune prunetags skipdefaultupdate skipfetchall promisor
      partialclonefilter followremotehead gh-resolved glab-resolved pushdefault`,
    credential: "helper username usehttppath sanitizeprompt",
    url: "insteadof pushinsteadof",
    init: "defaultbranch defaultobjectformat defaultrefformat",
    pull: "rebase ff octopus twohead",
    fetch: `prune prunetags parallel writecommitgraph fsckobjects recursesubmodules output showforcedupdates all
      unpacklimit negotiationalgorithm`,
    rebase: `autosquash autostash stat updaterefs missingcommitscheck abbreviatecommands rebasemerges backend forkpoint
      maxlabellength`,
    commit: "gpgsign verbose status cleanup",
    tag: "gpgsign sort forcesignannotated",
    gc: `auto autodetach autopacklimit pruneexpire reflogexpire reflogexpireunreachable worktreepruneexpire packrefs
      writecommitgraph aggressivedepth aggressivewindow bigpackthreshold cruftpacks`,
    log: "date decorate abbrevcommit follow showroot mailmap showsignature diffmerges",
    status: `short branch showuntrackedfiles relativepaths showstash aheadbehind displaycommentprefix renames renamelimit
      submodulesummary`,
    stash: "showpatch showstat showincludeuntracked",
    worktree: "guessremote userelativepaths",
    checkout: "defaultremote guess workers thresholdforparallelism",
    clone: "defaultremotename rejectshallow filtersubmodules",
    grep: "linenumber column patterntype extendedregexp threads fullname",
    blame: "date showemail showroot blankboundary coloring markunblamablelines markignoredlines",
    merge: `conflictstyle ff tool guitool stat renames renamelimit directoryrenames log verbosity autostash name`,
    diff: `renames algorithm colormoved colormovedws mnemonicprefix noprefix context interhunkcontext renamelimit tool
      suppressblankempty guitool statgraphwidth indentheuristic wordregex ignoresubmodules xfuncname funcname binary
      cachetextconv wserrorhighlight dirstat`,
    submodule: `url active branch fetchrecursesubmodules shallow path ignore recurse fetchjobs alternatelocation
      alternateerrorstrategy propagatebranches stickyrecursivedirectory`,
    uploadpack:
      "allowfilter allowanysha1inwant allowtipsha1inwant allowreachablesha1inwant allowrefinwant hiderefs",
    sparse: "expectfilesoutsideofpatterns",
  }).map(([section, names]) => [section, words(names)]),
);

/** The values with which some more settings are plain. */
const plainValues: ReadonlyMap<string, RegExp> = new Map([
  ["extensions.refstorage", /^(?:files|reftable)$/],
  ["submodule.update", /^(?:checkout|rebase|merge|none)$/],
  ["blame.ignorerevsfile", /^\.git-blame-ignore-revs$/],
]);

/** `filter.x.y.clean` as section, subsection and name. */
export function partsOf(key: string): {
  readonly section: string;
  readonly subsection: string;
  readonly name: string;
} {
  const first = key.indexOf(".");
  const last = key.lastIndexOf(".");
  return {
    section: key.slice(0, first).toLowerCase(),
    subsection: first === last ? "" : key.slice(first + 1, last),
    name: key.slice(last + 1).toLowerCase(),
  };
}

/** Whether a setting of a repository does nothing of its own when git reads; `commands` are those that git has built in. */
export function isPlainSetting({ key, value = "" }: GitSetting, commands: ReadonlySet<string>): boolean {
  const { section, name } = partsOf(key);
  // Git lets an alias replace a command that a later version no longer has.
  if (section === "alias") return !commands.has(name);
  if (plainSections.has(section) || plainNames.get(section)?.has(name) === true) return true;
  return plainValues.get(`${section}.${name}`)?.test(value) === true;
}

/** All settings that hold in a repository, and what follows from them. */
export interface RepositorySettings {
  /** Every setting that holds here, of the person and the system too. */
  readonly settings: readonly GitSetting[];
  /** Of them, those that the folder brings, wherever they are written: in the repository, or in a file of the folder. */
  readonly own: readonly GitSetting[];
  /** Names of the filters that any of them has, and of those that the repository brings. */
  readonly filters: readonly string[];
  readonly ownFilters: readonly string[];
  /** It fetches what is missing when it is needed, in a way that is the person's own. */
  readonly fetchesPlainly?: true;
  /** The first setting of the repository's own that is not known to be plain, if there is one. */
  readonly steering?: string;
}

interface SettingsPlace {
  /** Relative paths of files start here. */
  readonly base: string;
  /** What is written in files below these, the folder brings. */
  readonly folders: readonly string[];
  /** The working tree is where `.git` is. */
  readonly isPlaced: boolean;
  /** The path with links followed. */
  readonly realPath: (path: string) => string;
}

/** Reads what `git config --list -z --show-origin --show-scope` prints; undefined where that is not understood. */
export function readRepositorySettings(
  listed: string,
  { base, folders, isPlaced, realPath }: SettingsPlace,
): RepositorySettings | undefined {
  const settings = readSettings(listed, base);
  if (settings === undefined) return undefined;
  const isBelow = (path: string): boolean =>
    folders.some(
      (folder) => path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`),
    );
  const own = settings.filter(({ scope, file }) => {
    if (scope === "command") return false;
    if (scope !== "system" && scope !== "global") return true;
    return file === undefined || isBelow(file) || isBelow(realPath(file));
  });
  const filters = filtersIn(settings);
  // A filter whose name cannot be written as an option cannot be switched off.
  const oddFilter = filters.find((name) => !/^[\w.+-]+$/.test(name));
  // A submodule's data records where its files are; that is plain where it agrees with the files.
  const steering =
    own.find(
      (setting) =>
        !isPlainSetting(setting, builtinCommands) && !(setting.key === "core.worktree" && isPlaced),
    )?.key ?? (oddFilter === undefined ? undefined : `filter.${oddFilter}`);
  const fetchesPlainly =
    steering === undefined &&
    own.some(({ key }) => partsOf(key).name === "promisor" || key === "extensions.partialclone") &&
    !own.some(({ key }) => /^(?:core\.(?:sshcommand|askpass)|credential\.|http\.|url\.)/.test(key));
  return {
    settings,
    own,
    filters,
    ownFilters: filtersIn(own),
    steering,
    ...(fetchesPlainly ? { fetchesPlainly } : {}),
  };
}

/** Commands that git has built in, as far as they are known here. */
const builtinCommands: ReadonlySet<string> = new Set(
  [...gitReadingCommands, ...gitChangingCommands].map(([name]) => name),
);

function filtersIn(settings: readonly GitSetting[]): readonly string[] {
  const names = settings.map(({ key }) => partsOf(key)).filter(({ section }) => section === "filter");
  return [...new Set(names.map(({ subsection }) => subsection))];
}

/** `scope NUL origin NUL key LF value NUL`, again and again. */
function readSettings(text: string, base: string): readonly GitSetting[] | undefined {
  const fields = text.split("\0");
  if (fields.pop() !== "" || fields.length % 3 !== 0) return undefined;
  return Array.from({ length: fields.length / 3 }, (_, at): GitSetting => {
    const [scope = "", origin = "", entry = ""] = fields.slice(3 * at, 3 * at + 3);
    const end = entry.indexOf("\n");
    const path = origin.startsWith("file:") ? origin.slice("file:".length) : undefined;
    return {
      scope,
      file: path === undefined ? undefined : posix.resolve(base, path),
      key: end === -1 ? entry : entry.slice(0, end),
      ...(end === -1 ? {} : { value: entry.slice(end + 1) }),
    };
  });
}
