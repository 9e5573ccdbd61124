import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { Approvals } from "@retinue/core/kernel/approvals/find-approvals.ts";
import {
  readSecret,
  readSignedAnswer,
  signatureHeader,
  timestampHeader,
} from "@retinue/core/kernel/approvals/webhook.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { misuse, refuseAgents } from "../shared/misuse.ts";
import { createPrintRuntime } from "../shared/open-print-session.ts";
import { openApprovals } from "./approvals.ts";

const maxBytes = 100_000;

/** `retinue approvals listen`: answers come as signed POST requests, on loopback only. */
export async function listenForAnswers(
  context: CommandContext,
  { port = "0" }: { readonly port?: string },
): Promise<number> {
  const { host } = context;
  refuseAgents(host);
  // The key of the person's own settings.
  await using runtime = createPrintRuntime(context, { sessionPersistence: false });
  const { settings } = await runtime.agents();
  const { webhook } = settings.settings.plain.approvals ?? {};
  if (webhook === undefined)
    throw misuse(
      "Your settings name no webhook, so there is no key that answers could be signed with.",
      'Write {"approvals": {"webhook": {"url": "https://…", "secretEnv": "VARIABLE"}}} in your user settings.',
    );
  const secret = readSecret(webhook, {
    ...context.host.environment,
    ...Object.fromEntries(settings.settings.env),
  });
  const approvals = openApprovals(host, { everywhere: true });
  const server = createServer((request, response) => {
    settle(request, { secret, approvals }).then(
      (id) => reply(response, 200, { answered: id }),
      (error: unknown) => {
        const known = isRetinueError(error);
        reply(response, known ? 403 : 500, { error: known ? error.message : "The answer was not taken." });
      },
    );
  });
  const stopped = Promise.withResolvers<void>();
  const forget = host.onInterrupt(() => stopped.resolve());
  try {
    server.on("error", stopped.reject);
    server.listen(Number(port), "127.0.0.1", () => {
      const address = server.address();
      const shown = typeof address === "object" && address !== null ? address.port : port;
      host.stdout.write(`Takes signed answers at http://127.0.0.1:${shown}/\n`);
    });
    await stopped.promise;
    return 0;
  } finally {
    forget();
    server.closeAllConnections();
    server.close();
  }
}

async function settle(
  request: IncomingMessage,
  { secret, approvals }: { readonly secret: string; readonly approvals: Approvals },
): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += (chunk as Buffer).length;
    if (size > maxBytes || request.method !== "POST") break;
    chunks.push(chunk as Buffer);
  }
  const body = Buffer.concat(chunks).toString("utf8");
  const { question, digest, given, by } = readSignedAnswer(body, {
    timestamp: String(request.headers[timestampHeader] ?? ""),
    signature: String(request.headers[signatureHeader] ?? ""),
    secret,
    now: Date.now(),
  });
  return approvals.answer(question, given, { by, via: "webhook", digest }).question.id;
}

function reply(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(`${JSON.stringify(body)}\n`);
}
