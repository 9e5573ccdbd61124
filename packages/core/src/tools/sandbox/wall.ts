// @io
import { once } from "node:events";
import {
  accessSync,
  constants,
  type Dirent,
  existsSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
} from "node:fs";
import { mkdtemp, readFile, realpath, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, posix, resolve } from "node:path";
import type { Duplex } from "node:stream";
import { spawnProcess } from "@retinue/base/foundation/spawn-process.ts";
import { coversPath } from "@retinue/gate/covers-path.ts";
import { isInside } from "@retinue/gate/permission-policy.ts";
import { findSystemProgram } from "../command/find-system-program.ts";
import type { Invocation } from "./sandbox.ts";
import { socketFilter } from "./socket-filter.ts";
import { escapeName, type HiddenPattern, type WallRules } from "./wall-rules.ts";

/** What holds a process: namespaces of our own helper, those of bubblewrap, or Landlock. From strong to weak. */
export const wallKinds = ["namespaces", "shared-processes", "bubblewrap", "landlock"] as const;
export type WallKind = (typeof wallKinds)[number];

export interface WallPlaces {
  /** Where the process starts. */
  readonly directory: string;
  readonly workingDirectories: readonly string[];
  readonly home: string;
  /** The search path of the process: programs below a home stay where they can be found. */
  readonly path?: string | undefined;
  /** What rules open and close to reading. */
  readonly rules?: WallRules | undefined;
}

export type WallStart =
  | {
      readonly type: "ready";
      readonly kind: WallKind;
      /** Rejects where the wall cannot be had for this process, which then must not start. */
      readonly wrap: (invocation: Invocation, places: WallPlaces) => Promise<Invocation>;
    }
  | { readonly type: "unavailable"; readonly why: string; readonly advice?: string };

/**
 * What runs without the yes of a person or a rule runs behind it: it sees the system's programs and the work, can change
 * nothing, and reaches neither network, nor sockets, nor other processes. Looked for at the first use.
 */
export interface Wall {
  start(): Promise<WallStart>;
}

export interface WallOptions {
  readonly platform?: string;
  readonly architecture?: string;
  /** Finds our own helper; absent means the one that was built for this machine. */
  readonly helper?: () => string | undefined;
  /** Finds `bwrap`; absent means among the system's own programs. */
  readonly find?: () => Promise<string | undefined>;
  /** Those that are tried; absent means all of them. */
  readonly kinds?: readonly WallKind[];
}

export function createWall(options: WallOptions = {}): Wall {
  let started: Promise<WallStart> | undefined;
  return {
    start() {
      started ??= startWall(options);
      return started;
    },
  };
}

/** The line with which the helper says that it started nothing, and its exit code. */
const failureMark = "retinue-wall: ";
const failureCode = 125;

/** Why a process did not run because its wall could not be set up, or undefined. */
export function wallFailure(exitCode: number | undefined, output: string): string | undefined {
  if (exitCode !== failureCode) return undefined;
  const line = output.split("\n").find((text) => text.startsWith(failureMark));
  return line?.slice(failureMark.length);
}

/** What a machine permits is known only by trying: programs may be there and namespaces still be forbidden. */
async function startWall({
  platform = process.platform,
  architecture = process.arch,
  helper = () => findHelper(architecture),
  find = () => findSystemProgram("bwrap"),
  kinds = wallKinds,
}: WallOptions): Promise<WallStart> {
  if (platform !== "linux") return { type: "unavailable", why: `there is none for ${platform}` };
  const own = helper();
  const bubblewrap = kinds.includes("bubblewrap") ? await find() : undefined;
  const failures: string[] = [];
  for (const kind of kinds) {
    const program = kind === "bubblewrap" ? bubblewrap : own;
    if (program === undefined) continue;
    const parts: WallParts = { kind, program, architecture };
    const wrap = createWrap(parts);
    const failure = await tryOut(wrap);
    if (failure === undefined) return { type: "ready", kind, wrap };
    failures.push(failure);
  }
  if (failures.length === 0)
    return {
      type: "unavailable",
      why: `no helper was built for linux-${architecture}, and bwrap is not installed`,
      advice:
        "Install bubblewrap (apt-get install bubblewrap), or build this package where there is a C compiler.",
    };
  return {
    type: "unavailable",
    why: `it does not work here: ${[...new Set(failures)].join("; ")}`,
    advice:
      "The system must allow user namespaces or have Landlock (Linux 6.2); both are often disabled in containers.",
  };
}

