// @io
import { spawnSync } from "node:child_process";
import { findOwnProgram, searchPathOutside, withoutShims } from "@retinue/base/foundation/resolve-program.ts";
import { type ProcessResult, type RunRequest, runProcess } from "@retinue/base/foundation/start-process.ts";
import { hardenedGit, withoutFilters, withoutPrograms } from "../shell/programs/git-commands.ts";

/** What is started. */
type Started = Pick<RunRequest, "file" | "arguments" | "sideInput">;

export interface OwnGitCall {
  readonly directory: string;
  readonly words: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Programs in these folders are not taken. */
  readonly folders: readonly string[];
  /** Filters that settings name; each is switched off. */
  readonly filters?: readonly string[];
  /** It may ask other machines, by these protocols; absent means none. */
  readonly protocols?: string;
  readonly variables?: Readonly<Record<string, string>>;
  readonly settings?: readonly string[];
  /** Puts the process behind the wall, where there is one. */
  readonly isolate?: (plain: Started) => Promise<Started>;
  readonly input?: string;
  readonly signal?: AbortSignal;
  readonly timeLimitMs?: number;
  readonly maxBytes?: number;
}

/** Variables by which people set in git who they are and where their own settings are. Keys and tokens are none of them. */
const kept =
  /^(?:HOME|USER|LOGNAME|TMPDIR|TZ|XDG_CONFIG_HOME|EMAIL|GIT_CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM)|GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)|GIT_CEILING_DIRECTORIES|SystemRoot|USERPROFILE)$/;

/** What is needed to reach another machine in the person's name. */
const keptForNetwork =
  /^(?:SSH_AUTH_SOCK|SSH_AGENT_PID|SSL_CERT_(?:FILE|DIR)|GIT_SSL_\w+|GIT_SSH|GIT_SSH_COMMAND|GIT_ASKPASS|SSH_ASKPASS|GIT_CONFIG_(?:COUNT|KEY_\d+|VALUE_\d+)|GH_TOKEN|GITHUB_TOKEN|GITLAB_TOKEN|(?:https?|no|all)_proxy)$/i;

/**
 * Runs git for the runtime itself. Every such process starts here: git by its absolute path, with an environment of known
 * names, and with everything switched off that could start a program. Never rejects.
 */
export async function runOwnGit(call: OwnGitCall): Promise<ProcessResult> {
  const { file, arguments: words, ...place } = prepared(call);
  const plain: Started = { file, arguments: words };
  // Where the wall cannot be had for it, git is not started at all.
  const started =
    (await call.isolate?.(plain).catch(() => ({ ...plain, file: "/nonexistent/git" }))) ?? plain;
  return runProcess({
    ...started,
    ...place,
    input: call.input,
    signal: call.signal ?? new AbortController().signal,
    timeLimitMs: call.timeLimitMs ?? 10_000,
    maxBytes: call.maxBytes ?? 16 * 1024 * 1024,
  });
}

/** What a short question to git is answered with, synchronously; undefined where it fails. */
export function runOwnGitNow(
  call: Pick<OwnGitCall, "directory" | "words" | "environment" | "folders">,
): string | undefined {
  const { file, arguments: words, directory, environment } = prepared(call);
  const options = {
    cwd: directory,
    env: environment,
    encoding: "utf8",
    timeout: 5_000,
    killSignal: "SIGKILL",
  } as const;
  const { status, stdout } = spawnSync(file, words, { ...options, stdio: ["ignore", "pipe", "ignore"] });
  return status === 0 ? stdout : undefined;
}

function prepared(call: OwnGitCall) {
  const { directory, words, environment, folders, protocols } = call;
  const searchPath = searchPathOutside(environment["PATH"], [directory, ...folders]);
  const own = withoutShims(searchPath);
  const file = findOwnProgram("git", { searchPath: own, folders: [directory, ...folders] });
  const options = protocols === undefined ? hardenedGit : withoutPrograms;
  return {
    file: file ?? "/nonexistent/git",
    arguments: [
      ...options,
      ...withoutFilters(call.filters ?? []),
      ...(call.settings ?? []).flatMap((setting) => ["-c", setting]),
      ...words,
    ],
    directory,
    environment: {
      ...keptOf(environment, protocols !== undefined),
      PATH: own,
      LC_ALL: "C",
      LANGUAGE: "C",
      GIT_OPTIONAL_LOCKS: "0",
      GIT_TERMINAL_PROMPT: "0",
      GIT_LFS_SKIP_SMUDGE: "1",
      GIT_ALLOW_PROTOCOL: protocols ?? "none",
      ...(protocols === undefined ? { GIT_NO_LAZY_FETCH: "1" } : {}),
      ...call.variables,
    },
  };
}

function keptOf(
  environment: OwnGitCall["environment"],
  withNetwork: boolean,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) =>
      value !== undefined && (kept.test(name) || (withNetwork && keptForNetwork.test(name)))
        ? [[name, value] as const]
        : [],
    ),
  );
}
