import { existsSync } from "node:fs";
import { runProcess } from "../foundation/start-process.ts";

/** The system's own place for secrets. A secret never is an argument of a program, as others can see those. */
export interface Keychain {
  read(account: string): Promise<string | undefined>;
  /** False where the keychain did not accept it. */
  write(account: string, secret: string): Promise<boolean>;
  remove(account: string): Promise<void>;
  /** A line for a shell that prints the secret. */
  readCommand(account: string): string;
}

const limitMs = 5_000;

interface KeychainFacts {
  /** What the secrets are for; each service has accounts of its own. */
  readonly service: "retinue-mcp" | "retinue-key";
  readonly platform?: NodeJS.Platform;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Instead of the program at its usual place. */
  readonly program?: string;
}

/** The keychain of this machine, or undefined: macOS has one, Linux where `secret-tool` is installed and a desktop session runs. */
export function findKeychain({
  service,
  platform = process.platform,
  environment,
  program,
}: KeychainFacts): Keychain | undefined {
  if (environment["RETINUE_MCP_KEYCHAIN"] === "0") return undefined;
  if (platform === "darwin") {
    const file = program ?? "/usr/bin/security";
    return existsSync(file) ? macKeychain(service, file, runner(file, environment)) : undefined;
  }
  if (platform !== "linux" || environment["DBUS_SESSION_BUS_ADDRESS"] === undefined) return undefined;
  const file = program ?? "/usr/bin/secret-tool";
  return existsSync(file) ? linuxKeychain(service, file, runner(file, environment)) : undefined;
}

type Run = (words: readonly string[], input?: string) => Promise<string | undefined>;

/** What the program prints, or undefined where it fails. */
function runner(file: string, environment: Readonly<Record<string, string | undefined>>): Run {
  const passed = ["HOME", "USER", "LANG", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY"];
  const kept = passed.flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return async (words, input = "") => {
    const { exitCode, stdout } = await runProcess({
      file,
      arguments: words,
      directory: "/",
      environment: Object.fromEntries(kept),
      signal: AbortSignal.timeout(limitMs),
      timeLimitMs: limitMs,
      input,
    });
    return exitCode === 0 ? stdout : undefined;
  };
}

const labels = { "retinue-mcp": "Retinue: MCP server", "retinue-key": "Retinue: key of a model" } as const;

function linuxKeychain(service: KeychainFacts["service"], file: string, run: Run): Keychain {
  const words = (account: string): readonly string[] => ["service", service, "account", account];
  return {
    read: async (account) => (await run(["lookup", ...words(account)]))?.trim() || undefined,
    async write(account, secret) {
      await run(["store", `--label=${labels[service]}`, ...words(account)], secret);
      // A keyring that is locked or not there may say yes and keep nothing.
      return (await run(["lookup", ...words(account)]))?.trim() === secret;
    },
    remove: async (account) => void (await run(["clear", ...words(account)])),
    readCommand: (account) => [file, "lookup", ...words(account)].join(" "),
  };
}

/** `security -i` reads its commands from stdin; the secret is in hex, so nothing in it means anything to its reader. */
function macKeychain(service: KeychainFacts["service"], file: string, run: Run): Keychain {
  const read = async (account: string): Promise<string | undefined> => {
    const found = await run(["find-generic-password", "-s", service, "-a", account, "-w"]);
    return found === undefined ? undefined : Buffer.from(found.trim(), "hex").toString("utf8") || undefined;
  };
  return {
    read,
    async write(account, secret) {
      const hex = Buffer.from(secret).toString("hex");
      await run(["-i"], `add-generic-password -U -s ${service} -a ${account} -w ${hex}\n`);
      return (await read(account)) === secret;
    },
    remove: async (account) => void (await run(["delete-generic-password", "-s", service, "-a", account])),
    readCommand: (account) =>
      `${file} find-generic-password -s ${service} -a ${account} -w | /usr/bin/xxd -r -p`,
  };
}
