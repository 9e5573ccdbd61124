import { posix, win32 } from "node:path";
import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";

export interface PathsInput {
  readonly home: string;
  /** The real path of the folder the session works in. */
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly platform: string;
  /** The root of the repository that holds `cwd`, when there is one. */
  readonly repositoryRoot?: string | undefined;
  /** For programs and tests that keep the organisation's files elsewhere; no variable can move it. */
  readonly managedDirectory?: string | undefined;
}

/** Every place on disk that this product reads or writes. Nothing here says that a place exists. */
export interface Paths {
  readonly home: string;
  readonly cwd: string;
  /** The repository's root, or the working folder outside of a repository. */
  readonly projectRoot: string;
  /** Absent outside of a repository. */
  readonly repositoryRoot?: string | undefined;
  readonly configDirectory: string;
  readonly stateFile: string;
  readonly settings: SettingsPaths;
  readonly agents: ScopedDirectories;
  readonly skills: ScopedDirectories;
  readonly commands: ScopedDirectories;
  readonly workflows: ScopedDirectories;
  readonly outputStyles: ScopedDirectories;
  readonly plugins: PluginPaths;
  readonly agentMemory: { readonly user: string; readonly project: string; readonly local: string };
  /** Holds one directory of transcripts per project. */
  readonly projects: string;
  /** The transcripts of this project. */
  readonly transcripts: string;
  readonly teams: string;
  readonly tasks: string;
  /** Notes of files that were half written beside the user's own when a process died. */
  readonly temporaryNotes: string;
  readonly managedDirectory: string;
}

interface SettingsPaths {
  readonly user: string;
  /** From the repository's root to the working folder; the later file is the nearer one. */
  readonly project: readonly string[];
  readonly local: readonly string[];
  readonly managed: string;
  readonly managedDropIns: string;
}

export interface ScopedDirectories {
  readonly managed: string;
  /** From the working folder up to the repository's root: the nearer directory comes first. */
  readonly project: readonly string[];
  readonly user: string;
}

interface PluginPaths {
  readonly root: string;
  readonly cache: string;
  readonly data: string;
}

const pathsShape = checks.shape(
  { home: checks.filled, cwd: checks.filled, environment: checks.variables, platform: checks.filled },
  ["home", "cwd", "environment", "platform"],
);

export function createPaths(input: PathsInput): Paths {
  checkArgument("The first argument of createPaths()", pathsShape, input);
  const path = input.platform === "win32" ? win32 : posix;
  const projectRoot = input.repositoryRoot ?? input.cwd;
  const configured = readConfigDirectory(input, path);
  const configDirectory = configured ?? path.join(input.home, ".claude");
  const managedDirectory = input.managedDirectory ?? managedDirectoryOf(input.platform);
  const projects = path.join(configDirectory, "projects");
  const plugins = path.join(configDirectory, "plugins");
  const folders = foldersUpTo(input.cwd, projectRoot, path);
  const scoped = (name: string): ScopedDirectories => ({
    managed: path.join(managedDirectory, ".claude", name),
    project: without(
      path.join(configDirectory, name),
      folders.map((folder) => path.join(folder, ".claude", name)),
    ),
    user: path.join(configDirectory, name),
  });
  return {
    home: input.home,
    cwd: input.cwd,
    projectRoot,
    repositoryRoot: input.repositoryRoot,
    configDirectory,
    stateFile: path.join(configured ?? input.home, ".claude.json"),
    settings: settingsPaths({ path, configDirectory, managedDirectory, projectRoot, cwd: input.cwd }),
    agents: scoped("agents"),
    skills: scoped("skills"),
    commands: scoped("commands"),
    workflows: scoped("workflows"),
    outputStyles: scoped("output-styles"),
    plugins: { root: plugins, cache: path.join(plugins, "cache"), data: path.join(plugins, "data") },
    agentMemory: {
      user: path.join(configDirectory, "agent-memory"),
      project: path.join(projectRoot, ".claude", "agent-memory"),
      local: path.join(projectRoot, ".claude", "agent-memory-local"),
    },
    projects,
    transcripts: path.join(projects, transcriptsName(input, configured !== undefined)),
    teams: path.join(configDirectory, "teams"),
    tasks: path.join(configDirectory, "tasks"),
    temporaryNotes: path.join(configDirectory, "retinue", "temporary"),
    managedDirectory,
  };
}

/** The name of a project's directory of transcripts, from the real path of its working folder. */
export function projectDirectoryName(realPath: string): string {
  const folder = realPath.length > 1 ? realPath.replace(/[/\\]$/, "") : realPath;
  const name = folder.replace(/[^A-Za-z0-9]/g, "-");
  if (name.length <= projectNameLimit) return name;
  return `${name.slice(0, projectNameLimit)}-${Math.abs(timesThirtyOne(folder)).toString(36)}`;
}

const projectNameLimit = 200;

function timesThirtyOne(text: string): number {
  let hash = 0;
  for (let index = 0; index < text.length; index += 1) hash = (hash * 31 + text.charCodeAt(index)) | 0;
  return hash;
}

type PathModule = typeof posix;

function readConfigDirectory({ home, environment }: PathsInput, path: PathModule): string | undefined {
  const value = environment["CLAUDE_CONFIG_DIR"];
  if (value === undefined || value === "") return undefined;
  if (value === "~") return home;
  if (value.startsWith("~/") || value.startsWith(`~${path.sep}`)) return path.join(home, value.slice(2));
  if (path.isAbsolute(value)) return path.resolve(value);
  // Below the working folder is what its files bring, and that must not pass for the person's own.
  throw new RetinueError(
    "invalid-config-directory",
    `CLAUDE_CONFIG_DIR is ${JSON.stringify(value)}, which is not an absolute path.`,
    {
      advice: "Write an absolute path, or one that begins with ~/.",
    },
  );
}

function settingsPaths(places: {
  readonly path: PathModule;
  readonly configDirectory: string;
  readonly managedDirectory: string;
  readonly projectRoot: string;
  readonly cwd: string;
}): SettingsPaths {
  const { path, configDirectory, managedDirectory } = places;
  const user = path.join(configDirectory, "settings.json");
  const folders = [...new Set([places.projectRoot, places.cwd])];
  const inFolders = (name: string) => folders.map((folder) => path.join(folder, ".claude", name));
  return {
    user,
    project: without(user, inFolders("settings.json")),
    local: inFolders("settings.local.json"),
    managed: path.join(managedDirectory, "managed-settings.json"),
    managedDropIns: path.join(managedDirectory, "managed-settings.d"),
  };
}

/** In the home directory the project's `.claude` is the user's own. */
function without(own: string, files: readonly string[]): readonly string[] {
  return files.filter((file) => file !== own);
}

function foldersUpTo(folder: string, root: string, path: PathModule): readonly string[] {
  const folders = [folder];
  for (let at = folder; at !== root && path.dirname(at) !== at; ) {
    at = path.dirname(at);
    folders.push(at);
  }
  return folders.includes(root) ? folders : [folder];
}

function transcriptsName({ cwd, environment }: PathsInput, hasOwnConfigDirectory: boolean): string {
  const given = environment["CLAUDE_CODE_PROJECT_DIR_NAME"];
  const usable = given !== undefined && /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}$/.test(given);
  return hasOwnConfigDirectory && usable ? given : projectDirectoryName(cwd);
}

function managedDirectoryOf(platform: string): string {
  if (platform === "darwin") return "/Library/Application Support/ClaudeCode";
  return platform === "win32" ? "C:\\Program Files\\ClaudeCode" : "/etc/claude-code";
}
