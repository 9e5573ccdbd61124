// @io
import type { AuthorizationServerMetadata, AuthProvider, OAuthTokens } from "@modelcontextprotocol/client";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { Sdk } from "../connect-transport.ts";
import { messageOf } from "../listed-tool.ts";
import {
  type CredentialStore,
  credentialKey,
  type HttpTransport,
  type McpCredentials,
  type McpTokens,
} from "./credential-store.ts";
import { createLoginFetch, discoverLogin, type LoginPlace } from "./discover-login.ts";

/** Gives a connection its token, and a new one when it is over. Opens nothing and has no questions. */
export interface ServerLogin extends AuthProvider {
  /** Keeps what the server says it needs besides, for the next login. */
  noteScope(scope: string | undefined): Promise<void>;
  /** What must not be shown. */
  secrets(): readonly string[];
}

interface LoginFacts {
  readonly sdk: Sdk;
  readonly store: CredentialStore;
  readonly now?: () => number;
}

/** A token that ends this soon is renewed before it is used. */
const aheadMs = 20_000;

export function createAuthProvider(transport: HttpTransport, facts: LoginFacts): ServerLogin {
  return transport.oauth?.grant === "client_credentials"
    ? withClientCredentials(transport, facts)
    : withStoredLogin(transport, facts);
}

function withStoredLogin(transport: HttpTransport, { sdk, store, now = Date.now }: LoginFacts): ServerLogin {
  const key = credentialKey(transport);
  const seen = new Set<string>();
  let current: McpCredentials | undefined;

  function take(credentials: McpCredentials | undefined): string | undefined {
    current = credentials;
    for (const secret of secretsOf(credentials)) seen.add(secret);
    return credentials?.tokens?.accessToken;
  }

  /** Renews under the lock, unless another process was faster: refresh tokens often count once. */
  function renew(rejected: string): Promise<string | undefined> {
    return store.locked(key, async () => {
      const stored = await store.read(key);
      const tokens = stored?.tokens;
      if (stored === undefined || tokens === undefined) return take(undefined);
      if (tokens.accessToken !== rejected) return take(stored);
      if (tokens.refreshToken === undefined) return undefined;
      const answer = await refresh(stored, tokens.refreshToken);
      const { tokens: _old, ...rest } = stored;
      // Who says nothing of scopes or of another refresh token leaves them as they were.
      const next = answer === "refused" ? rest : { ...rest, tokens: { ...kept(tokens), ...answer } };
      await store.write(key, next);
      return take(next);
    });
  }

  async function refresh(
    { authorizationServerUrl, metadata, client, resource }: McpCredentials,
    refreshToken: string,
  ): Promise<McpTokens | "refused"> {
    try {
      const fresh = await sdk.refreshAuthorization(authorizationServerUrl, {
        ...(metadata === undefined ? {} : { metadata: metadata as AuthorizationServerMetadata }),
        clientInformation: client,
        refreshToken,
        ...(resource === undefined ? {} : { resource: new URL(resource) }),
        fetchFn: createLoginFetch(transport.url),
      });
      return tokensOf(fresh, now());
    } catch (error) {
      if (isRefusal(error)) return "refused";
      throw new RetinueError("mcp-failed", `its login could not be renewed: ${loginFailure(error)}`);
    }
  }

  return {
    async token() {
      const known = current ?? (await store.read(key));
      const token = take(known);
      const { expiresAt, refreshToken } = known?.tokens ?? {};
      if (token === undefined || expiresAt === undefined || expiresAt - now() > aheadMs) return token;
      if (refreshToken === undefined) return token;
      return renew(token).catch((error: unknown) => {
        // What is renewed ahead of its end is good until then.
        if (expiresAt > now()) return token;
        throw error;
      });
    },
    async onUnauthorized() {
      const used = current?.tokens?.accessToken;
      const stored = used === undefined ? take(await store.read(key)) : await renew(used);
      if (stored === undefined || stored === used) throw new NeedsLogin();
    },
    async noteScope(scope) {
      if (scope === undefined) return;
      await store.locked(key, async () => {
        const stored = await store.read(key);
        if (stored === undefined) return;
        const wantedScope = sdk.computeScopeUnion(stored.wantedScope, stored.tokens?.scope, scope);
        await store.write(key, { ...stored, ...(wantedScope === undefined ? {} : { wantedScope }) });
      });
    },
    secrets: () => [...seen],
  };
}

