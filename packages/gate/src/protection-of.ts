import { foldName } from "./covers-path.ts";

/**
 * Why writing to a path steers this system or another program that runs by itself, or undefined. Compared without
 * case, whatever the platform; `workingDirectories` are the roots where a bare repository could be laid out, and `steering` the
 * places of this product's own files that cannot be recognized by their names.
 */
export function protectionOf(
  path: string,
  {
    workingDirectories,
    platform,
    steering = [],
  }: {
    readonly workingDirectories: readonly string[];
    readonly platform?: string;
    readonly steering?: readonly string[];
  },
): string | undefined {
  const names = path
    .split("/")
    .filter((name) => name !== "")
    .map((name) => plainName(name, platform));
  const found = names.findIndex((name, at) => isSteering(names, name, at));
  if (found !== -1) return `${names.slice(found).join("/")} controls what runs automatically`;
  const own = steering.find((place) => isSameOrAbove(foldName(place), foldName(path)));
  if (own !== undefined) return `${own} contains settings or sessions of this product`;
  if (platform === "win32" && names.some((name) => /~\d/.test(name)))
    return "the short name may mean a protected file";
  const root = workingDirectories.find((directory) => isBareRepositoryPart(path, directory));
  return root === undefined ? undefined : "it would make the folder look like a separate repository";
}

/** Why a name among the words of a program is one of a protected file; a word such as `config` is more often none. */
export function protectsName(
  path: string,
  { platform, steering = [] }: { readonly platform?: string; readonly steering?: readonly string[] },
): string | undefined {
  return protectionOf(path, {
    workingDirectories: [],
    steering,
    platform,
  });
}

/** What a process may read of itself; `root`, `cwd` and `task` lead to others again. */
const ownProcessFile =
  /^\/proc\/self\/(?:cgroup|cmdline|comm|environ|fd|io|limits|loginuid|maps|mountinfo|mounts|stat|statm|status)$/;

const plainProcessFile =
  /^\/proc\/(?:(?:cpuinfo|meminfo|version|loadavg|uptime|stat|mounts|filesystems|modules|swaps|diskstats|cmdline)$|(?:net|sys)(?:\/|$))/;

/** Why reading a path exposes the memory or files of other processes, keys in their environment too, or undefined. */
export function exposureOf({ forms }: { readonly forms: readonly string[] }): string | undefined {
  const [written = ""] = forms;
  if (ownProcessFile.test(written)) return undefined;
  const found = forms.find((form) => /^\/proc(?:\/|$)/.test(form) && !plainProcessFile.test(form));
  return found === undefined ? undefined : `${found} exposes the memory or files of other processes`;
}

/** Windows ignores dots and spaces at the end of a name, and what is after a colon is a stream of the same file. */
function plainName(name: string, platform: string | undefined): string {
  const bare = platform === "win32" ? name.replace(/:.*$/, "").replace(/[. ]+$/, "") || name : name;
  return foldName(bare);
}

function isSteering(names: readonly string[], name: string, at: number): boolean {
  if (folders.has(name)) return true;
  if (name === ".claude") return names[at + 1] !== "worktrees" || at + 2 >= names.length;
  const next = names[at + 1];
  if (next !== undefined && pairs.has(`${name}/${next}`)) return true;
  const isLast = at === names.length - 1;
  return isLast && (files.has(name) || patterns.some((pattern) => pattern.test(name)));
}

/** Everything in them. */
const folders: ReadonlySet<string> = new Set(
  ".git .githooks .husky .vscode .idea .devcontainer .ssh .gnupg .aws .kube .hg .lefthook .zed .mvn .vim .emacs.d".split(
    " ",
  ),
);

/** A folder in a folder, with all it holds. */
const pairs: ReadonlySet<string> = new Set(
  `.config/git .config/fish .config/autostart .config/systemd .config/pip .config/retinue .config/npm .config/nvim
  .config/direnv library/launchagents library/launchdaemons .local/bin .m2/settings.xml .gradle/init.d
  .gradle/init.gradle .gradle/gradle.properties .bundle/config .docker/config.json
  .cargo/config .cargo/config.toml .cargo/bin .yarn/releases .yarn/plugins .config/mise .config/environment.d
  .config/code .mise/config.toml .cursor/mcp.json .gemini/settings.json .codex/config.toml
  gradle/wrapper .agents/skills .agents/agents .opencode/agent .opencode/agents .opencode/mode .opencode/modes
  .codex/agents .github/agents .gemini/agents .qwen/agents .cursor/agents .factory/droids .kiro/agents .cline/agents
  .goose/agents .pi/agents`.split(/\s+/),
);

