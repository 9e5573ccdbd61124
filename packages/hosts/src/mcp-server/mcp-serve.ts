import { realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { quote } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { startedByRetinue } from "@retinue/base/foundation/started-by-retinue.ts";
import type { SessionOptions as RuntimeSessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { CliHost } from "../shared/cli-host.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { exitCodeOf } from "../shared/end-signal.ts";
import { transcriptsOf } from "../shared/find-named-task.ts";
import { checkFlags, type RunFlags, strayFlag } from "../shared/flags.ts";
import { misuse } from "../shared/misuse.ts";
import { createPrintRuntime } from "../shared/open-print-session.ts";
import { readPrintOptions } from "../shared/print-options.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";
import { createAgentHub } from "./agent-hub.ts";
import { loadToken, tokenVariable } from "./load-token.ts";
import { createPendingCalls } from "./pending-calls.ts";
import { type ServeOptions, type Serving, serveHttp, serveProcess } from "./serve-process.ts";

export interface McpServeOptions extends RunFlags {
  /** `true` where no port was given. */
  readonly http?: true | string;
  readonly tokenFile?: string;
  readonly cwd?: string;
}

/** `retinue mcp serve`: gives any MCP client the agents of this folder, until the client leaves. */
export async function mcpServe(context: CommandContext, options: McpServeOptions): Promise<number> {
  const { session } = context;
  refuseOwnClient(context.host);
  const host = inFolder(context.host, options.cwd);
  checkFlags(session, host.cwd);
  // The main agent of a server says nothing, so that few options of a run mean something.
  const stray = strayFlag(options, "mcp-server", ["http", "tokenFile", "cwd"]);
  if (stray !== undefined)
    throw misuse(`${stray} has no effect on a server.`, "`retinue mcp serve --help` shows what it takes.");
  const request = readPrintOptions(options, { words: [], cwd: host.cwd, session });
  const { tools } = request.session;
  // Those are the tools of the agents; starting one is what the server itself does.
  const own: RuntimeSessionOptions = Array.isArray(tools)
    ? { ...request.session, tools: [...tools, "Agent"] }
    : request.session;
  const place = readPlace(options, host);
  const log = (message: string): void => host.stderr.write(`retinue: ${stripControlCharacters(message)}\n`);
  const stop = Promise.withResolvers<RetinueError>();
  const forget = host.onInterrupt(stop.resolve);
  const questionController = createPendingCalls();
  const { [tokenVariable]: _token, ...environment } = host.environment;
  try {
    await using runtime = createPrintRuntime({ host: { ...host, environment }, session }, options, {
      entrypoint: "mcp",
      canUseTool: questionController.canUseTool,
    });
    await using hub = createAgentHub({
      runtime,
      questionController,
      session: own,
      transcripts: transcriptsOf(host),
      environment,
      log,
    });
    const serving = await begin({ hub, version: host.version, log }, place, host);
    const why = await Promise.race([serving.done, stop.promise]);
    await serving.close();
    return isRetinueError(why) ? exitCodeOf(why) : 0;
  } finally {
    forget();
    host.leaveSoon?.();
  }
}

/** A child agent that could call this server could start agents after all. */
function refuseOwnClient({ environment }: CliHost): void {
  if (environment[startedByRetinue] === undefined) return;
  throw new RetinueError("nested-server", "Retinue does not serve its agents to agents of its own.", {
    advice: "Remove `retinue mcp serve` from this folder's MCP servers; its agents are available without it.",
  });
}

/** Some clients start servers in no folder of their own. */
function inFolder(host: CliHost, folder: string | undefined): CliHost {
  if (folder === undefined) return host;
  try {
    const cwd = realpathSync(resolve(host.cwd, folder));
    if (statSync(cwd).isDirectory()) return { ...host, cwd };
  } catch {
    // Reported below.
  }
  throw misuse(`--cwd names no folder: ${quote(folder, 300)}.`, "Check the path.");
}

type Place =
  | { readonly type: "process" }
  | { readonly type: "http"; readonly port: number; readonly token: ReturnType<typeof loadToken> };

async function begin(options: ServeOptions, place: Place, host: CliHost): Promise<Serving> {
  const { stdin, stderr } = host;
  if (place.type === "process") {
    if (host.streams === undefined) throw misuse("There is no stdin and stdout here.", "Serve with --http.");
    if (stdin.isTerminal) {
      options.log("This is an MCP server on stdin and stdout, to be started by MCP clients; Ctrl+C ends it.");
    }
    return serveProcess(options, host.streams());
  }
  const { port, token } = place;
  const serving = await serveHttp({ ...options, port, token: token.value });
  stderr.write(`retinue: MCP server at ${serving.url}\n`);
  if (token.isNew) stderr.write(`retinue: token ${token.value}\n`);
  return serving;
}

function readPlace({ http, tokenFile }: McpServeOptions, host: CliHost): Place {
  if (http === undefined) return { type: "process" };
  const port = http === true ? 0 : Number(http);
  const token = loadToken({ ...host, ...(tokenFile === undefined ? {} : { file: tokenFile }) });
  return { type: "http", port, token };
}
