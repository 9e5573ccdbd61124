import { createHash, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface AuthorizationOptions {
  /** Seconds that a token lasts. */
  readonly expiresIn?: number;
  /** What the MCP server says that tokens are for, instead of itself. */
  readonly resource?: string;
  /** What its metadata say besides, or otherwise. */
  readonly metadata?: object;
  /** What a token request is answered with instead of what is right, or laid over it; a number is a status. */
  readonly answer?: (grantType: string) => object | number | undefined;
}

/** An authorization server and the MCP server that it guards, on one port, with all that was granted and refused. */
export interface AuthorizationServer {
  readonly url: string;
  readonly issuer: string;
  /** Every token that was ever given. */
  readonly given: readonly string[];
  readonly log: readonly string[];
  /** What a browser does: logs in and returns the address it ends at. */
  logIn(address: string): Promise<string>;
  /** Every token and login is over. */
  endAll(): void;
}

/** Registers clients, checks PKCE and resource, and takes every refresh token once. */
export async function startAuthorizationServer({
  expiresIn = 3600,
  resource,
  metadata,
  answer: otherwise = () => undefined,
}: AuthorizationOptions = {}): Promise<AuthorizationServer> {
  const clients = new Set<string>();
  const codes = new Map<string, URLSearchParams>();
  const valid = new Set<string>();
  const refreshes = new Set<string>();
  const given: string[] = [];
  const log: string[] = [];
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const url = `${issuer}/mcp`;

  function grant(): object {
    const [access, refresh] = [
      `at-${randomBytes(12).toString("hex")}`,
      `rt-${randomBytes(12).toString("hex")}`,
    ];
    given.push(access, refresh);
    valid.add(access);
    refreshes.add(refresh);
    return { access_token: access, refresh_token: refresh, token_type: "Bearer", expires_in: expiresIn };
  }

  function exchange(form: URLSearchParams, basic: string | undefined): object | string {
    const type = form.get("grant_type");
    if (type === "client_credentials") {
      const isKnown = basic === `Basic ${Buffer.from("robot:robot-secret").toString("base64")}`;
      return isKnown ? grant() : "invalid_client";
    }
    if (!clients.has(form.get("client_id") ?? "")) return "invalid_client";
    if (form.get("resource") !== url) return "invalid_target";
    if (type === "refresh_token")
      return refreshes.delete(form.get("refresh_token") ?? "") ? grant() : "invalid_grant";
    const asked = codes.get(form.get("code") ?? "");
    codes.delete(form.get("code") ?? "");
    const verifier = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    const isRight =
      asked?.get("code_challenge") === verifier && asked.get("redirect_uri") === form.get("redirect_uri");
    return isRight ? grant() : "invalid_grant";
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const send = (status: number, body: object = {}, headers: Record<string, string> = {}): void =>
      void response
        .writeHead(status, { "content-type": "application/json", ...headers })
        .end(JSON.stringify(body));
    const { pathname, searchParams } = new URL(request.url ?? "/", issuer);
    const text = await bodyOf(request);
    switch (pathname) {
      case "/.well-known/oauth-protected-resource/mcp":
        return send(200, { resource: resource ?? url, authorization_servers: [issuer] });
      case "/.well-known/oauth-authorization-server":
        return send(200, { ...metadataOf(issuer), ...metadata });
      case "/register": {
        const id = `client-${clients.size + 1}`;
        clients.add(id);
        log.push("registered");
        return send(201, { ...JSON.parse(text), client_id: id });
      }
      case "/authorize": {
        const code = randomBytes(8).toString("hex");
        codes.set(code, searchParams);
        const back = new URL(searchParams.get("redirect_uri") ?? "");
        back.search = new URLSearchParams({ code, state: searchParams.get("state") ?? "" }).toString();
        return send(302, {}, { location: back.href });
      }
      case "/token": {
        const form = new URLSearchParams(text);
        const instead = otherwise(form.get("grant_type") ?? "");
        if (typeof instead === "number") {
          log.push(`${form.get("grant_type")}: ${instead}`);
          return send(instead);
        }
        const granted = exchange(form, request.headers.authorization);
        log.push(`${form.get("grant_type")}: ${typeof granted === "string" ? granted : "granted"}`);
        return typeof granted === "string"
          ? send(400, { error: granted })
          : send(200, { ...granted, ...instead });
      }
      case "/revoke":
        refreshes.delete(new URLSearchParams(text).get("token") ?? "");
        valid.clear();
        log.push("revoked");
        return send(200);
    }
    const token = request.headers.authorization?.replace("Bearer ", "") ?? "";
    if (!valid.has(token)) {
      const where = `${issuer}/.well-known/oauth-protected-resource/mcp`;
      return send(401, {}, { "www-authenticate": `Bearer resource_metadata="${where}"` });
    }
    if (request.method !== "POST") return send(405);
    const { id, method, params } = JSON.parse(text);
    if (id === undefined) return void response.writeHead(202).end();
    send(200, { jsonrpc: "2.0", id, result: resultOf(method, params, token) });
  }

  return {
    url,
    issuer,
    given,
    log,
    async logIn(address) {
      const { headers } = await fetch(address, { redirect: "manual" });
      return headers.get("location") ?? "";
    },
    endAll() {
      valid.clear();
      refreshes.clear();
    },
  };
}

function metadataOf(issuer: string): object {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/register`,
    revocation_endpoint: `${issuer}/revoke`,
    response_types_supported: ["code"],
    grant_types_supported: ["authorization_code", "refresh_token", "client_credentials"],
    token_endpoint_auth_methods_supported: ["none", "client_secret_basic"],
    code_challenge_methods_supported: ["S256"],
  };
}

/** All that it says repeats the token it was called with, as careless servers do. */
function resultOf(method: string, params: { readonly protocolVersion?: string }, token: string): object {
  if (method === "initialize")
    return {
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "guarded", version: "1.0.0" },
      instructions: `You are ${token}.`,
    };
  if (method === "tools/list")
    return { tools: [{ name: "whoami", description: `Knows ${token}.`, inputSchema: { type: "object" } }] };
  return { content: [{ type: "text", text: `You are known by ${token}.` }] };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
