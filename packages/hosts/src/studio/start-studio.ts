import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { collectExport } from "@retinue/core/kernel/live/collect-export.ts";
import { followInbox } from "@retinue/core/kernel/live/follow-inbox.ts";
import {
  checkPlace,
  type FollowOptions,
  followAgent,
  followLive,
  followMerge,
  followRun,
  followSession,
  inspectSession,
  readEntry,
  type SessionPlace,
} from "@retinue/core/kernel/live/follow-session.ts";
import {
  type FiguresCache,
  findProjects,
  followSessions,
  type StudioScope,
} from "@retinue/core/kernel/live/follow-sessions.ts";
import { type ActContext, performAct } from "@retinue/core/kernel/live/perform-act.ts";
import type { ActOutcome, ActRequest } from "@retinue/core/kernel/live/session-update.ts";
import { exportPage, loadPage, type PageFiles, pageJson } from "./export-page.ts";
import { findEvals } from "./find-evals.ts";
import { guardRequest, isSame, missingToken, readActRequest, readLoginRequest } from "./guard-request.ts";
import { cookieName, createOpenCodes, type OpenCodes, type StudioKeys, studioKeys } from "./studio-keys.ts";
import type { StudioLogins } from "./studio-logins.ts";

export interface StudioOptions {
  readonly scope: StudioScope;
  /** Where teams are; absent: none are shown. */
  readonly teams?: NonNullable<SessionPlace["teams"]>;
  /** The address to listen on; 127.0.0.1 is reached from this machine only. */
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  readonly token: string;
  readonly acting: Omit<ActContext, "transcripts" | "signal">;
  /** Acts in place of the files' own processes, where sessions are those of a store. */
  readonly act?: (request: ActRequest, user: string) => Promise<ActOutcome>;
  /** Logins at MCP servers of the folder; absent: none are offered. */
  readonly logins?: StudioLogins;
  readonly log: (message: string) => void;
}

export interface Studio {
  /** The address with the token. */
  readonly link: string;
  readonly origin: string;
  /** An address that opens the page once, within a minute, without the token. */
  createOpenLink(): string;
  close(): Promise<void>;
}

const headers = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "cache-control": "no-store",
};

const shell = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Retinue studio</title>
<link rel="stylesheet" href="page.css">
<script src="page.js" defer></script>
</head>
<body><div id="app"><p>Loading…</p></div></body>
</html>
`;

interface ServerState {
  readonly options: StudioOptions;
  readonly page: PageFiles;
  readonly cache: FiguresCache;
  readonly closing: AbortController;
  readonly keys: StudioKeys;
  readonly codes: OpenCodes;
}

/** Serves the page and what it shows; nothing of it is reached without the token. */
export async function startStudio(options: StudioOptions): Promise<Studio> {
  const state: ServerState = {
    options,
    page: loadPage(),
    cache: new Map(),
    closing: new AbortController(),
    keys: studioKeys(options.token),
    codes: createOpenCodes(),
  };
  const server = createServer((request, response) => {
    const { port } = server.address() as AddressInfo; // Listening on a port, the address is never a pipe's name.
    answer(state, request, { response, port }).catch((error: unknown) => fail(state, response, error));
  });
  server.maxConnections = 256;
  await listen(server, options);
  server.on("error", (error) => options.log(error.message));
  const { port } = server.address() as AddressInfo; // As above.
  const origin = `http://${linkHost(options.host)}:${port}`;
  return {
    origin,
    createOpenLink: () => `${origin}/?open=${state.codes.create()}`,
    link: `${origin}/?token=${encodeURIComponent(options.token)}`,
    async close() {
      state.closing.abort(new RetinueError("interrupted", "The studio was closed."));
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

function listen(server: ReturnType<typeof createServer>, { host, port }: StudioOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const reason = error.code === "EADDRINUSE" ? "another program listens there" : error.message;
      reject(
        new RetinueError("cannot-listen", `${host}:${port} cannot be used: ${reason}.`, {
          advice: "Choose another --port or --host, or leave them out.",
        }),
      );
    });
    server.listen(port, host, () => resolve());
  });
}

function linkHost(host: string): string {
  if (host === "0.0.0.0" || host === "::") return hostname();
  return host.includes(":") ? `[${host}]` : host;
}

/** On loopback its two names; otherwise also the addresses and the name of this machine. */
function hostsOf(host: string, port: number): readonly string[] {
  const own = Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? []);
  const isEverywhere = host === "0.0.0.0" || host === "::";
  const names = ["127.0.0.1", "localhost", ...(isEverywhere ? [...own, hostname()] : [host])];
  const hosts = names.map((name) => `${name.includes(":") ? `[${name}]` : name}:${port}`.toLowerCase());
  return [...new Set(hosts)];
}

const publicFiles: ReadonlySet<string> = new Set(["/page", "/page.js", "/page.css", "/favicon.ico"]);

