// @io
import { createHmac, timingSafeEqual } from "node:crypto";
import { isRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { ApprovalsValue } from "@retinue/config/settings/read-environment.ts";
import type { ApprovalQuestion } from "@retinue/gate/grants/approval-record.ts";
import { answerQuestion, type GivenAnswer } from "./answer-question.ts";
import { openInboxFiles } from "./inbox-files.ts";

/** Sends new questions to the address of the person's settings; an answer may come with the response. */
export interface Webhook extends Disposable {
  send(question: ApprovalQuestion): void;
}

export interface WebhookOptions {
  /** The folder of the session's approvals. */
  readonly directory: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly now: () => number;
  readonly notice?: ((text: string) => void) | undefined;
}

export const timestampHeader = "x-retinue-timestamp";
export const signatureHeader = "x-retinue-signature";

const timeoutMs = 30_000;
/** A signed message that is older than this may be a copy of another one. */
export const maxAgeMs = 300_000;

export function createWebhook(
  settings: ApprovalsValue["webhook"],
  { directory, environment, now, notice }: WebhookOptions,
): Webhook | undefined {
  if (settings === undefined) return undefined;
  const { url } = settings;
  const secret = readSecret(settings, environment);
  const stop = new AbortController();
  const deliver = async (question: ApprovalQuestion): Promise<void> => {
    const body = JSON.stringify(question);
    const timestamp = String(now());
    const response = await fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        [timestampHeader]: timestamp,
        [signatureHeader]: sign(secret, timestamp, body),
      },
      body,
      // Another address has not been chosen by the person.
      redirect: "error",
      signal: AbortSignal.any([stop.signal, AbortSignal.timeout(timeoutMs)]),
    });
    const text = await response.text();
    if (!response.ok) throw new RetinueError("webhook-failed", `it answered ${response.status}`);
    if (response.status === 204 || response.status === 202 || text.trim() === "") return;
    const headers = {
      timestamp: response.headers.get(timestampHeader) ?? "",
      signature: response.headers.get(signatureHeader) ?? "",
    };
    const answer = readSignedAnswer(text, { ...headers, secret, now: now() });
    answerQuestion(openInboxFiles(directory), question.id, {
      ...answer,
      via: "webhook",
      now: now(),
      ...(answer.question === question.id ? {} : { digest: "another question" }),
    });
  };
  return {
    send(question) {
      deliver(question).catch((error: unknown) => {
        if (stop.signal.aborted) return;
        const why = error instanceof Error ? error.message : String(error);
        notice?.(`The question ${question.id} could not be settled by ${new URL(url).origin}: ${why}`);
      });
    },
    [Symbol.dispose]: () => stop.abort(new RetinueError("session-over", "The session is over.")),
  };
}

export function readSecret(
  { secretEnv }: NonNullable<ApprovalsValue["webhook"]>,
  environment: WebhookOptions["environment"],
): string {
  const secret = environment[secretEnv] ?? "";
  if (secret.length >= 16) return secret;
  throw new RetinueError(
    "no-webhook-secret",
    `The setting approvals.webhook needs a key of at least 16 characters in the environment variable ${secretEnv}.`,
    { advice: `Set ${secretEnv}, or remove the webhook from your settings.` },
  );
}

/** `sha256=` and the HMAC of time and body. */
export function sign(secret: string, timestamp: string, body: string): string {
  return `sha256=${createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex")}`;
}

export interface SignedAnswer {
  readonly question: string;
  readonly digest: string;
  readonly given: GivenAnswer;
  readonly by: string;
}

/** An answer whose signature is right, that is not old, and that names the call it is for. */
export function readSignedAnswer(
  body: string,
  {
    timestamp,
    signature,
    secret,
    now,
  }: {
    readonly timestamp: string;
    readonly signature: string;
    readonly secret: string;
    readonly now: number;
  },
): SignedAnswer {
  const expected = Buffer.from(sign(secret, timestamp, body));
  const actual = Buffer.from(signature);
  if (expected.length !== actual.length || !timingSafeEqual(expected, actual))
    throw new RetinueError("bad-signature", "The answer is not signed with the key of the settings.");
  if (!(Math.abs(now - Number(timestamp)) <= maxAgeMs))
    throw new RetinueError("old-answer", "The answer was signed too long ago, or in the future.");
  const value = parseJson(body);
  const { question, digest, by, answer } = isRecord(value) ? value : {};
  const isWhole = typeof question === "string" && typeof digest === "string" && isRecord(answer);
  if (!isWhole)
    throw new RetinueError(
      "unusable-grant",
      'An answer must be {"question", "digest", "by", "answer": {"type": "allow" | "deny", …}}.',
    );
  // Every field of it is checked where it is written down.
  const given = answer as unknown as GivenAnswer;
  return { question, digest, given, by: typeof by === "string" && by.trim() !== "" ? by : "webhook" };
}