/** The helper that the build has put beside the code, whether it runs from the sources or from the package. */
function findHelper(architecture: string): string | undefined {
  // Bundles in the form of CommonJS have no path of their own.
  const here: string | undefined = import.meta.dirname;
  if (here === undefined) return undefined;
  for (let folder = here; dirname(folder) !== folder; folder = dirname(folder)) {
    const program = join(folder, "dist", "native", `wall-linux-${architecture}`);
    if (isRunnable(program)) return program;
    if (existsSync(join(folder, "bin", "retinue.js"))) return undefined;
  }
  return undefined;
}

function isRunnable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

interface WallParts {
  readonly kind: WallKind;
  readonly program: string;
  readonly architecture: string;
}

const tryLimitMs = 10_000;

/** Nothing but a shell that ends immediately: it needs no watchdog and leaves no group behind that would have to be looked for. */
async function tryOut(wrap: Wrap): Promise<string | undefined> {
  const shell = (await findSystemProgram("sh")) ?? "/bin/sh";
  try {
    const {
      file,
      arguments: words,
      sideInput,
    } = await wrap(
      { file: shell, arguments: ["-c", ":"] },
      { directory: "/", workingDirectories: [], home: "/nonexistent" },
    );
    const child = await spawnProcess(file, words, {
      cwd: "/",
      env: {},
      stdio: ["ignore", "ignore", "pipe", "ignore", sideInput === undefined ? "ignore" : "pipe"],
      timeout: tryLimitMs,
      killSignal: "SIGKILL",
    });
    if (sideInput !== undefined) (child.stdio[4] as Duplex).resume().end(sideInput);
    let errors = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      errors = `${errors}${text}`.slice(0, maxErrorLength);
    });
    const [exitCode]: readonly unknown[] = await once(child, "close");
    if (exitCode === 0) return undefined;
    return errors.trim().split("\n")[0] || `it ended with ${exitCode ?? "a signal"}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

const maxErrorLength = 8_192;

type Wrap = (invocation: Invocation, places: WallPlaces) => Promise<Invocation>;

function createWrap(parts: WallParts): Wrap {
  let scratch: Promise<string> | undefined;
  return async (invocation, places) => {
    const view = await viewOf(invocation, places);
    if (parts.kind === "bubblewrap") return bubblewrapInvocation(invocation, parts, view);
    if (parts.kind !== "landlock")
      return helperInvocation(invocation, parts, { ...view, temporary: "/dev/shm" });
    // Without mounts there is no folder in memory; one on disk belongs to this process and goes with it.
    scratch ??= makeScratch();
    return helperInvocation(invocation, parts, { ...view, temporary: await scratch });
  };
}

async function makeScratch(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "retinue-wall-")));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** What a process sees, with all links followed. */
interface View {
  readonly directory: string;
  /** The work, and what rules let be read. */
  readonly work: readonly string[];
  readonly covers: readonly string[];
  readonly shows: readonly string[];
  readonly hides: readonly HiddenPattern[];
}

/** Sockets and files of other programs and people, and what is not part of the system. */
const foreignFolders = ["/home", "/root", "/run", "/mnt", "/media", "/srv"];
const temporaryFolders = ["/tmp", "/var/tmp"];
const systemFolders = ["/usr", "/bin", "/lib", "/etc"];

/** Where people keep keys: never seen, not even where the work is their home. */
const keyPlaces =
  `.ssh .gnupg .aws .azure .kube .docker .netrc .git-credentials .npmrc .pypirc .password-store .terraform.d
  .claude.json .claude/.credentials.json .claude/retinue/mcp-credentials .config/gcloud .config/gh .config/hub .config/op .config/git/credentials
  .config/retinue .config/rclone .cargo/credentials .cargo/credentials.toml .gem/credentials .local/share/keyrings
  .m2/settings.xml .gradle/gradle.properties .config/google-chrome .config/chromium .mozilla .thunderbird`.split(
    /\s+/,
  );

async function viewOf(invocation: Invocation, places: WallPlaces): Promise<View> {
  const { workingDirectories, home, rules = { show: [], hide: [] } } = places;
  const homes = await existing([home]);
  const work = await existing([places.directory, ...workingDirectories, ...rules.show]);
  const foreign = (await existing([...foreignFolders, ...homes])).filter(
    (folder) => !systemFolders.some((system) => isInside(system, [folder])),
  );
  // What rules let be read as a whole is not covered; sockets cannot be reached there either.
  const covers = outermost(foreign.filter((folder) => !isInside(folder, [...work, ...temporaryFolders])));
  const needed = [
    ...(await programFolders(places.path, homes)),
    ...(await Promise.all(homes.map(gitSettings))).flat(),
    ...(await Promise.all(work.map(repositoryFolders))).flat(),
    dirname(invocation.file),
    "/run/current-system",
  ];
  const shows = outermost([...work, ...(await existing(needed))]);
  const keys = homes.flatMap((folder) => keyPlaces.map((name) => join(folder, name)));
  const named = new Set([...work, ...rules.show]);
  const secret = (await existing(keys)).filter(
    (place) => !named.has(place) && !work.some((folder) => isInside(folder, [place])),
  );
  const ruled = await Promise.all(rules.hide.map((pattern) => realPatterns(pattern, { work, covers })));
  return {
    directory: await realpath(places.directory),
    work: outermost(work),
    covers,
    shows,
    hides: [...secret.map((base) => ({ base, names: [] })), ...ruled.flat()],
  };
}

/** The real paths of what is there. */
async function existing(paths: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(
    [...new Set(paths)].map((path) => realpath(path).catch((): undefined => undefined)),
  );
  return [...new Set(found.filter((path) => path !== undefined))];
}

function outermost(paths: readonly string[]): readonly string[] {
  const all = [...new Set(paths)];
  return all.filter(
    (path) =>
      !isInside(
        path,
        all.filter((other) => other !== path),
      ),
  );
}

/** Programs of a home are shown with the installation around them: `~/.nvm/versions/node/v24` for its `bin`. */
async function programFolders(
  path: string | undefined,
  homes: readonly string[],
): Promise<readonly string[]> {
  const entries = await existing((path ?? "").split(":").filter((entry) => entry.startsWith("/")));
  return entries.flatMap((entry) => {
    const around = dirname(entry);
    const isInstallation = /^(?:s?bin|shims)$/.test(posix.basename(entry));
    const isTooWide = [...homes, ...foreignFolders].some((folder) => isInside(folder, [around]));
    return isInstallation && !isTooWide ? [around] : [entry];
  });
}

/** The person's own settings of git, and the files that they name. */
async function gitSettings(home: string): Promise<readonly string[]> {
  const found = new Set<string>();
  const read = async (file: string, depth: number): Promise<void> => {
    if (found.has(file) || depth > 2) return;
    found.add(file);
    const text = (await readFile(file, "utf8").catch(() => "")).slice(0, 64 * 1024);
    for (const [, name = "", value = ""] of text.matchAll(
      /^\s*(?:\[[^\]\n]*\]\s*)?(path|excludesfile|attributesfile|ignorerevsfile|mailmap\.file)\s*=\s*"?([^"\n]+?)"?\s*$/gim,
    )) {
      const named = value.startsWith("~/") ? join(home, value.slice(2)) : resolve(dirname(file), value);
      if (name.toLowerCase() === "path") await read(named, depth + 1);
      else found.add(named);
    }
  };
  await read(join(home, ".gitconfig"), 0);
  await read(join(home, ".config", "git", "config"), 0);
  return [...found, join(home, ".config", "git")];
}

/** Where git finds what it needs to read a working folder: the top of it, and for linked ones the repository itself. */
async function repositoryFolders(folder: string): Promise<readonly string[]> {
  for (let top = folder; ; top = dirname(top)) {
    const entry = join(top, ".git");
    const found = await stat(entry).catch(() => undefined);
    if (found !== undefined) {
      const own = found.isDirectory()
        ? entry
        : resolve(top, /^gitdir: (.+?)\s*$/.exec(await beginningOf(entry))?.[1] ?? ".git");
      const common = resolve(own, (await beginningOf(join(own, "commondir"))).trim() || ".");
      const others = (await beginningOf(join(common, "objects", "info", "alternates"))).split("\n");
      const stores = others
        .map((line) => resolve(common, "objects", line))
        .filter((store) => posix.basename(store) === "objects");
      const repositories = [own, common].filter((one) => existsSync(join(one, "HEAD")));
      return [...(dirname(top) === top ? [] : [top]), ...repositories, ...stores];
    }
    if (dirname(top) === top) return [];
  }
}

async function beginningOf(file: string): Promise<string> {
  const text = await readFile(file, "utf8").catch(() => "");
  return text.slice(0, 4_096);
}

/** A pattern at its real place; one for any depth is looked for only where something can be seen. */
async function realPatterns(
  { base, names }: HiddenPattern,
  { work, covers }: Pick<View, "work" | "covers">,
): Promise<readonly HiddenPattern[]> {
  const real = await realpath(base).catch((): undefined => undefined);
  if (real === undefined) return [];
  if (names[0] !== "**") return [{ base: real, names }];
  const isSeen = real !== "/" && !isInside(real, covers) && !isInside(real, temporaryFolders);
  const roots = work.flatMap((show) => {
    if (isInside(show, [real])) return [show];
    return isInside(real, [show]) ? [real] : [];
  });
  // What is shown may itself be, or lie in, what the pattern means.
  const itself = roots.filter((root) => root !== real && coversPath(names.join("/"), real, root));
  return [
    ...itself.map((root) => ({ base: root, names: [] })),
    ...outermost([...roots, ...(isSeen ? [real] : [])]).map((root) => ({ base: root, names })),
  ];
}

function helperInvocation(
  { file, arguments: words }: Invocation,
  { kind, program }: WallParts,
  { directory, work, covers, shows, hides, temporary }: View & { readonly temporary: string },
): Invocation {
  const isLandlock = kind === "landlock";
  const each = (option: string, values: readonly string[]): readonly string[] =>
    values.flatMap((value) => [option, value]);
  return {
    file: program,
    arguments: [
      ...["--mode", isLandlock ? "landlock" : "namespaces", "--keep", "3"],
      ...(kind === "shared-processes" ? ["--shared-proc"] : []),
      ...each("--cover", isLandlock ? [...covers, ...temporaryFolders] : covers),
      ...each("--scratch", isLandlock ? [temporary] : temporaryFolders),
      ...each("--show", shows),
      ...each("--search", work),
      ...each("--hide", hides.map(patternText)),
      // git would refresh its index on the way, and complain that it cannot.
      ...each("--set", [`TMPDIR=${temporary}`, "GIT_OPTIONAL_LOCKS=0"]),
      ...["--chdir", directory, "--", file, ...words],
    ],
  };
}

function patternText({ base, names }: HiddenPattern): string {
  return posix.join(escapeName(base), ...names);
}

/** The same with bubblewrap, which knows no patterns: what they match is looked for here. */
function bubblewrapInvocation(
  invocation: Invocation,
  { program, architecture }: WallParts,
  { directory, work, covers, shows, hides }: View,
): Invocation {
  const filter = socketFilter(architecture);
  const isRoot = process.getuid?.() === 0;
  const found = findHidden(hides, work);
  const covered = [...covers, ...temporaryFolders.filter((folder) => existsSync(folder)), "/dev"];
  return {
    file: program,
    arguments: [
      ...["--die-with-parent", "--unshare-net", "--unshare-ipc", "--unshare-pid", "--unshare-uts"],
      ...["--cap-drop", "ALL", ...(isRoot ? ["--cap-add", "CAP_DAC_READ_SEARCH"] : [])],
      ...["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"],
      ...[...covers, ...temporaryFolders.filter((folder) => existsSync(folder))].flatMap((folder) => [
        "--tmpfs",
        folder,
      ]),
      ...shows.filter((show) => isInside(show, covered)).flatMap((show) => ["--ro-bind", show, show]),
      ...found.flatMap(({ path, isFolder }) =>
        isFolder ? ["--tmpfs", path, "--remount-ro", path] : ["--ro-bind", "/dev/null", path],
      ),
      ...covers.flatMap((folder) => ["--remount-ro", folder]),
      ...["--setenv", "TMPDIR", "/dev/shm", "--setenv", "GIT_OPTIONAL_LOCKS", "0"],
      ...(filter === undefined ? [] : ["--seccomp", "4"]),
      ...["--chdir", directory, "--", invocation.file, ...invocation.arguments],
    ],
    sideInput: filter,
  };
}

const maxLooked = 200_000;

interface HiddenPlace {
  readonly path: string;
  readonly isFolder: boolean;
}

/** What patterns match, and the other names of these files in the work. */
function findHidden(hides: readonly HiddenPattern[], work: readonly string[]): readonly HiddenPlace[] {
  let looked = 0;
  const visit = (folder: string, take: (path: string, entry: Dirent) => boolean): void => {
    if (!isRunnable(folder)) return;
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      looked += 1;
      if (looked > maxLooked) throw new Error("there are too many files to search for hidden ones");
      const path = join(folder, entry.name);
      if (take(path, entry) && entry.isDirectory()) visit(path, take);
    }
  };
  const found = new Map<string, HiddenPlace>();
  const linked = new Set<string>();
  const remember = (path: string): void => {
    const { ino, dev, nlink } = statSync(path);
    if (nlink > 1) linked.add(`${dev}:${ino}`);
  };
  const add = (path: string): void => {
    const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory();
    if (isFolder === undefined) return;
    const real = realpathSync(path);
    found.set(real, { path: real, isFolder });
    if (!isFolder) remember(real);
    else
      visit(real, (inner, entry) => {
        if (entry.isFile()) remember(inner);
        return true;
      });
  };
  for (const { base, names } of hides) {
    if (names.length === 0) add(base);
    else
      visit(base, (path) => {
        const isMeant = coversPath(names.join("/"), base, path);
        if (isMeant) add(path);
        return !isMeant;
      });
  }
  if (linked.size > 0)
    for (const folder of work)
      visit(folder, (path, entry) => {
        const own = entry.isFile() ? statSync(path) : undefined;
        if (own !== undefined && linked.has(`${own.dev}:${own.ino}`))
          found.set(path, { path, isFolder: false });
        return !found.has(path);
      });
  return [...found.values()];
}
