import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

/**
 * A program of another vendor, in small: an agent of the official package that does what the last line of its prompt
 * says, as a JSON list of steps, and reports the outcome of each. Its sessions are files below its first argument.
 */
type Step =
  | { readonly say: string }
  | { readonly read: string; readonly line?: number; readonly limit?: number }
  | { readonly write: string; readonly content: string }
  | {
      readonly run: string;
      readonly args?: string[];
      readonly cwd?: string;
      readonly env?: object;
      readonly kill?: boolean;
    }
  | { readonly ask: acp.ToolCallUpdate; readonly options?: acp.PermissionOption[]; readonly after?: "write" }
  | { readonly own: string; readonly path: string; readonly content: string }
  | { readonly look: string }
  | { readonly reach: number }
  | { readonly env: string }
  | { readonly servers: true }
  | { readonly cost: number }
  | { readonly raw: string }
  | { readonly flood: number }
  | { readonly stop: string }
  | { readonly hang: true }
  | { readonly child: string; readonly apart?: boolean }
  | { readonly die: number };

interface Session {
  readonly id: string;
  readonly mcpServers: readonly acp.McpServer[];
  mode: string;
  cancelled: AbortController;
}

const [, , folder = "", ...flags] = process.argv;
const sessions = new Map<string, Session>();
const has = (flag: string): boolean => flags.includes(flag);
mkdirSync(folder, { recursive: true });
if (has("--silent")) setInterval(() => undefined, 1000);

const fileOf = (id: string): string => join(folder, `${id}.txt`);
const options: acp.PermissionOption[] = [
  { optionId: "always", name: "Always", kind: "allow_always" },
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" },
];

const methods = acp.methods;
const open = (id: string, mcpServers: readonly acp.McpServer[]): Session => {
  const session = { id, mcpServers, mode: "free", cancelled: new AbortController() };
  sessions.set(id, session);
  return session;
};

const modes = {
  currentModeId: "free",
  availableModes: [
    { id: "free", name: "Free" },
    { id: "default", name: "Asks" },
  ],
};

/** What it offers to choose from, some of it in groups. */
const configOptions: acp.SessionConfigOption[] = [
  {
    type: "select",
    id: "brain",
    category: "model",
    name: "Model",
    currentValue: "small",
    options: [
      {
        group: "g",
        name: "All",
        options: [
          { value: "small", name: "Small" },
          { value: "large", name: "Large" },
        ],
      },
    ],
  },
];

/** Conversations that are written only once it is asked to finish. */
const unwritten: (() => void)[] = [];
const writeAll = (): void => {
  for (const keep of unwritten.splice(0)) keep();
};

