// @io
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { errorCode } from "@retinue/base/foundation/file-error.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import type { Keychain } from "@retinue/base/storage/find-keychain.ts";
import { type OwnerLock, takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import type { McpTransport } from "@retinue/config/mcp/mcp-transport.ts";

/** What a login at one server came to. Everything in it is the person's alone. */
export interface McpCredentials {
  readonly serverUrl: string;
  readonly issuer: string;
  readonly authorizationServerUrl: string;
  /** What the authorization server describes itself with. */
  readonly metadata?: object;
  readonly resource?: string;
  readonly client: { readonly client_id: string; readonly client_secret?: string | undefined };
  readonly tokens?: McpTokens;
  /** What the server said it needs besides; the next login asks for it. */
  readonly wantedScope?: string;
}

export interface McpTokens {
  readonly accessToken: string;
  readonly refreshToken?: string;
  readonly scope?: string;
  /** Milliseconds since 1970; absent where the server did not say. */
  readonly expiresAt?: number;
}

export type HttpTransport = Extract<McpTransport, { type: "http" | "sse" }>;

/** Keeps logins, one file for each server, readable by this user alone, or in the system's keychain where there is one. */
export interface CredentialStore {
  read(key: string): Promise<McpCredentials | undefined>;
  write(key: string, credentials: McpCredentials): Promise<void>;
  /** Whether there was something to remove. */
  remove(key: string): Promise<boolean>;
  /** One at a time among all processes of this user. */
  locked<Result>(key: string, work: () => Promise<Result>): Promise<Result>;
}

/**
 * The name under which a login is kept: the address, and which client and authorization server the configuration names. A
 * configuration that names another one must not get the tokens of this one.
 */
export function credentialKey({ url, oauth }: HttpTransport): string {
  const { clientId, clientMetadataUrl, authServerMetadataUrl } = oauth ?? {};
  const parts = [new URL(url).href, clientId, clientMetadataUrl, authServerMetadataUrl];
  return createHash("sha256")
    .update(JSON.stringify(parts.map((part) => part ?? null)))
    .digest("hex")
    .slice(0, 32);
}

const lockLimitMs = 45_000;
const lockPauseMs = 40;

export function createCredentialStore(
  configDirectory: string,
  keychain: Keychain | undefined,
): CredentialStore {
  const directory = join(configDirectory, "retinue", "mcp-credentials");
  const fileOf = (key: string): string => join(directory, `${key}.json`);

  return {
    async read(key) {
      const kept = readJson(fileOf(key));
      if (kept === undefined) return undefined;
      if (kept["keptIn"] !== "keychain") return toCredentials(kept["credentials"]);
      const text = await keychain?.read(key);
      return text === undefined ? undefined : toCredentials(parse(text));
    },
    async write(key, credentials) {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      const { serverUrl } = credentials;
      const isInKeychain = (await keychain?.write(key, JSON.stringify(credentials))) ?? false;
      const kept = isInKeychain ? { keptIn: "keychain", serverUrl } : { keptIn: "file", credentials };
      replaceWholeFile(fileOf(key), `${JSON.stringify({ version: 1, ...kept }, undefined, 2)}\n`);
    },
    async remove(key) {
      const kept = readJson(fileOf(key));
      if (kept?.["keptIn"] === "keychain") await keychain?.remove(key);
      rmSync(fileOf(key), { force: true });
      return kept !== undefined;
    },
    async locked(key, work) {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      const lock = await takeLock(fileOf(key));
      try {
        return await work();
      } finally {
        lock.release();
      }
    },
  };
}

async function takeLock(file: string): Promise<OwnerLock> {
  const signal = AbortSignal.timeout(lockLimitMs);
  while (true) {
    const answer = takeOwnerLock(file);
    if (answer.type === "taken") return answer.lock;
    if (signal.aborted)
      throw new RetinueError(
        "mcp-login-busy",
        `another process has held ${answer.lockFile} for ${lockLimitMs / 1000} s`,
        { advice: "Try again; if no other process runs, remove that file." },
      );
    await sleep(lockPauseMs, AbortSignal.timeout(60_000));
  }
}

function readJson(file: string): JsonRecord | undefined {
  try {
    return parse(readFileSync(file, "utf8"));
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

function parse(text: string): JsonRecord | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** What is damaged counts as no login: a new one repairs it. */
function toCredentials(value: unknown): McpCredentials | undefined {
  if (!isRecord(value) || !isRecord(value["client"])) return undefined;
  const { serverUrl, issuer, authorizationServerUrl, client, tokens } = value;
  if (
    ![serverUrl, issuer, authorizationServerUrl, client["client_id"]].every(
      (text) => typeof text === "string",
    )
  )
    return undefined;
  if (tokens !== undefined && !(isRecord(tokens) && typeof tokens["accessToken"] === "string"))
    return undefined;
  // Written by `write` above; what is used of it was looked at.
  return value as unknown as McpCredentials;
}
