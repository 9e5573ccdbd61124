// @io
import type {
  AuthorizationServerMetadata,
  FetchLike,
  OAuthProtectedResourceMetadata,
} from "@modelcontextprotocol/client";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { isSecureAddress } from "@retinue/config/mcp/read-oauth.ts";
import type { Sdk } from "../connect-transport.ts";
import { createBoundedFetch } from "../create-bounded-fetch.ts";
import type { HttpTransport } from "./credential-store.ts";

/** Where to log in for a server, and as what. */
export interface LoginPlace {
  readonly authorizationServerUrl: string;
  readonly issuer: string;
  readonly metadata?: AuthorizationServerMetadata;
  /** What tokens are for, as the server itself names it. */
  readonly resource?: string;
  readonly scopesSupported?: string;
}

interface DiscoverOptions {
  readonly sdk: Sdk;
  readonly fetch: FetchLike;
  /** As the server's refusal named it. */
  readonly resourceMetadataUrl?: URL | undefined;
}

/** Asks the server, and whom it names, where to log in. What either says is looked at before anything is sent there. */
export async function discoverLogin(
  { url, oauth }: HttpTransport,
  { sdk, fetch, resourceMetadataUrl }: DiscoverOptions,
): Promise<LoginPlace> {
  const server = new URL(url);
  // Only the server itself may say what protects it; another host's word about it counts nothing.
  const named = resourceMetadataUrl?.origin === server.origin ? resourceMetadataUrl : undefined;
  const pinned =
    oauth?.authServerMetadataUrl === undefined
      ? undefined
      : await readMetadata(new URL(oauth.authServerMetadataUrl), fetch);
  const found =
    pinned === undefined
      ? await sdk.discoverOAuthServerInfo(server, { resourceMetadataUrl: named, fetchFn: fetch })
      : { ...pinned, resourceMetadata: undefined as OAuthProtectedResourceMetadata | undefined };
  const { authorizationServerUrl, authorizationServerMetadata: metadata, resourceMetadata } = found;
  const resource =
    resourceMetadata === undefined ? undefined : await resourceOf(sdk, server, resourceMetadata);
  const scopes = resourceMetadata?.scopes_supported;
  return {
    authorizationServerUrl,
    issuer: metadata?.issuer ?? authorizationServerUrl,
    metadata,
    ...(pinned === undefined ? {} : { resource: server.href }),
    resource,
    ...(scopes === undefined || scopes.length === 0 ? {} : { scopesSupported: scopes.join(" ") }),
  };
}

/** Refuses metadata that are about another server: a token for that one would be sent to this one. */
async function resourceOf(
  sdk: Sdk,
  server: URL,
  { resource }: OAuthProtectedResourceMetadata,
): Promise<string> {
  const requestedResource = sdk.resourceUrlFromServerUrl(server);
  if (sdk.checkResourceAllowed({ requestedResource, configuredResource: resource })) return resource;
  throw new RetinueError(
    "mcp-login-refused",
    `its metadata is about another server, ${JSON.stringify(resource.slice(0, 200))}, so no login is made`,
  );
}

async function readMetadata(
  address: URL,
  fetch: FetchLike,
): Promise<{
  readonly authorizationServerUrl: string;
  readonly authorizationServerMetadata: AuthorizationServerMetadata;
}> {
  const response = await fetch(address, { headers: { accept: "application/json" }, redirect: "error" });
  const value: unknown = response.ok ? await response.json() : undefined;
  const isGood =
    isRecord(value) &&
    ["issuer", "authorization_endpoint", "token_endpoint"].every(
      (key) => typeof value[key] === "string" && URL.canParse(value[key]),
    ) &&
    Array.isArray(value["response_types_supported"]);
  if (!isGood)
    throw new RetinueError(
      "mcp-login-refused",
      `${address.href} (\`oauth.authServerMetadataUrl\`) does not describe an authorization server`,
    );
  const issuer = String(value["issuer"]);
  if (new URL(issuer).origin !== address.origin)
    throw new RetinueError("mcp-login-refused", `${address.href} describes another issuer than its own host`);
  // Its required members were looked at.
  return {
    authorizationServerUrl: issuer,
    authorizationServerMetadata: value as unknown as AuthorizationServerMetadata,
  };
}

const maxAnswer = 1_000_000;
const limitMs = 30_000;

/** For requests about logging in: bounded in time and size, and never to where others could read or answer them. */
export function createLoginFetch(serverUrl: string, signal?: AbortSignal): FetchLike {
  const server = new URL(serverUrl);
  const bounded = createBoundedFetch(maxAnswer);
  return async (address, init) => {
    const target = new URL(address);
    refuseTarget(target, server);
    const signals = [AbortSignal.timeout(limitMs), signal, init?.signal].flatMap((each) => each ?? []);
    return bounded(target, { ...init, signal: AbortSignal.any(signals) });
  };
}

/** A server elsewhere must not send a person to this machine, nor to an address that is not encrypted. */
export function refuseTarget(target: URL, server: URL): void {
  const isOwn = target.origin === server.origin;
  const isHere = target.protocol === "http:" && isSecureAddress(target);
  const isServerHere = server.protocol === "http:" && isSecureAddress(server);
  if (isOwn || target.protocol === "https:" || (isHere && isServerHere)) return;
  throw new RetinueError(
    "mcp-login-refused",
    `its metadata names ${JSON.stringify(`${target.protocol}//${target.host}`)}, which is not an https address, so nothing is sent there`,
  );
}