const app = acp
  .agent({ name: "fake" })
  .onRequest(methods.agent.initialize, () => ({
    protocolVersion: has("--old") ? 0 : acp.PROTOCOL_VERSION,
    agentCapabilities: {
      loadSession: !has("--forgets"),
      sessionCapabilities: {
        ...(has("--claims-resume") ? { resume: {} } : {}),
        ...(has("--keeps-until-close") ? { close: {} } : {}),
      },
      mcpCapabilities: { http: !has("--no-http"), sse: false },
    },
  }))
  .onRequest(methods.agent.authenticate, () => ({}))
  .onRequest(methods.agent.session.new, ({ params }) => {
    if (has("--login")) throw acp.RequestError.authRequired();
    const id = `s${Date.now()}-${process.pid}`;
    writeFileSync(fileOf(id), "");
    open(id, params.mcpServers);
    return { sessionId: id, modes, configOptions };
  })
  .onRequest(methods.agent.session.load, async ({ params, client }) => {
    if (!existsSync(fileOf(params.sessionId))) throw acp.RequestError.resourceNotFound(params.sessionId);
    open(params.sessionId, params.mcpServers);
    const text = readFileSync(fileOf(params.sessionId), "utf8");
    await say(client, params.sessionId, `(replayed) ${text}`);
    return { modes };
  })
  .onRequest(methods.agent.session.setMode, ({ params }) => {
    const session = sessions.get(params.sessionId);
    if (session !== undefined) session.mode = params.modeId;
    return {};
  })
  .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
    const session = sessions.get(params.sessionId);
    if (session === undefined) throw acp.RequestError.resourceNotFound(params.sessionId);
    session.cancelled = new AbortController();
    const [block] = params.prompt;
    const text = block?.type === "text" ? block.text : "";
    const before = readFileSync(fileOf(session.id), "utf8");
    const keep = (): void => appendFileSync(fileOf(session.id), `${text}\n`);
    if (has("--keeps-until-close") || has("--keeps-until-end")) unwritten.push(keep);
    else keep();
    const line = text.split("\n").findLast((each) => each.startsWith("["));
    if (line === undefined) {
      await say(
        client,
        session.id,
        `prompt ${JSON.stringify(text)} in mode ${session.mode} after ${before.length}`,
      );
      return { stopReason: "end_turn" as const, usage: tokens };
    }
    // The line is a script of a test.
    for (const step of JSON.parse(line) as Step[]) {
      const stopReason = await play(step, session, client);
      if (session.cancelled.signal.aborted) return { stopReason: "cancelled" as const };
      if (stopReason !== undefined) return { stopReason, usage: tokens };
    }
    return { stopReason: "end_turn" as const, usage: tokens };
  })
  .onRequest(methods.agent.session.setConfigOption, ({ params }) => {
    const session = sessions.get(params.sessionId);
    if (session !== undefined) session.mode = `${session.mode} with ${String(params.value)}`;
    return { configOptions };
  })
  .onNotification(methods.agent.session.cancel, ({ params }) => {
    appendFileSync(join(folder, "cancelled.txt"), `${params.sessionId}\n`);
    sessions.get(params.sessionId)?.cancelled.abort();
  });

const inGroup = ["sleep", "600"] as const;
const inApart = ["sh", "-c", "setsid sleep 600 & echo $!"] as const;
const tokens = { totalTokens: 30, inputTokens: 20, outputTokens: 10 };

function say(client: acp.AgentContext, sessionId: string, text: string): Promise<void> {
  return client.notify(methods.client.session.update, {
    sessionId,
    update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } },
  });
}

/** What went wrong is reported like everything else. */
async function play(
  step: Step,
  session: Session,
  client: acp.AgentContext,
): Promise<acp.StopReason | undefined> {
  const sessionId = session.id;
  const report = (text: string): Promise<void> => say(client, sessionId, `${text}\n`);
  try {
    if ("say" in step) await report(step.say);
    else if ("read" in step) {
      const { content } = await client.request(methods.client.fs.readTextFile, {
        sessionId,
        path: step.read,
        ...(step.line === undefined ? {} : { line: step.line }),
        ...(step.limit === undefined ? {} : { limit: step.limit }),
      });
      await report(`read ${JSON.stringify(content)}`);
    } else if ("write" in step) {
      const { write: path, content } = step;
      await client.request(methods.client.fs.writeTextFile, { sessionId, path, content });
      await report("written");
    } else if ("run" in step) await runIn(step, session, client, report);
    else if ("ask" in step) await ask(step, sessionId, client, report);
    else if ("own" in step) {
      const call = {
        sessionId,
        update: { toolCallId: step.own, title: "does it by itself", kind: "edit" as const },
      };
      const update = (more: object) =>
        client.notify(methods.client.session.update, {
          sessionId,
          update: { ...call.update, ...more } as acp.SessionUpdate,
        });
      await update({ sessionUpdate: "tool_call", status: "in_progress", rawInput: { path: step.path } });
      await writeFile(step.path, step.content);
      await update({
        sessionUpdate: "tool_call_update",
        status: "completed",
        content: [{ type: "content", content: { type: "text", text: "done by itself" } }],
      });
    } else if ("look" in step) await report(`saw ${JSON.stringify(readFileSync(step.look, "utf8"))}`);
    else if ("reach" in step) {
      const socket = connect(step.reach, "127.0.0.1");
      await once(socket, "connect");
      socket.destroy();
      await report("reached");
    } else if ("env" in step) await report(`${step.env}=${process.env[step.env] ?? "unset"}`);
    else if ("servers" in step) await report(`servers ${JSON.stringify(session.mcpServers)}`);
    else if ("cost" in step)
      await client.notify(methods.client.session.update, {
        sessionId,
        update: {
          sessionUpdate: "usage_update",
          used: 1,
          size: 100,
          cost: { amount: step.cost, currency: "USD" },
        },
      });
    else if ("raw" in step) process.stdout.write(`${step.raw}\n`);
    else if ("flood" in step) {
      const update = { sessionUpdate: "tool_call", title: "x", kind: "other", status: "pending" };
      for (let at = 0; at < step.flood; at += 1)
        process.stdout.write(
          `${JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { sessionId, update: { ...update, toolCallId: `f${at}` } } })}\n`,
        );
    } else if ("stop" in step) return step.stop as acp.StopReason;
    else if ("child" in step) {
      // Apart: an orphan in a session of its own.
      const [file, ...words] = step.apart === true ? inApart : inGroup;
      const child = spawn(file, words, { stdio: ["ignore", "pipe", "ignore"] });
      const started = step.apart === true ? String(await once(child.stdout, "data")) : String(child.pid);
      writeFileSync(step.child, started);
    } else if ("die" in step) {
      process.stderr.write("the fake agent dies\n");
      process.exit(step.die);
    } else {
      writeFileSync(join(folder, "hanging.txt"), String(process.pid));
      await new Promise<void>((resolve) => {
        if (!has("--deaf")) session.cancelled.signal.addEventListener("abort", () => resolve());
      });
    }
  } catch (error) {
    await report(`failed: ${error instanceof Error ? error.message : String(error)}`);
  }
  return undefined;
}

