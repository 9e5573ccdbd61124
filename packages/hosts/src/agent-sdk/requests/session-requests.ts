import { randomUUID } from "node:crypto";
import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { type Message, textOf } from "@retinue/core/conversation/message.ts";
import { createPrintRuntime, openPrintSession } from "../../shared/open-print-session.ts";
import { type Asked, refused } from "../control-channel.ts";
import type { ControlHandler, ControlRequestOptions } from "./create-control-requests.ts";

/** Requests about the session as a whole: its title, its plan, its text, its folder and its end. */
export function sessionRequests(
  options: ControlRequestOptions,
): readonly (readonly [string, ControlHandler])[] {
  return [
    ["generate_session_title", (request) => makeTitle(request, options)],
    ["side_question", (request, signal, id) => answerAside(request, options, { id, signal })],
    ["get_plan", async () => describePlan((await options.host.ready()).session.messages())],
    ["export_conversation", async () => exportText((await options.host.ready()).session.messages())],
    ["set_cwd", (request) => moveTo(request, options)],
    ["end_session", () => end(options)],
  ];
}

const titleLength = 60;

/** From the words of the description; a model of its own for that would be a paid request. */
async function makeTitle(
  { description, persist }: JsonRecord,
  options: ControlRequestOptions,
): Promise<JsonRecord> {
  if (typeof description !== "string" || description.trim() === "") throw refused("it needs a description");
  const [line = ""] = description.trim().split("\n");
  const title = cutAtWord(line.trim(), titleLength);
  if (persist === true) {
    const { tree } = await options.host.ready();
    await tree.main.submit({ type: "rename", title });
    options.title = title;
  }
  return { title };
}

function cutAtWord(text: string, length: number): string {
  if (text.length <= length) return text;
  const cut = text.slice(0, length);
  return cut.includes(" ") ? cut.slice(0, cut.lastIndexOf(" ")) : cut;
}

/** A copy of the conversation answers, without tools, hooks and servers; the conversation itself does not learn of it. */
async function answerAside(
  { question }: JsonRecord,
  { host, context, choices }: ControlRequestOptions,
  { id, signal }: Asked,
): Promise<JsonRecord> {
  if (typeof question !== "string" || question.trim() === "") throw refused("it needs a question");
  const { session } = await host.ready();
  host.emit({
    type: "system",
    subtype: "control_request_progress",
    request_id: id,
    status: "started",
    uuid: randomUUID(),
    session_id: session.plan.sessionId,
  });
  const alone = { ...context, session: { settingSources: [], strictMcpConfig: true } };
  await using runtime = createPrintRuntime(alone, { sessionPersistence: false });
  const copy =
    session.messages().length === 0 ? {} : { resume: session.plan.sessionId, forkSession: true as const };
  const model = choices.model ?? session.plan.model.value;
  await using aside = await openPrintSession(runtime, { ...copy, model, tools: [], maxTurns: 1 }, signal);
  const ending = await aside.run(question, { signal }).result;
  if (ending.status === "failed") throw refused(ending.error ?? "the model gave no answer");
  return { response: ending.text, synthetic: false };
}

/** The plan that the main agent showed last. */
function describePlan(messages: readonly Message[]): JsonRecord {
  const plans = messages.flatMap(({ role, content }) =>
    role === "assistant" && typeof content !== "string"
      ? content.flatMap((block) =>
          block.type === "tool_use" && block.name === "ExitPlanMode" ? [block] : [],
        )
      : [],
  );
  const input = plans.at(-1)?.input;
  const plan = isRecord(input) ? input["plan"] : undefined;
  return typeof plan === "string" && plan !== "" ? { exists: true, plan } : { exists: false };
}

/** The conversation as people read it: what was asked, what was answered, and which tools were called. */
function exportText(messages: readonly Message[]): JsonRecord {
  const parts = messages.flatMap((message) => {
    const text = textOf(message).trim();
    const said = text === "" ? [] : [message.role === "user" ? `> ${text}` : text];
    const calls =
      message.role === "assistant" && typeof message.content !== "string"
        ? message.content.flatMap((block) => (block.type === "tool_use" ? [`[${block.name}]`] : []))
        : [];
    return [...said, ...calls];
  });
  const first = messages.map((message) => textOf(message).trim()).find((text) => text !== "") ?? "";
  const words = first.toLowerCase().match(/[a-z0-9]+/g) ?? ["conversation"];
  const time = new Date().toISOString().replace(/[-:]/g, "").replace("T", "-").slice(0, 15);
  return {
    text: parts.join("\n\n"),
    default_filename: `${time}-${words.slice(0, 6).join("-")}.txt`,
  };
}

/** Opens the session in another folder; a conversation that has begun stays where its transcript is. */
async function moveTo({ path }: JsonRecord, { host, choices }: ControlRequestOptions): Promise<JsonRecord> {
  if (typeof path !== "string" || path === "") throw refused("set_cwd needs a path");
  const { session } = await host.ready();
  const { directory } = session.plan;
  const folder = await realpath(resolve(directory, path)).catch(() => undefined);
  const found = folder === undefined ? undefined : await stat(folder);
  if (folder === undefined || found?.isDirectory() !== true)
    throw refused(`there is no folder ${JSON.stringify(path)}`);
  if (folder === directory) return { status: "ok", cwd: folder, changed: false, transcript_relocated: false };
  if (session.messages().length > 0)
    throw refused(
      "the conversation has begun, and its transcript belongs to its folder; start another there",
    );
  const before = choices.directory;
  choices.directory = folder;
  try {
    await host.reopen();
  } catch (error) {
    choices.directory = before;
    await host.reopen();
    throw error;
  }
  return { status: "ok", cwd: folder, changed: true, transcript_relocated: false };
}

/** What runs is stopped and what waits is dropped; the process ends as if its input had. */
async function end({ host }: ControlRequestOptions): Promise<undefined> {
  host.cancel();
  await host.interrupt(true);
  host.inputEnded();
}
