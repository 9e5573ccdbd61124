// @io
import { accessSync, constants, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { resolveModelReference } from "@retinue/config/models/select-subagent-model.ts";
import { readEnvironment } from "@retinue/config/settings/read-environment.ts";
import { runOwnGitNow } from "@retinue/gate/git/run-own-git.ts";
import { type AccountModels, listAccountModels } from "../../models/anthropic/list-account-models.ts";
import { createSandboxRuntime } from "../../tools/sandbox/sandbox-runtime.ts";
import { readSandboxSettings } from "../../tools/sandbox/sandbox-settings.ts";
import { findIsolation } from "./find-isolation.ts";
import type { Checkup, DoctorFacts } from "./project-doctor.ts";

/** What agents need of the machine. */
export interface MachineCheckups {
  readonly folder: Checkup;
  readonly keys: Checkup;
  /** Variables of the environment that steer this product and cannot be read. */
  readonly variables: readonly Checkup[];
  readonly models: Checkup;
  /** Programs and sandboxes, which are tried. */
  readonly programs: readonly Checkup[];
}

export async function checkMachine(facts: DoctorFacts, signal?: AbortSignal): Promise<MachineCheckups> {
  const account = await listAccountModels(facts.environment, signal);
  return {
    folder: checkConfigDirectory(facts),
    keys: checkKeys(facts, account),
    variables: readEnvironment(facts.environment).issues.map(({ message, advice }) => ({
      name: "variables",
      state: "warning",
      text: message,
      advice,
    })),
    models: checkModels(facts, account),
    programs: [
      checkGit(facts),
      await checkSandbox(facts),
      await checkIsolation(facts),
      ...checkPlatform(facts),
    ],
  };
}

function checkConfigDirectory({ discovered, nameOf }: DoctorFacts): Checkup {
  const folder = discovered.paths.configDirectory;
  const name = "folder";
  const shown = nameOf(folder);
  const stats = statSync(folder, { throwIfNoEntry: false });
  if (stats === undefined) {
    return {
      name,
      state: "ok",
      text: `${shown} does not exist yet; it is created when it is first needed.`,
    };
  }
  if (!stats.isDirectory()) {
    const advice = "Move that file, or set CLAUDE_CONFIG_DIR to another folder.";
    return { name, state: "error", text: `${shown} is not a folder.`, advice };
  }
  if (!may(folder, constants.R_OK | constants.X_OK)) {
    const advice = `Make it readable: chmod u+rwx ${shown}`;
    return { name, state: "error", text: `${shown} cannot be read.`, advice };
  }
  if (may(folder, constants.W_OK)) return { name, state: "ok", text: `${shown} can be read and written.` };
  const advice = `Make it writable: chmod u+w ${shown}`;
  return { name, state: "warning", text: `${shown} can be read, but not written.`, advice };
}

export const keyNames = [
  "ANTHROPIC_API_KEY",
  "ANTHROPIC_AUTH_TOKEN",
  "OPENAI_API_KEY",
  "GOOGLE_GENERATIVE_AI_API_KEY",
  "GEMINI_API_KEY",
  "AWS_BEARER_TOKEN_BEDROCK",
  "OPENROUTER_API_KEY",
] as const;

/** Whether keys are set, and whether Anthropic's is accepted; never what they are. */
function checkKeys({ discovered, environment }: DoctorFacts, account: AccountModels | undefined): Checkup {
  const { plain } = discovered.settings.settings;
  const found = [
    ...keyNames.filter((name) => (environment[name] ?? "").trim() !== ""),
    ...(plain.apiKeyHelper === undefined ? [] : ["apiKeyHelper of the settings"]),
  ];
  const name = "keys";
  const set = `Set: ${found.join(", ")}.`;
  if (account?.type === "refused")
    return {
      name,
      state: "error",
      text: `${set} ${account.host} refuses the key (status ${account.status}).`,
      advice: "Check that the key is complete, not revoked, and meant for this address.",
    };
  if (account?.type === "unknown")
    return {
      name,
      state: "note",
      text: `${set} The key could not be checked with ${account.host}: ${account.why}.`,
    };
  if (account?.type === "listed")
    return { name, state: "ok", text: `${set} ${account.host} accepts the key.` };
  if (found.length > 0) return { name, state: "ok", text: set };
  return {
    name,
    state: "warning",
    text: "No API key is configured.",
    advice:
      "Save one with `retinue auth login`, or set ANTHROPIC_API_KEY or the key of the provider you use.",
  };
}

function checkModels({ aliases }: DoctorFacts, account: AccountModels | undefined): Checkup {
  const name = "models";
  const resolved = ["sonnet", "opus", "haiku"].map((alias) => {
    const model = resolveModelReference({ type: "alias", alias }, { aliases });
    return { alias, model };
  });
  const unclear = resolved.find(({ model }) => model.type === "unclear");
  if (unclear?.model.type === "unclear") {
    const advice = `Fix ANTHROPIC_DEFAULT_${unclear.alias.toUpperCase()}_MODEL.`;
    return { name, state: "error", text: `${unclear.alias}: ${unclear.model.why}.`, advice };
  }
  const words = resolved.map(
    ({ alias, model }) => `${alias} = ${model.type === "model" ? model.id : "inherit"}`,
  );
  const text = `${words.join(", ")}.`;
  if (account?.type !== "listed" || !account.isWhole) return { name, state: "ok", text };
  const isListed = (id: string): boolean =>
    account.ids.some((listed) => listed === id || listed.startsWith(`${id}-`));
  const missing = resolved.flatMap(({ model }) =>
    model.type === "model" && model.provider === undefined && !isListed(model.id) ? [model.id] : [],
  );
  if (missing.length === 0) return { name, state: "ok", text: `${text} The key can use them.` };
  return {
    name,
    state: "warning",
    text: `${text} ${account.host} does not list ${missing.join(", ")}.`,
    advice: "Set ANTHROPIC_DEFAULT_SONNET_MODEL, _OPUS_MODEL or _HAIKU_MODEL to a model that it has.",
  };
}

function checkGit({ environment, discovered }: DoctorFacts): Checkup {
  const name = "git";
  const { cwd, projectRoot } = discovered.paths;
  const version = runOwnGitNow({
    directory: tmpdir(),
    words: ["--version"],
    environment,
    folders: [cwd, projectRoot],
  });
  if (version !== undefined) return { name, state: "ok", text: `${version.trim()}.` };
  const advice = "Install git, and make sure that it is on the PATH.";
  return { name, state: "warning", text: "git could not be run; `isolation: worktree` needs it.", advice };
}

/** Where settings ask for the sandbox it is started and tried, for only that shows whether commands can run in it. */
async function checkSandbox({ platform, environment, discovered }: DoctorFacts): Promise<Checkup> {
  const name = "sandbox";
  const settings = readSandboxSettings(discovered.settings.settings.plain.sandbox);
  if (settings.enabled) {
    await using runtime = createSandboxRuntime();
    const start = await runtime.start(settings);
    if (start.type === "ready")
      return { name, state: "ok", text: "Commands run in a sandbox, and it works." };
    const { why, advice } = start;
    return settings.mayRunUnprotected
      ? { name, state: "warning", text: `Commands run without a sandbox: ${why}.`, advice }
      : { name, state: "error", text: `No command can run: ${why}.`, advice };
  }
  const off = "Commands run without a sandbox (`sandbox.enabled` is not set)";
  const program = sandboxPrograms.get(platform);
  if (program === undefined) return { name, state: "note", text: `${off}; there is none for ${platform}.` };
  const folders = (environment["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const isThere = folders.some((folder) => may(join(folder, program), constants.X_OK));
  return { name, state: "note", text: `${off}; ${program} is ${isThere ? "there" : "not on the PATH"}.` };
}

/** Whether what runs without the yes of a person or a rule is also kept from anything else; it is tried. */
async function checkIsolation(facts: DoctorFacts): Promise<Checkup> {
  const { isIsolated, text, advice } = await findIsolation(facts);
  return {
    name: "isolation",
    state: isIsolated ? "ok" : "note",
    text,
    advice,
  };
}

function checkPlatform({ platform }: DoctorFacts): readonly Checkup[] {
  const notes = platformNotes(platform);
  return notes.length === 0 ? [] : [{ name: "platform", state: "note", text: notes.join(" ") }];
}

const sandboxPrograms: ReadonlyMap<string, string> = new Map([
  ["linux", "bwrap"],
  ["darwin", "sandbox-exec"],
]);

function may(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

/** What Linux has and a platform has not, each as one sentence; empty on Linux. docs/platforms.md says more. */
export function platformNotes(platform: NodeJS.Platform): readonly string[] {
  if (platform === "linux") return [];
  const name = names.get(platform) ?? platform;
  return [
    `Read-only commands are not isolated on ${name}, so there are more questions in folders that are not trusted.`,
    "After a crash, processes that left their process group are not found and keep running.",
    ...(platform === "win32" ? windowsNotes : []),
    ...(names.has(platform) ? [] : [`${name} is unknown; it is treated like other Unix systems.`]),
  ];
}

const names: ReadonlyMap<string, string> = new Map([
  ["darwin", "macOS"],
  ["win32", "Windows"],
]);

const windowsNotes = [
  "Commands need the bash of Git for Windows (CLAUDE_CODE_GIT_BASH_PATH names another).",
  "Commands keep running when their process is killed: nothing supervises them.",
  "Files inherit the rights of their folder, and the owner of managed settings is not checked.",
  "The permission rules have not been tested there: use only the default mode.",
];