async function runIn(
  { run: command, args, cwd, env = {}, kill = false }: Extract<Step, { readonly run: string }>,
  { id: sessionId }: Session,
  client: acp.AgentContext,
  report: (text: string) => Promise<void>,
): Promise<void> {
  const terminal = await client.createTerminal({
    sessionId,
    command,
    ...(args === undefined ? {} : { args }),
    ...(cwd === undefined ? {} : { cwd }),
    env: Object.entries(env).map(([name, value]) => ({ name, value: String(value) })),
  });
  if (kill) await terminal.kill();
  const exit = await terminal.waitForExit();
  const { output } = await terminal.currentOutput();
  await terminal.release();
  await report(`ran ${JSON.stringify({ ...exit, output })}`);
}

async function ask(
  { ask: toolCall, options: offered = options, after }: Extract<Step, { readonly ask: acp.ToolCallUpdate }>,
  sessionId: string,
  client: acp.AgentContext,
  report: (text: string) => Promise<void>,
): Promise<void> {
  const update = (more: object): Promise<void> =>
    client.notify(methods.client.session.update, {
      sessionId,
      update: { ...toolCall, ...more } as acp.SessionUpdate,
    });
  await update({ sessionUpdate: "tool_call", status: "pending", title: toolCall.title ?? "something" });
  const { outcome } = await client.request(methods.client.session.requestPermission, {
    sessionId,
    toolCall,
    options: offered,
  });
  const answer = outcome.outcome === "selected" ? outcome.optionId : outcome.outcome;
  const diff = toolCall.content?.find((part) => part.type === "diff");
  if (answer === "yes" && after === "write" && diff !== undefined)
    await client
      .request(methods.client.fs.writeTextFile, { sessionId, path: diff.path, content: diff.newText })
      .catch((error: unknown) => report(`failed: ${String(error)}`));
  await update({ sessionUpdate: "tool_call_update", status: answer === "yes" ? "completed" : "failed" });
  await report(`answered ${answer}`);
}

if (has("--keeps-until-close"))
  app.onRequest(methods.agent.session.close, () => {
    writeAll();
    return {};
  });

if (!has("--silent")) {
  // The types of web streams in Node and in the package are the same at run time.
  const output = Writable.toWeb(process.stdout) as WritableStream<Uint8Array>;
  const input = Readable.toWeb(process.stdin) as unknown as ReadableStream<Uint8Array>;
  const connection = app.connect(acp.ndJsonStream(output, input));
  await connection.closed;
  if (has("--keeps-until-end")) writeAll();
  if (!has("--deaf")) process.exit(0);
}