async function answer(
  state: ServerState,
  request: IncomingMessage,
  { response, port }: { readonly response: ServerResponse; readonly port: number },
): Promise<void> {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  // Of what a browser asks for: a path, which is never taken for the name of a host.
  const asked = request.url ?? "/";

  const url = asked.startsWith("/") ? (URL.parse(`http://studio${asked}`) ?? undefined) : undefined;
  if (url === undefined)
    return send(response, 400, "text/plain", "The studio has no page at this address.\n");
  const path = pathOf(url, state.keys);
  const { token, host } = state.options;
  const cookie = { name: cookieName(port), value: state.keys.cookie };
  const given = { isPublic: publicFiles.has(path) || path === "/" };
  const refusal = guardRequest(request.headers, given, { token, cookie, hosts: hostsOf(host, port) });
  if (refusal !== undefined) return send(response, refusal.status, "text/plain", `${refusal.message}\n`);
  if (request.method === "POST" && path === "/api/act") {
    const wanted = await readActRequest(request);
    const query = new URLSearchParams({ project: wanted.project, id: wanted.sessionId });
    const { transcripts } = await placeOf(state, query);
    const { acting } = state.options;
    const done =
      (await state.options.act?.(wanted, acting.user)) ??
      (await performAct(wanted, { ...acting, transcripts, signal: state.closing.signal }));
    send(response, 200, "application/json", JSON.stringify(done));
    return;
  }
  if (request.method === "POST" && path === "/api/login") {
    const address = await loginsOf(state).begin(await readLoginRequest(request));
    send(response, 200, "application/json", JSON.stringify({ address }));
    return;
  }
  if (request.method !== "GET")
    return send(response, 405, "text/plain", "This address cannot be written to.\n");
  return path === "/" ? enter(state, url, { response, port }) : get(state, { url, path }, response);
}

/** Programs ask below `/`, with the token; the page is below its own path, where its cookie is sent. */
function pathOf({ pathname }: URL, { path }: StudioKeys): string {
  if (!pathname.startsWith(path)) return pathname === "/page" ? "/unknown" : pathname;
  return pathname === path ? "/page" : pathname.slice(path.length - 1);
}

/** The token of the link becomes a cookie immediately, so that it is in no address, history or file of the browser. */
function enter(
  { options, keys, codes }: ServerState,
  { searchParams }: URL,
  { response, port }: { readonly response: ServerResponse; readonly port: number },
): void {
  const code = searchParams.get("open");
  const isKnown = code === null ? isSame(searchParams.get("token") ?? "", options.token) : codes.take(code);
  if (isKnown) {
    const cookie = `${cookieName(port)}=${keys.cookie}; Path=${keys.path}; HttpOnly; SameSite=Strict`;
    response.writeHead(303, { location: keys.path, "set-cookie": cookie }).end();
  } else send(response, missingToken.status, "text/plain", `${missingToken.message}\n`);
}

async function get(
  state: ServerState,
  { url, path }: { readonly url: URL; readonly path: string },
  response: ServerResponse,
): Promise<void> {
  switch (path) {
    case "/page":
      return send(response, 200, "text/html", shell);
    case "/page.js":
      return send(response, 200, "text/javascript", state.page.script);
    case "/page.css":
      return send(response, 200, "text/css", state.page.style);
    case "/favicon.ico":
      return send(response, 204, "image/x-icon", "");
    case "/api/evals": {
      const evals = await findEvals(state.options.acting.cwd);
      return send(response, 200, "application/json", pageJson({ evals }));
    }
    case "/api/logins": {
      const servers = (await state.options.logins?.list()) ?? [];
      return send(response, 200, "application/json", JSON.stringify({ servers }));
    }
    case "/api/login": {
      const outcome = await loginsOf(state).ended(url.searchParams.get("server") ?? "");
      return send(response, 200, "application/json", JSON.stringify({ outcome }));
    }
    case "/api/sessions": {
      const { scope, teams } = state.options;
      return stream(response, (follow) =>
        followAll(follow, {
          list: (own) => followSessions(scope, { ...own, cache: state.cache, teams }),
          inbox: (own) => followInbox(scope, own),
        }),
      );
    }
    case "/api/inspection": {
      const inspection = await inspectSession(await placeOf(state, url.searchParams));
      return send(response, 200, "application/json", JSON.stringify(inspection, undefined, 2));
    }
    case "/api/export": {
      const place = await placeOf(state, url.searchParams);
      const page = exportPage(await collectExport(await inspectSession(place), place), state.page);
      response.setHeader(
        "content-disposition",
        `attachment; filename="retinue-${place.sessionId.slice(0, 8)}.html"`,
      );
      return send(response, 200, "text/html", page);
    }
    case "/api/session": {
      const place = await placeOf(state, url.searchParams);
      return stream(response, (follow) => followAll(follow, sessionParts(state, place)));
    }
    case "/api/agent": {
      const place = await placeOf(state, url.searchParams);
      const agentId = url.searchParams.get("agent") ?? "main";
      checkPlace({ ...place, agentId });
      const all = url.searchParams.get("all") === "1";
      return stream(response, (follow) =>
        followAll(follow, {
          ...sessionParts(state, place),
          agent: (own) => followAgent({ ...place, agentId, all }, own),
        }),
      );
    }
    case "/api/entry": {
      const place = await placeOf(state, url.searchParams);
      const agentId = url.searchParams.get("agent") ?? "main";
      checkPlace({ ...place, agentId });
      const entry = await readEntry({ ...place, agentId }, Number(url.searchParams.get("index")));
      if (entry === undefined) return send(response, 404, "text/plain", "There is no such entry.\n");
      return send(response, 200, "application/json", pageJson(entry));
    }
    case "/api/merge": {
      const place = await placeOf(state, url.searchParams);
      return stream(response, (follow) =>
        followAll(follow, { ...sessionParts(state, place), merge: (own) => followMerge(place, own) }),
      );
    }
    case "/api/run": {
      const place = await placeOf(state, url.searchParams);
      const runId = url.searchParams.get("run") ?? "";
      checkPlace({ ...place, runId });
      return stream(response, (follow) =>
        followAll(follow, {
          ...sessionParts(state, place),
          run: (own) => followRun({ ...place, runId }, own),
        }),
      );
    }
    default:
      return send(response, 404, "text/plain", "There is nothing at this address.\n");
  }
}

