// @io
import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { OAuthClientInformationMixed } from "@modelcontextprotocol/client";
import { errorCode } from "@retinue/base/foundation/file-error.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { version } from "@retinue/base/foundation/version.ts";
import type { Sdk } from "../connect-transport.ts";
import { loginFailure, tokensOf } from "./create-auth-provider.ts";
import {
  type CredentialStore,
  credentialKey,
  type HttpTransport,
  type McpCredentials,
} from "./credential-store.ts";
import { createLoginFetch, discoverLogin, type LoginPlace, refuseTarget } from "./discover-login.ts";

export interface LogInOptions {
  readonly store: CredentialStore;
  /** Takes the person to the address: opens a browser, or shows it. */
  readonly visit: (address: string) => void | Promise<void>;
  /** The address a browser ended at, or the code in it, where the person hands it over; absent: only the browser comes back. */
  readonly paste?: (signal: AbortSignal) => Promise<string>;
  /** The secret of a client that is registered, where the configuration has none. */
  readonly clientSecret?: string | undefined;
  /** Asked for instead of what the configuration and the server name. */
  readonly scope?: string | undefined;
  readonly signal: AbortSignal;
  readonly now?: () => number;
}

export interface LoggedIn {
  readonly issuer: string;
  readonly scope?: string;
  /** Milliseconds since 1970. */
  readonly expiresAt?: number;
  /** Whether it can be renewed without the person. */
  readonly renews: boolean;
}

const limitMs = 10 * 60_000;

/** Logs a person in at a server, in their browser, and keeps the tokens. Rejects with a sentence. */
export async function logIn(
  name: string,
  transport: HttpTransport,
  options: LogInOptions,
): Promise<LoggedIn> {
  const { store, now = Date.now } = options;
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(limitMs)]);
  const sdk = await import("@modelcontextprotocol/client");
  const key = credentialKey(transport);
  try {
    const credentials = await authorize(name, transport, { ...options, now, signal, sdk });
    await store.locked(key, () => store.write(key, credentials));
    const { tokens, issuer } = credentials;
    return {
      issuer,
      ...(tokens?.scope === undefined ? {} : { scope: tokens.scope }),
      ...(tokens?.expiresAt === undefined ? {} : { expiresAt: tokens.expiresAt }),
      renews: tokens?.refreshToken !== undefined,
    };
  } catch (error) {
    options.signal.throwIfAborted();
    const why = signal.aborted
      ? `no login was completed within ${limitMs / 60_000} minutes`
      : loginFailure(error);
    const advice = error instanceof RetinueError ? error.advice : undefined;
    throw new RetinueError(
      "mcp-login-failed",
      `The login at ${JSON.stringify(name)} failed: ${why}.`,
      advice === undefined ? {} : { advice },
    );
  }
}

interface Flow extends LogInOptions {
  readonly sdk: Sdk;
  readonly now: () => number;
}

async function authorize(name: string, transport: HttpTransport, flow: Flow): Promise<McpCredentials> {
  const { sdk, signal, store, now } = flow;
  const server = new URL(transport.url);
  const fetch = createLoginFetch(transport.url, signal);
  // Asks without a token, as the refusal says where to log in and what for.
  const { url, headers } = transport;
  const params = {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "retinue", version },
  };
  const response = await fetch(url, {
    method: "POST",
    headers: {
      ...headers,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params }),
    redirect: "error",
  });
  await response.body?.cancel();
  const challenge: { readonly resourceMetadataUrl?: URL; readonly scope?: string } =
    response.status === 401 ? sdk.extractWWWAuthenticateParams(response) : {};
  const place = await discoverLogin(transport, {
    sdk,
    fetch,
    resourceMetadataUrl: challenge.resourceMetadataUrl,
  });
  const { authorizationServerUrl, metadata, resource, issuer } = place;
  const before = await store.read(credentialKey(transport));
  const scope = withRenewal(
    flow.scope ??
      sdk.computeScopeUnion(
        transport.oauth?.scopes ?? challenge.scope ?? place.scopesSupported,
        before?.wantedScope,
      ),
    place,
  );
  await using listener = await receiveCallback(transport.oauth?.callbackPort);
  const { redirectUri } = listener;
  const client = await chooseClient(name, transport, { ...flow, place, redirectUri, scope });
  const state = randomBytes(32).toString("hex");
  const resourceUrl = resource === undefined ? {} : { resource: new URL(resource) };
  const { authorizationUrl, codeVerifier } = await sdk.startAuthorization(authorizationServerUrl, {
    metadata,
    clientInformation: client,
    redirectUrl: redirectUri,
    state,
    scope,
    ...resourceUrl,
  });
  // A browser opens files and starts programs too, when an address names them.
  refuseTarget(authorizationUrl, server);
  // Listened for before the browser is sent there: one that is logged in already comes back immediately.
  const received = listener.receive(state, signal);
  received.catch(() => undefined);
  await flow.visit(authorizationUrl.href);
  const { code, iss } = await waitForRedirect(received, { ...flow, state });
  const tokens = await sdk.exchangeAuthorization(authorizationServerUrl, {
    metadata,
    clientInformation: client,
    authorizationCode: code,
    iss,
    codeVerifier,
    redirectUri,
    ...resourceUrl,
    fetchFn: fetch,
  });
  const kept = tokensOf(tokens, now());
  return {
    serverUrl: server.href,
    issuer,
    authorizationServerUrl,
    client,
    metadata,
    resource,
    // A server that says nothing of scopes has given what was asked for.
    tokens: kept.scope === undefined && scope !== undefined ? { ...kept, scope } : kept,
  };
}

