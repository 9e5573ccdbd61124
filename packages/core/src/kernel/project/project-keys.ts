// @io
import { chmodSync, existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { findKeychain, type Keychain } from "@retinue/base/storage/find-keychain.ts";
import { changeJson, valueAt } from "@retinue/config/settings/approve-mcp-servers.ts";
import { readEnvironment } from "@retinue/config/settings/read-environment.ts";
import { type AccountModels, listAccountModels } from "../../models/anthropic/list-account-models.ts";
import { findLocalServers } from "../../models/find-local-servers.ts";
import { chooseLocalModel, localPlaces } from "../../models/local-models.ts";
import { chooseAdapter } from "../../models/model-factory.ts";
import { keyNames } from "./check-machine.ts";
import type { ProjectFacts } from "./project-facts.ts";

export type { AccountModels } from "../../models/anthropic/list-account-models.ts";

/** Where a key comes from, and what could be used instead of one. */
export interface KeyOverview {
  /** The variable or setting that gives the key of the default provider; absent where none does. */
  readonly source?: string;
  /** Every variable with a key of some provider. */
  readonly set: readonly string[];
  /** Variables that hold a key of the default provider, but have another name than is looked for. */
  readonly otherNames: readonly string[];
  /** A server of models on this machine, and the model of it that would answer. */
  readonly local?: { readonly name: string; readonly address: string; readonly model: string };
  /** Whether this machine has a keychain. */
  readonly hasKeychain: boolean;
  /** The person's own settings. */
  readonly settingsFile: string;
}

export type KeyPlace = "settings" | "keychain";

/** The key for the default provider, as the person's own settings keep it. No project's file is ever written. */
export interface ProjectKeys {
  look(): Promise<KeyOverview>;
  /** What the provider says to a key, to the one in force unless another is given; undefined where there is none. */
  check(options?: {
    readonly key?: string;
    readonly signal?: AbortSignal;
  }): Promise<AccountModels | undefined>;
  /** Keeps a key, and returns the place in words. Refuses where it would not be the one that counts. */
  save(key: string, place: KeyPlace): Promise<string>;
  /** Takes the key from a variable of another name from now on. */
  useVariable(name: string): Promise<string>;
  /** Names the model that answers where nothing else is named. */
  useModel(model: string): Promise<string>;
  /** Forgets what was kept here; false where there was nothing. */
  remove(): Promise<boolean>;
}

const keyVariable = "ANTHROPIC_API_KEY";

/** Names under which people have a key of this provider for other programs. */
const otherNames = ["ANTHROPIC_KEY", "CLAUDE_API_KEY", "CLAUDE_KEY", "ANTHROPIC_API_TOKEN"] as const;

export function projectKeys(gather: () => Promise<ProjectFacts>): ProjectKeys {
  return {
    async look() {
      const facts = await gather();
      const { environment, discovered } = facts;
      const source = sourceOf(facts);
      const local = await findLocal(facts);
      return {
        source,
        set: keyNames.filter((name) => isSet(environment, name)),
        otherNames: otherNames.filter((name) => isSet(environment, name)),
        local,
        hasKeychain: keychainOf(facts) !== undefined,
        settingsFile: discovered.paths.settings.user,
      };
    },
    async check({ key, signal } = {}) {
      if (key !== undefined) refuseNoKey(key);
      const { environment } = await gather();
      const asked =
        key === undefined
          ? environment
          : { ...environment, [keyVariable]: key, ANTHROPIC_AUTH_TOKEN: undefined };
      return listAccountModels(asked, signal);
    },
    async save(given, place) {
      const facts = await gather();
      const key = given.trim();
      refuseNoKey(key);
      refuseToken(facts);
      if (place === "settings") {
        const file = await writeSettings(facts, [{ path: ["env", keyVariable], value: key }]);
        return `${file}, which only you can read`;
      }
      const keychain = keychainOf(facts);
      if (keychain === undefined)
        throw notKept("this machine has no keychain", "Keep it in your settings instead.");
      refuseVariable(facts);
      const command = keychain.readCommand(keyVariable);
      refuseOtherHelper(facts, command);
      if (!(await keychain.write(keyVariable, key)))
        throw notKept(
          "the keychain did not accept it",
          "Unlock it, or keep the key in your settings instead.",
        );
      await writeSettings(facts, [{ path: ["apiKeyHelper"], value: command }]);
      return "the keychain";
    },
    async useVariable(name) {
      const facts = await gather();
      if (!isSet(facts.environment, name) || !/^[A-Za-z_]\w*$/.test(name))
        throw notKept(
          `the environment variable ${name} is not set`,
          "Pass the name of a variable that is set.",
        );
      refuseToken(facts);
      refuseVariable(facts);
      const command = `printf %s "$${name}"`;
      refuseOtherHelper(facts, command);
      return writeSettings(facts, [{ path: ["apiKeyHelper"], value: command }]);
    },
    useModel: async (model) => writeSettings(await gather(), [{ path: ["model"], value: model }]),
    async remove() {
      const facts = await gather();
      const keychain = keychainOf(facts);
      const ours = ownHelpers(keychain);
      let isRemoved = false;
      await writeSettings(facts, (value) => {
        const helper = valueAt(value, ["apiKeyHelper"]);
        const paths = [
          ...(valueAt(value, ["env", keyVariable]) === undefined ? [] : [["env", keyVariable]]),
          ...(typeof helper === "string" && ours(helper) ? [["apiKeyHelper"]] : []),
        ];
        isRemoved = paths.length > 0;
        return paths.map((path) => ({ path, value: undefined }));
      });
      if (isRemoved) await keychain?.remove(keyVariable);
      return isRemoved;
    },
  };
}

function isSet(environment: ProjectFacts["environment"], name: string): boolean {
  return (environment[name] ?? "").trim() !== "";
}

function sourceOf({ environment, discovered }: ProjectFacts): string | undefined {
  const { plain } = discovered.settings.settings;
  const variable = ["ANTHROPIC_AUTH_TOKEN", keyVariable].find((name) => isSet(environment, name));
  if (variable !== undefined) return variable;
  if (plain.apiKeyHelper !== undefined) return "apiKeyHelper";
  const { adapter } = chooseAdapter({ id: "default" }, environment);
  return adapter === "anthropic" ? "ANTHROPIC_BASE_URL" : undefined;
}

async function findLocal({ environment }: ProjectFacts): Promise<KeyOverview["local"]> {
  if (readEnvironment(environment).options.localModels === false) return undefined;
  const local = chooseLocalModel(await findLocalServers(localPlaces(environment)));
  if (local === undefined) return undefined;
  const { provider, id, server } = local;
  return { name: server.name, address: server.address, model: `${provider}/${id}` };
}

function keychainOf({ environment, platform }: ProjectFacts): Keychain | undefined {
  return findKeychain({ service: "retinue-key", environment, platform });
}

/** Whether a helper command was written here. */
function ownHelpers(keychain: Keychain | undefined): (helper: string) => boolean {
  const own = new Set<string>([
    ...otherNames.map((name) => `printf %s "$${name}"`),
    ...(keychain === undefined ? [] : [keychain.readCommand(keyVariable)]),
  ]);
  return (helper) => own.has(helper);
}

/** What is pasted may have anything in it; a key is one word of letters that a header can have. */
function refuseNoKey(key: string): void {
  if (/^[\x21-\x7e]{8,500}$/.test(key)) return;
  throw notKept(
    key === ""
      ? "nothing was given"
      : "this is not a key: it is too short, or contains spaces or other invalid characters",
    "Paste only the key, exactly as the provider showed it.",
  );
}

/** A token goes before a key, so a key beside it would be kept for nothing. */
function refuseToken({ environment }: ProjectFacts): void {
  if (isSet(environment, "ANTHROPIC_AUTH_TOKEN"))
    throw notKept("ANTHROPIC_AUTH_TOKEN is set and takes precedence over a key", "Unset it first.");
}

function refuseVariable({ environment }: ProjectFacts): void {
  if (isSet(environment, keyVariable))
    throw notKept(
      `${keyVariable} is set and takes precedence over it`,
      "Unset it first, or keep the key in your settings, which take precedence over it.",
    );
}

function refuseOtherHelper({ discovered }: ProjectFacts, command: string): void {
  const helper = discovered.settings.settings.plain.apiKeyHelper;
  const isVariable = ownHelpers(undefined);
  if (helper === undefined || helper === command || isVariable(helper)) return;
  throw notKept("your settings name another apiKeyHelper", "Remove it there first.");
}

type Changes = Parameters<typeof changeJson>[1];

async function writeSettings(
  { discovered }: ProjectFacts,
  changes: ReturnType<Changes> | Changes,
): Promise<string> {
  const file = discovered.paths.settings.user;
  // A settings file that lives in a repository, as people keep dot files, is one commit away from being public.
  let folder = dirname(existsSync(file) ? realpathSync(file) : file);
  while (dirname(folder) !== folder) {
    if (existsSync(join(folder, ".git")))
      throw notKept(
        `${file} is in the git repository ${folder}, where it could be committed`,
        `Set ${keyVariable} in the environment instead.`,
      );
    folder = dirname(folder);
  }
  const outcome = await changeJson(file, typeof changes === "function" ? changes : () => changes, {
    mode: 0o600,
  });
  if (outcome.type === "refused") throw notKept(outcome.why);
  // What was written before, with other rights, may be what was wanted.
  if (existsSync(file)) chmodSync(file, 0o600);
  return file;
}

function notKept(why: string, advice?: string): RetinueError {
  return new RetinueError(
    "not-written",
    `Nothing was changed: ${why}.`,
    advice === undefined ? {} : { advice },
  );
}
