// @io
import { matchesPattern } from "@retinue/base/foundation/match-pattern.ts";
import type { FiredEvent } from "@retinue/config/hooks/hook-input.ts";
import type { HookHandler } from "@retinue/config/hooks/hook-rule.ts";
import { type HookReading, readPrinted } from "./hook-answer.ts";

/** What an organisation or a person permits; an absent list permits everything. */
export interface HttpHookLimits {
  readonly allowedUrls?: readonly string[];
  readonly allowedVariables?: readonly string[];
}

export interface HttpCall {
  readonly event: FiredEvent;
  readonly handler: HookHandler;
  readonly input: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly limits: HttpHookLimits;
  readonly signal: AbortSignal;
}

const keptBytes = 1_000_000;

/** Sends the event to a server. Only an answer with a 2xx status counts, and nothing is followed elsewhere. */
export async function runHttpHook(call: HttpCall): Promise<HookReading> {
  const refused = refuseAddress(call);
  if (refused !== undefined) return failed(refused);
  const response = await fetch(call.handler.url ?? "", {
    method: "POST",
    headers: { "content-type": "application/json", ...fillHeaders(call) },
    body: call.input,
    redirect: "manual",
    signal: call.signal,
  });
  if (!response.ok) {
    await response.body?.cancel();
    const isRedirect = response.status >= 300 && response.status < 400;
    return failed(
      `the server answered ${response.status}${isRedirect ? ", and redirects are not followed" : ""}`,
    );
  }
  const body = await readBody(response);
  return body === undefined
    ? failed(`the server answered with more than ${keptBytes} bytes`)
    : readPrinted(call.event, body, false);
}

function refuseAddress({ handler, limits }: HttpCall): string | undefined {
  const written = handler.url ?? "";
  const url = URL.canParse(written) ? new URL(written) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    return `${JSON.stringify(written)} is not an http address`;
  if (url.username !== "" || url.password !== "")
    return "its address contains a user name or password; use a header";
  const { allowedUrls } = limits;
  // Compared after parsing, so that another spelling of the same address is no way around the list.
  const isAllowed = allowedUrls?.some((pattern) => matchesPattern(pattern, url.href) || pattern === written);
  return isAllowed === false ? `${url.origin} is not among the addresses of allowedHttpHookUrls` : undefined;
}

/** `$NAME` and `${NAME}` are filled in only for variables that the hook names and the limits permit. */
function fillHeaders({ handler, environment, limits }: HttpCall): Record<string, string> {
  const named = new Set(handler.allowedEnvVars ?? []);
  const { allowedVariables } = limits;
  const mayUse = (name: string): boolean =>
    named.has(name) && (allowedVariables === undefined || allowedVariables.includes(name));
  const fill = (text: string): string =>
    text.replace(/\$(?:\{(\w+)\}|([A-Za-z_]\w*))/g, (_whole, braced?: string, plain?: string) => {
      const name = braced ?? plain ?? "";
      return mayUse(name) && Object.hasOwn(environment, name) ? (environment[name] ?? "") : "";
    });
  return Object.fromEntries(
    Object.entries(handler.headers ?? {}).map(([name, value]) => [name, fill(value)]),
  );
}

/** Undefined when it is larger than anything a hook has to say. */
async function readBody(response: Response): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  if (reader === undefined) return "";
  while (true) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks).toString("utf8");
    size += value.length;
    if (size > keptBytes) {
      await reader.cancel();
      return undefined;
    }
    chunks.push(value);
  }
}

function failed(reason: string): HookReading {
  return { type: "failed", reason };
}