/** Some authorization servers give what renews a login only to who asks for it by name. */
function withRenewal(scope: string | undefined, { metadata }: LoginPlace): string | undefined {
  if (scope === undefined || metadata?.scopes_supported?.includes("offline_access") !== true) return scope;
  return scope.split(" ").includes("offline_access") ? scope : `${scope} offline_access`;
}

async function chooseClient(
  name: string,
  { oauth }: HttpTransport,
  {
    sdk,
    place,
    redirectUri,
    scope,
    clientSecret,
    signal,
  }: Flow & {
    readonly place: LoginPlace;
    readonly redirectUri: string;
    readonly scope: string | undefined;
  },
): Promise<OAuthClientInformationMixed> {
  const { metadata, authorizationServerUrl } = place;
  if (oauth?.clientId !== undefined) {
    const secret = oauth.clientSecret ?? clientSecret;
    return { client_id: oauth.clientId, client_secret: secret };
  }
  if (oauth?.clientMetadataUrl !== undefined && metadata?.client_id_metadata_document_supported === true)
    return { client_id: oauth.clientMetadataUrl };
  if (metadata !== undefined && metadata.registration_endpoint === undefined)
    throw new RetinueError("mcp-login-refused", "the authorization server does not register clients", {
      advice: "Register a client there, and set its id as `oauth.clientId`.",
    });
  return sdk.registerClient(authorizationServerUrl, {
    metadata,
    clientMetadata: {
      client_name: `Retinue (${name.slice(0, 60)})`,
      redirect_uris: [redirectUri],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      ...authMethod(metadata?.token_endpoint_auth_methods_supported),
      application_type: "native",
    },
    scope,
    fetchFn: createLoginFetch(authorizationServerUrl, signal),
  });
}

/** No secret where the server does without one; otherwise the first way that it has. */
function authMethod(supported: readonly string[] | undefined): {
  readonly token_endpoint_auth_method: string;
} {
  const ways = ["none", "client_secret_basic", "client_secret_post"];
  return { token_endpoint_auth_method: ways.find((way) => supported?.includes(way) ?? true) ?? "none" };
}

/** What the browser brought, or what the person pasted, whichever comes first. */
async function waitForRedirect(
  received: Promise<URLSearchParams>,
  { paste, state, signal }: Flow & { readonly state: string },
): Promise<{ readonly code: string; readonly iss?: string }> {
  const over = new AbortController();
  const pasted = paste?.(AbortSignal.any([over.signal, signal])).then((text) => readPasted(text, state));
  try {
    const answer = await Promise.race([received, ...(pasted === undefined ? [] : [pasted])]);
    const [code, iss] = [answer.get("code"), answer.get("iss")];
    if (code !== null && code !== "") return { code, ...(iss === null ? {} : { iss }) };
    const error = answer.get("error") ?? "";
    throw new RetinueError(
      "mcp-login-refused",
      /^[\w.-]{1,60}$/.test(error)
        ? `the authorization server reported ${error}`
        : "the browser came back without a code",
    );
  } finally {
    over.abort();
    for (const waiting of [received, pasted]) waiting?.catch(() => undefined);
  }
}

function readPasted(text: string, state: string): URLSearchParams {
  const given = text.trim();
  if (!URL.canParse(given)) return new URLSearchParams({ code: given });
  const { searchParams } = new URL(given);
  if (searchParams.get("state") !== state)
    throw new RetinueError("mcp-login-refused", "the pasted address belongs to another login");
  return searchParams;
}

const revokeLimitMs = 10_000;