/** Only projects that are served, and only ids, so that no path leaves the folder. */
async function placeOf(state: ServerState, query: URLSearchParams): Promise<SessionPlace> {
  const { scope } = state.options;
  const project = query.get("project") ?? "";
  const sessionId = query.get("id") ?? "";
  checkPlace({ sessionId });
  if (!(await findProjects(scope)).includes(project))
    throw new RetinueError("misuse", `There is no project ${JSON.stringify(project)} here.`);
  const { teams } = state.options;
  return { transcripts: join(scope.projects, project), sessionId, teams };
}

type Follow = (options: FollowOptions<unknown>) => () => void;

interface PartOptions {
  readonly send: (update: unknown) => void;
  /** Of which part of the stream. */
  readonly onError: (error: unknown, part: string) => void;
}

/** All that is shown of a session comes in one stream, since browsers open only a few to one address. */
function followAll({ send, onError }: PartOptions, parts: Readonly<Record<string, Follow>>): () => void {
  const stops = Object.entries(parts).map(([name, follow]) =>
    follow({ send: (update) => send({ [name]: update }), onError: (error) => onError(error, name) }),
  );
  return () => {
    for (const stop of stops) stop();
  };
}

function sessionParts({ options }: ServerState, place: SessionPlace): Readonly<Record<string, Follow>> {
  return {
    session: (own) => followSession(place, own),
    live: (own) => followLive(place, own),
    inbox: (own) => followInbox(options.scope, own),
  };
}

function loginsOf({ options: { logins } }: ServerState): StudioLogins {
  if (logins === undefined)
    throw new RetinueError("misuse", "This studio cannot start logins.", {
      advice: "Use `retinue mcp login NAME` where the sessions run.",
    });
  return logins;
}

const maxUnread = 16 * 1024 * 1024;
/** The beginning of a long session may be more than that; reading it takes a page a moment. */
const maxUnreadMs = 20_000;

/** Server-sent events until the page goes away. */
function stream(response: ServerResponse, follow: (options: PartOptions) => () => void): void {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  response.flushHeaders();
  let unreadSince: number | undefined;
  response.on("drain", () => {
    unreadSince = undefined;
  });
  const stop = follow({
    send(update) {
      const now = performance.now();
      const isUnread = unreadSince !== undefined && now - unreadSince > maxUnreadMs;
      // A page that does not read, as of a computer that sleeps, begins anew when it reads again.
      if (isUnread && response.writableLength > maxUnread) response.destroy();
      else if (!response.write(`data: ${pageJson(update)}\n\n`)) unreadSince ??= now;
    },
    onError: (error, part) => {
      const message = error instanceof Error ? error.message : String(error);
      response.write(`event: problem\ndata: ${pageJson({ message, part })}\n\n`);
    },
  });
  response.once("close", stop);
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { "content-type": `${type}; charset=utf-8` }).end(body);
}

function fail({ options }: ServerState, response: ServerResponse, error: unknown): void {
  const isExpected = isRetinueError(error);
  if (!isExpected) options.log(error instanceof Error ? error.message : String(error));
  if (response.headersSent) response.destroy();
  else if (isExpected) {
    const { message, advice } = error;
    const status = error.code === "misuse" ? 400 : 409;
    send(response, status, "application/json", JSON.stringify({ message, advice }));
  } else send(response, 500, "application/json", JSON.stringify({ message: "Internal error." }));
}
