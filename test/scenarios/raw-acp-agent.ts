import { createInterface } from "node:readline";

/**
 * A program that speaks lines and nothing more: its first argument is JSON of what it answers to each method, in place of
 * what it should, and of the lines that it sends while it is asked to work. `$id` and `$session` are replaced by what was given.
 */
interface Script {
  /** By method: the answer, or `null` for none. */
  readonly answers?: Readonly<Record<string, unknown>>;
  readonly lines?: readonly string[];
  /** So many bytes without an end of line. */
  readonly endless?: number;
  /** Lines that are sent so often. */
  readonly repeated?: { readonly line: string; readonly times: number };
}

const script = JSON.parse(process.argv[2] ?? "{}") as Script;
const usual: Readonly<Record<string, unknown>> = {
  initialize: { result: { protocolVersion: 1, agentCapabilities: {} } },
  "session/new": { result: { sessionId: "raw" } },
  "session/prompt": { result: { stopReason: "end_turn" } },
};
const send = (line: string): void => void process.stdout.write(`${line}\n`);
const heard: string[] = [];

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line) as {
    id?: number | string;
    method?: string;
    error?: object;
    result?: object;
  };
  if (message.method === undefined) {
    heard.push(message.error === undefined ? "result" : "error");
    return;
  }
  const { id, method } = message;
  const answer = (): void => {
    const { answers = {} } = script;
    const given = method in answers ? answers[method] : (usual[method] ?? { result: {} });
    for (const each of Array.isArray(given) ? given : [given])
      if (each !== null && id !== undefined)
        send(JSON.stringify({ jsonrpc: "2.0", id, ...(each as object) }));
  };
  if (method !== "session/prompt") {
    answer();
    return;
  }
  const asked = (script.lines ?? []).filter((text) => text.includes('"id"')).length;
  for (const text of script.lines ?? []) send(text);
  const { repeated, endless = 0 } = script;
  for (let at = 0; at < (repeated?.times ?? 0); at += 1)
    send((repeated?.line ?? "").replaceAll("$n", String(at)));
  for (let left = endless; left > 0; left -= 1_000_000) process.stdout.write("x".repeat(1_000_000));
  const wait = setInterval(() => {
    if (heard.length < asked + (repeated?.times ?? 0)) return;
    clearInterval(wait);
    const count = (what: string): number => heard.filter((each) => each === what).length;
    const text = `heard ${count("result")} results and ${count("error")} errors`;
    send(
      JSON.stringify({
        jsonrpc: "2.0",
        method: "session/update",
        params: {
          sessionId: "raw",
          update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } },
        },
      }),
    );
    answer();
  }, 5);
});
