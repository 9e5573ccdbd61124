import { randomBytes } from "node:crypto";
import { basename } from "node:path";
import { setFlagsFromString } from "node:v8";
import type { CommandContext, StoreContext } from "../shared/command-context.ts";
import { returnMemory } from "../shared/create-memory-return.ts";
import { exitCodeOf } from "../shared/end-signal.ts";
import { pathsOf } from "../shared/find-named-task.ts";
import { misuse, refuseAgents } from "../shared/misuse.ts";
import { openBrowser } from "../shared/open-browser.ts";
import { openFolder } from "../shared/open-project.ts";
import { ownProgram, userName } from "../shared/own-program.ts";
import { type StudioOptions, startStudio } from "./start-studio.ts";
import { createStudioLogins } from "./studio-logins.ts";

export interface StudioCommandOptions {
  readonly port?: string;
  readonly host?: string;
  readonly token?: string;
  readonly all?: boolean;
  readonly open?: boolean;
}

/** Where the sessions are that are shown, when that is not this user's own folder. */
export interface StudioSource extends AsyncDisposable {
  readonly projects: string;
  readonly project: string;
  readonly act: NonNullable<StudioOptions["act"]>;
}

const memoryMs = 10_000;

const loopback: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "::1"]);

/** `retinue studio --store URL`: the sessions of a store. */
export async function studioOfStore(
  { host, store: address }: StoreContext,
  options: StudioCommandOptions,
): Promise<number> {
  const { withStore } = await import("../shared/with-store.ts");
  const { mirrorStore } = await import("@retinue/cluster/session/mirror-store.ts");
  return withStore(address, (store) => studio({ host }, options, (onError) => mirrorStore(store, onError)));
}

/** `retinue studio`: serves the page until the person ends it. */
export async function studio(
  { host }: Pick<CommandContext, "host">,
  options: StudioCommandOptions,
  openSource?: (onError: (error: unknown) => void) => Promise<StudioSource>,
): Promise<number> {
  const address = options.host ?? "127.0.0.1";
  if (!loopback.has(address) && options.token === undefined)
    throw misuse(
      `--host ${address} lets other computers reach the studio, so it needs a token that you choose.`,
      "Add --token with at least 16 characters, such as `openssl rand -hex 32` prints.",
    );
  refuseAgents(host);
  const { projects, transcripts, teams, tasks } = pathsOf(host);
  const leave = new AbortController();
  const forget = host.onInterrupt((reason) => leave.abort(reason));
  const log = (message: string): void => void host.stderr.write(`retinue: ${message}\n`);
  await using source = await openSource?.((error) =>
    log(error instanceof Error ? error.message : String(error)),
  );
  const own = { projects, ...(options.all === true ? {} : { project: basename(transcripts) }) };
  const running = await startStudio({
    scope: source === undefined ? own : { projects: source.projects, project: source.project, isStore: true },
    ...(source === undefined ? { teams: { teams, tasks } } : { act: source.act }),
    host: address,
    port: readPort(options.port),
    token: readToken(options.token),
    // The browser comes back from a login to this machine, so it has to be here too.
    ...(source === undefined && loopback.has(address)
      ? { logins: createStudioLogins(openFolder(host).mcp, leave.signal) }
      : {}),
    acting: { user: userName(host), program: ownProgram(), environment: host.environment, cwd: host.cwd },
    log,
  });
  // Reading a long session over and over leaves much more garbage than there is to keep.
  setFlagsFromString("--semi-space-growth-factor=1");
  const memory = setInterval(returnMemory, memoryMs).unref();
  host.stdout.write(`Studio: ${running.link}\n`);
  const failure =
    options.open === true
      ? await openBrowser(running.createOpenLink(), { environment: host.environment })
      : undefined;
  if (failure !== undefined) log(`The browser cannot be opened: ${failure}. Open the link yourself.`);
  const isOpened = options.open === true && failure === undefined;
  host.stderr.write(`${isOpened ? "" : "Open the link in a browser. "}Ctrl+C ends the studio.\n`);
  try {
    await new Promise<void>((resolve) => {
      leave.signal.addEventListener("abort", () => resolve(), { once: true });
      host.stdout.closed?.addEventListener("abort", () => resolve(), { once: true });
    });
  } finally {
    forget();
    clearInterval(memory);
    await running.close();
  }
  return leave.signal.aborted ? exitCodeOf(leave.signal.reason) : 0;
}

function readPort(text: string | undefined): number {
  if (text === undefined) return 0;
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw misuse(`Invalid --port ${JSON.stringify(text)}.`, "Write a number from 0 to 65535.");
}

function readToken(given: string | undefined): string {
  if (given === undefined) return randomBytes(24).toString("base64url");
  if (/^[\x21-\x7e]{16,512}$/.test(given)) return given;
  throw misuse(
    "The token of --token cannot be used.",
    "It needs 16 to 512 visible ASCII characters, such as `openssl rand -hex 32` prints.",
  );
}