/** Forgets a login, and revokes it at the authorization server where that is possible. Whether there was one. */
export async function logOut(transport: HttpTransport, store: CredentialStore): Promise<boolean> {
  const key = credentialKey(transport);
  return store.locked(key, async () => {
    const stored = await store.read(key);
    const removed = await store.remove(key);
    if (stored !== undefined) await revoke(stored).catch(() => undefined);
    return removed;
  });
}

async function revoke({ metadata, client, tokens, serverUrl }: McpCredentials): Promise<void> {
  const endpoint = metadata === undefined ? undefined : Reflect.get(metadata, "revocation_endpoint");
  const token = tokens?.refreshToken ?? tokens?.accessToken;
  if (typeof endpoint !== "string" || token === undefined) return;
  const { client_id, client_secret: secret } = client;
  await createLoginFetch(serverUrl, AbortSignal.timeout(revokeLimitMs))(endpoint, {
    method: "POST",
    redirect: "error",
    body: new URLSearchParams({
      token,
      client_id,
      ...(secret === undefined ? {} : { client_secret: secret }),
    }),
  });
}

/** Waits on this machine for the browser to come back from a login. */
interface CallbackListener extends AsyncDisposable {
  readonly redirectUri: string;
  /** What came back with the right state; anything else is turned away and not waited for any less. */
  receive(state: string, signal: AbortSignal): Promise<URLSearchParams>;
}

/** How long a browser has to read the page that it was answered with. */
const partingMs = 1_000;
const triedPorts = 5;

/** Listens on loopback addresses alone. */
export async function receiveCallback(port = 0): Promise<CallbackListener> {
  const { port: taken, servers } = await listenOnBoth(port);
  let waiting: { readonly state: string; readonly resolve: (found: URLSearchParams) => void } | undefined;
  for (const server of servers)
    server.on("request", (request, response) => {
      // What a request brings back; undefined where it is none of a browser that comes back, whatever it looks like.
      const { method, url = "" } = request;
      const address = method === "GET" && url.startsWith("/") ? URL.parse(`http://localhost${url}`) : null;
      const found: URLSearchParams | undefined =
        address?.pathname === "/callback" ? address.searchParams : undefined;
      const isRight = waiting !== undefined && found?.get("state") === waiting.state;
      response.writeHead(isRight ? 200 : 400, {
        "content-type": "text/html; charset=utf-8",
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'",
        "referrer-policy": "no-referrer",
        connection: "close",
      });
      response.end(isRight ? donePage : wrongPage);
      if (isRight && found !== undefined) waiting?.resolve(found);
    });
  return {
    redirectUri: `http://localhost:${taken}/callback`,
    async receive(state, signal) {
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<URLSearchParams>();
      const stop = () => reject(signal.reason);
      signal.addEventListener("abort", stop, { once: true });
      waiting = { state, resolve };
      return promise.finally(() => {
        waiting = undefined;
        signal.removeEventListener("abort", stop);
      });
    },
    async [Symbol.asyncDispose]() {
      for (const server of servers) {
        server.close();
        server.closeIdleConnections();
        // One that sends nothing, or byte by byte, must not keep the process.
        setTimeout(() => server.closeAllConnections(), partingMs).unref();
        server.unref();
      }
    },
  };
}

const donePage =
  "<!doctype html><title>Retinue</title><p>The login continues in the terminal. You can close this page.";
const wrongPage =
  "<!doctype html><title>Retinue</title><p>This is not the login that Retinue is waiting for.";

/** Browsers may take `localhost` for either address, so no other process may have the port on the other one. */
async function listenOnBoth(
  port: number,
): Promise<{ readonly port: number; readonly servers: readonly Server[] }> {
  for (let tried = 1; ; tried += 1) {
    const first = await listen(port, "127.0.0.1").catch((error: unknown) => {
      throw unusable(port, error);
    });
    const { port: taken } = first.address() as AddressInfo;
    try {
      return { port: taken, servers: [first, await listen(taken, "::1")] };
    } catch (error) {
      // A machine without the second address does with the first.
      if (errorCode(error) !== "EADDRINUSE") return { port: taken, servers: [first] };
      first.close();
      if (port !== 0 || tried === triedPorts) throw unusable(taken, error);
    }
  }
}

function unusable(port: number, error: unknown): RetinueError {
  const why = error instanceof Error ? error.message : String(error);
  return new RetinueError("mcp-login-failed", `Cannot listen on port ${port}: ${why}.`, {
    advice: "Choose another `oauth.callbackPort`, or leave it out.",
  });
}

function listen(port: number, host: string): Promise<Server> {
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 10_000 });
  const { promise, resolve, reject } = Promise.withResolvers<Server>();
  server.once("error", reject);
  server.listen(port, host, () => resolve(server));
  return promise;
}