/** A program's own account: the token is fetched when the server asks for one, and kept in memory only. */
function withClientCredentials(transport: HttpTransport, { sdk, now = Date.now }: LoginFacts): ServerLogin {
  const { clientId = "", clientSecret = "", scopes } = transport.oauth ?? {};
  const seen = new Set([clientSecret]);
  const fetch = createLoginFetch(transport.url);
  let place: LoginPlace | undefined;
  let scope = scopes;
  let tokens: McpTokens | undefined;

  async function fetchTokens(at: LoginPlace): Promise<string> {
    const provider = new sdk.ClientCredentialsProvider({
      clientId,
      clientSecret,
      expectedIssuer: at.issuer,
      scope,
    });
    try {
      const { metadata, resource } = at;
      const fresh = await sdk.fetchToken(provider, at.authorizationServerUrl, {
        metadata,
        ...(resource === undefined ? {} : { resource: new URL(resource) }),
        scope,
        fetchFn: fetch,
      });
      tokens = tokensOf(fresh, now());
    } catch (error) {
      throw new RetinueError(
        "mcp-failed",
        `no token was given for its client credentials: ${loginFailure(error)}`,
        { advice: "Check `oauth.clientId` and `oauth.clientSecret`." },
      );
    }
    for (const secret of [tokens.accessToken, tokens.refreshToken])
      if (secret !== undefined) seen.add(secret);
    return tokens.accessToken;
  }

  return {
    async token() {
      if (place === undefined) return undefined;
      const { accessToken, expiresAt } = tokens ?? {};
      const isFresh = expiresAt === undefined || expiresAt - now() > aheadMs;
      return accessToken !== undefined && isFresh ? accessToken : fetchTokens(place);
    },
    async onUnauthorized({ response }) {
      const { resourceMetadataUrl, scope: asked } = sdk.extractWWWAuthenticateParams(response);
      place ??= await discoverLogin(transport, { sdk, fetch, resourceMetadataUrl });
      scope = scopes ?? asked ?? place.scopesSupported;
      await fetchTokens(place);
    },
    async noteScope(more) {
      scope = sdk.computeScopeUnion(scope, more);
      tokens = undefined;
    },
    secrets: () => [...seen],
  };
}

/** The server wants to know who asks, and only a person can say it. */
export class NeedsLogin extends Error {
  readonly code = "mcp-needs-login";
  constructor(scope?: string) {
    const shown = scope === undefined ? "" : ` for ${JSON.stringify(scope.slice(0, 200))}`;
    super(`it wants a login${shown}`);
  }
}

export function tokensOf(tokens: OAuthTokens, now: number): McpTokens {
  const { access_token: accessToken, refresh_token: refreshToken, expires_in: seconds = 0, scope } = tokens;
  if (![accessToken, refreshToken ?? accessToken].every(isSendable))
    throw new RetinueError("mcp-login-refused", "the authorization server gave a token that cannot be sent");
  return {
    accessToken,
    ...(refreshToken === undefined ? {} : { refreshToken }),
    ...(scope === undefined ? {} : { scope }),
    // Some say 0 for one that does not end.
    ...(seconds > 0 ? { expiresAt: now + seconds * 1000 } : {}),
  };
}

function kept({ refreshToken, scope }: McpTokens): Pick<McpTokens, "refreshToken" | "scope"> {
  return {
    ...(refreshToken === undefined ? {} : { refreshToken }),
    ...(scope === undefined ? {} : { scope }),
  };
}

/** As a header takes it: with anything else the request would fail, and its error would show the token. */
function isSendable(token: string): boolean {
  return /^[\x21-\x7e]+$/.test(token);
}

function secretsOf(credentials: McpCredentials | undefined): readonly string[] {
  const { tokens, client } = credentials ?? {};
  const secret = client !== undefined && "client_secret" in client ? client.client_secret : undefined;
  return [tokens?.accessToken, tokens?.refreshToken, secret].flatMap((text) => text ?? []);
}

/** Whether trying again cannot help: the authorization server no longer knows the login or the client. */
function isRefusal(error: unknown): boolean {
  const code = isRecord(error) ? error["code"] : undefined;
  return ["invalid_grant", "invalid_client", "unauthorized_client"].includes(String(code));
}

/** Why a login failed, without what an authorization server wrote besides: it has seen secrets, and could repeat them. */
export function loginFailure(error: unknown): string {
  const code = isRecord(error) ? error["code"] : undefined;
  const name = error instanceof Error ? error.name : "";
  // Its advice is reported beside it.
  if (error instanceof RetinueError) return withoutStop(error.message);
  if (/OAuthError/.test(name) && typeof code === "string" && /^[\w.:/-]{1,80}$/.test(code))
    return `the authorization server answered ${code}`;
  if (/Zod|SyntaxError/.test(name)) return "the authorization server gave an answer that cannot be read";
  return /Raw body|access_token|refresh_token/.test(messageOf(error))
    ? "the authorization server gave an answer that cannot be read"
    : withoutStop(messageOf(error).slice(0, 300));
}

/** As part of a sentence. */
function withoutStop(text: string): string {
  return text.replace(/\.+$/, "");
}
