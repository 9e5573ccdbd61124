import { randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { misuse } from "../shared/misuse.ts";

export interface HttpToken {
  readonly value: string;
  /** Whether only this process has it yet. */
  readonly isNew: boolean;
}

export interface TokenSources {
  readonly file?: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly platform: NodeJS.Platform;
}

/** The variable that gives the token; it is kept from agents and their commands. */
export const tokenVariable = "RETINUE_MCP_TOKEN";

/** From the file, else from the environment, else made by chance. */
export function loadToken({ file, environment, cwd, platform }: TokenSources): HttpToken {
  if (file !== undefined)
    return { value: check(readToken(resolve(cwd, file), platform), "--token-file"), isNew: false };
  const given = environment[tokenVariable];
  if (given !== undefined && given !== "") return { value: check(given, tokenVariable), isNew: false };
  return { value: randomBytes(32).toString("base64url"), isNew: true };
}

function readToken(file: string, platform: NodeJS.Platform): string {
  try {
    const { mode } = statSync(file);
    if (platform !== "win32" && (mode & 0o077) !== 0) {
      throw misuse(`Other users of this machine can read ${file}.`, `Run \`chmod 600 ${file}\`.`);
    }
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    if (!(error instanceof Error && "code" in error) || error.code === "misuse") throw error;
    throw misuse(`--token-file names a file that cannot be read: ${file}.`, "Check the path.");
  }
}

function check(token: string, source: string): string {
  if (/^[\x21-\x7e]{16,512}$/.test(token)) return token;
  throw misuse(
    `The token of ${source} cannot be used.`,
    "It needs 16 to 512 visible ASCII characters, such as `openssl rand -hex 32` prints.",
  );
}