const files: ReadonlySet<string> = new Set(
  `.mcp.json .claude.json retinue.lock .gitconfig .gitmodules .git-credentials .netrc .envrc .pypirc .npmrc .yarnrc .yarnrc.yml
  .pnpmfile.cjs .pnpmfile.js bunfig.toml .bunfig.toml pip.conf .pip.conf .condarc .gemrc .bazelrc .ripgreprc .curlrc
  .wgetrc .inputrc .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile
  .zlogin .zlogout .kshrc .cshrc .tcshrc .login .logout .xprofile .xinitrc .xsession .vimrc .nvimrc .exrc .gvimrc .emacs
  .tmux.conf .screenrc .gdbinit .lldbinit .rprofile .irbrc .pryrc .pythonrc .mailcap .hgrc
  .pre-commit-config.yaml .pre-commit-config.yml lefthook.yml lefthook.yaml .lefthook.yml .huskyrc .lintstagedrc
  .mise.toml mise.toml .devcontainer.json .pnp.cjs .pnp.loader.mjs pnpmfile.cjs pnpmfile.js .nvim.lua .dir-locals.el
  .rvmrc .autoenv .autoenv.zsh .pdbrc .pam_environment usercustomize.py sitecustomize.py authorized_keys crontab`.split(
    /\s+/,
  ),
);

const patterns: readonly RegExp[] = [/^\.bash_\w+$/, /^\.zsh\w*$/, /\.code-workspace$/];

/** Git takes a folder with HEAD, objects and refs for a repository and runs what its config says. */
function isBareRepositoryPart(path: string, directory: string): boolean {
  const base = directory.endsWith("/") ? directory : `${directory}/`;
  if (!path.startsWith(base)) return false;
  const [first = "", second, ...rest] = path.slice(base.length).split("/");
  if (first === "HEAD" || first === "objects" || first === "refs") return true;
  if (first === "config" || first === "packed-refs") return second === undefined;
  return first === "hooks" && rest.length === 0 && second !== undefined && gitHooks.test(second);
}

const gitHooks =
  /^(?:(?:pre|post|prepare)-[a-z-]+|commit-msg|applypatch-msg|update|reference-transaction|fsmonitor-watchman)$/;

/** Why a path is not removed without a question, in any mode; undefined for ordinary paths. */
export function criticalityOf(
  path: string,
  {
    workingDirectories,
    homes,
  }: { readonly workingDirectories: readonly string[]; readonly homes: readonly string[] },
): string | undefined {
  const bare = withoutGlob(path);
  if (bare === "/" || /^\/?[A-Za-z]:\/?$/.test(bare)) return "the whole file system";
  if (systemFolders.has(bare.toLowerCase())) return "a folder of the system";
  if (/^\/(?:home|Users)\/[^/]+$/.test(bare)) return "a home directory";
  if (homes.some((home) => isSameOrAbove(bare, home))) return "the home directory";
  if (workingDirectories.some((directory) => isSameOrAbove(bare, directory))) return "the project itself";
  if (bare.endsWith("/.git")) return "the history of a repository";
  return undefined;
}

/** Why everything below a path is not changed without a question; what lies in a project is its own matter. */
export function vitalityOf(path: string, homes: readonly string[]): string | undefined {
  const why = criticalityOf(path, { workingDirectories: [], homes });
  return path.endsWith("/.git") ? undefined : why;
}

/** What may be written below `/dev` without reaching a disk or another device. */
const plainDevice =
  /^\/dev\/(?:null|zero|full|u?random|std(?:in|out|err)|tty|ptmx|fd\/\d+|pts\/\d+|(?:shm|mqueue)(?:\/.*)?)$/;

/** Whether a path is a device that is not written to without a question. */
export function isOtherDevice(path: string): boolean {
  return /^\/dev\/./.test(path) && !plainDevice.test(path);
}

/** `/x/*` empties `/x`. */
function withoutGlob(path: string): string {
  const bare = path
    .replace(/\/(?:\.?\*+|\.\[[^\]]*\]\*|\{[^}]*\*[^}]*\}|\.\?\?\*)(?=\/?$)/, "")
    .replace(/\/+$/, "");
  return bare === "" ? "/" : bare;
}

function isSameOrAbove(path: string, other: string): boolean {
  return path === other || other.startsWith(path === "/" ? "/" : `${path}/`);
}

const systemFolders: ReadonlySet<string> = new Set(
  `/bin /boot /dev /etc /home /lib /lib32 /lib64 /media /mnt /opt /proc /root /run /sbin /srv /sys /usr /usr/bin /usr/lib
  /usr/local /usr/sbin /usr/share /var /var/lib /var/log /users /system /library /applications /volumes /private
  /private/etc /private/var /c /c/windows /c/users`.split(/\s+/),
);
