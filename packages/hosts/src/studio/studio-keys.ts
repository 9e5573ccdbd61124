import { createHash, randomBytes } from "node:crypto";

/** What a browser is given for the token of the link. */
export interface StudioKeys {
  /**
   * The path that the page is below, `/…/`. Cookies are not kept apart by port, so the one of the studio would be sent to every
   * server of this machine that the person looks at; it is bound to a path that no other server has.
   */
  readonly path: string;
  /** In place of the token, which stays out of the browser's files. */
  readonly cookie: string;
}

/** The same for the same token, so that an open page finds a studio that was started again. */
export function studioKeys(token: string): StudioKeys {
  return { path: `/${derived("path", token).slice(0, 16)}/`, cookie: derived("cookie", token) };
}

/** Two studios of one machine have different cookies. */
export function cookieName(port: number): string {
  return `retinue-studio-${port}`;
}

function derived(purpose: string, token: string): string {
  return createHash("sha256").update(`retinue studio ${purpose} ${token}`).digest("base64url");
}

/** Codes that open the page once, since what a program is started with can be read by every user of the machine. */
export interface OpenCodes {
  create(): string;
  take(code: string): boolean;
}

const validMs = 60_000;

export function createOpenCodes(now: () => number = Date.now): OpenCodes {
  const codes = new Map<string, number>();
  return {
    create() {
      const code = randomBytes(24).toString("base64url");
      codes.set(code, now() + validMs);
      return code;
    },
    take(code) {
      const until = codes.get(code);
      codes.delete(code);
      return until !== undefined && now() < until;
    },
  };
}
