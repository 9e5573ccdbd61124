// @io

import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { Messenger, SendOutcome } from "../tasks/messenger.ts";
import * as t from "../tools/input-type.ts";
import { jsonSchemaOf } from "../tools/json-schema-of.ts";
import type { Tool, ToolOutcome } from "../tools/tool.ts";
import { findMember, leadName, withMember } from "./team-config.ts";
import { addressees, deliver, findAddressee, type TeamContext } from "./team-context.ts";

export interface SendMessageOptions {
  /** Reaches child agents of the session; absent for a member, which has none. */
  readonly messenger?: Messenger | undefined;
  /** The caller's place in a team; absent where there are no teams. */
  readonly teamContext?: TeamContext | undefined;
  /** Called when the caller has agreed to end. */
  readonly onShutdown?: (() => void) | undefined;
}

/** The tool that writes to child agents and to members of a team. */
export function createSendMessageTool(options: SendMessageOptions): Tool {
  const tool: Tool<SendInput> = {
    name: "SendMessage",
    description: describe(options),
    effect: "coordinate",
    origin: "builtin",
    input,
    inputSchema: jsonSchemaOf(options.teamContext === undefined ? offered : offeredInTeam),
    isConcurrencySafe: () => true,
    async call(value, { signal, callId }) {
      const message = readMessage(value);
      if (typeof message === "string") return failed(message);
      if (message.type !== "text") return protocolOutcome(message, options);
      if (message.to === "*") return broadcast(message, options);
      const inTeam = await sendInTeam(message, options);
      if (inTeam !== undefined) return inTeam;
      const { messenger, teamContext } = options;
      if (messenger === undefined) return failed(unknownMember(message.to, teamContext));
      return outcomeOf(await messenger.send(message.to, message.text, { signal, callId }), teamContext);
    },
  };
  // Input is checked by the schema before `call` sees it.
  return tool as Tool;
}

function describe({ messenger, teamContext }: SendMessageOptions): string {
  const children = `Writes to a child agent of this session, by its id or the name you gave it.

- An agent that runs reads the message between its turns.
- An agent that has ended is resumed with the message and remembers everything it did. If it ran in the background before, you are notified when it has ended; otherwise its answer comes back as the result of this call.`;
  const team = `Writes to a member of your team by name ("team-lead" is the lead), or with to "*" to all of them.

- A member that works reads the message between its turns; an idle one wakes up.
- type "shutdown_request" asks a member to end; it answers with type "shutdown_response", request_id and approve.
- type "plan_approval_response" with request_id and approve answers a plan that a member handed in; only the lead can do that.`;
  return [messenger === undefined ? "" : children, teamContext === undefined ? "" : team]
    .filter((text) => text !== "")
    .join("\n\n");
}

const to = t.string().min(1).describe("The id or the name of the agent.");
const message = t.string().min(1).describe("What you want to say, in full.");
const summary = t.string().optional().describe("The message in a few words, for the person who watches.");
const offered = t.object({ to, message, summary });
const types = ["message", "shutdown_request", "shutdown_response", "plan_approval_response"] as const;
const offeredInTeam = t.object({
  to,
  message: t
    .string()
    .optional()
    .describe("What you want to say, in full; with a type: the reason or feedback."),
  summary,
  type: t.oneOf(types).optional().describe("message when left out."),
  request_id: t.string().optional().describe("Which request a response answers."),
  approve: t.boolean().optional().describe("Whether a response agrees."),
});

/** Also the field names of older versions. */
const input = t.object({
  to: t.string().optional(),
  recipient: t.string().optional(),
  message: t.union([t.string(), t.record(t.unknown())]).optional(),
  content: t.string().optional(),
  type: t.string().optional(),
  request_id: t.string().optional(),
  approve: t.boolean().optional(),
  summary: t.string().optional(),
});

type SendInput = t.Infer<typeof input>;

interface TextMessage {
  readonly type: "text";
  readonly to: string;
  readonly text: string;
  readonly summary: string | undefined;
}

interface ProtocolCall {
  readonly type: Exclude<(typeof types)[number], "message">;
  readonly to: string;
  readonly text: string | undefined;
  readonly requestId: string;
  readonly approve: boolean | undefined;
}

function readMessage(value: SendInput): TextMessage | ProtocolCall | string {
  const body = value.message ?? value.content ?? "";
  const fields = typeof body === "string" ? {} : body;
  const nested = (name: string): unknown => fields[name];
  const type = String(value.type ?? nested("type") ?? "message");
  const to = (value.to ?? value.recipient ?? "").trim();
  const words =
    typeof body === "string" ? body : [nested("reason"), nested("feedback"), nested("content")].find(isText);
  if (type === "message" || type === "broadcast") {
    const text = typeof words === "string" ? words : "";
    if (to === "" && type === "message") return "`to` is missing: give the id or the name of an agent.";
    if (text.trim() === "") return "`message` is missing: give the text to send.";
    return { type: "text", to: type === "broadcast" ? "*" : to, text, summary: value.summary };
  }
  const known = types.find((one) => one === type);
  if (known === undefined || known === "message")
    return `${JSON.stringify(type)} is not a type of message; expected one of ${types.join(", ")}.`;
  const approve = value.approve ?? nested("approve");
  return {
    type: known,
    to,
    text: isText(words) && words.trim() !== "" ? words : undefined,
    requestId: String(value.request_id ?? nested("request_id") ?? nested("requestId") ?? ""),
    approve: typeof approve === "boolean" ? approve : undefined,
  };
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

const needsTeam =
  "Broadcasts, shutdown requests and plan approvals need a team, and there is none here. Send a text to one agent.";

/** To a member, where the name is one; undefined leaves it to the child agents. */
async function sendInTeam(
  { to, text, summary }: TextMessage,
  { teamContext }: SendMessageOptions,
): Promise<ToolOutcome | undefined> {
  const config = teamContext?.store()?.config();
  if (teamContext === undefined || config === undefined || findAddressee(config, to) === undefined)
    return undefined;
  const sent = await deliver(teamContext, to, { body: text, summary });
  return sent.type === "sent" ? done(sent.text) : failed(sent.reason);
}

async function broadcast(
  { text, summary }: TextMessage,
  { teamContext }: SendMessageOptions,
): Promise<ToolOutcome> {
  const config = teamContext?.store()?.config();
  if (teamContext === undefined || config === undefined) return failed(needsTeam);
  const names = addressees(config, teamContext.name);
  if (names.length === 0) return failed("The team has no other members yet.");
  const results: string[] = [];
  for (const name of names) {
    const sent = await deliver(teamContext, name, { body: text, summary });
    results.push(sent.type === "sent" ? sent.text : sent.reason);
  }
  return done(results.join("\n"));
}

function protocolOutcome(
  message: ProtocolCall,
  options: SendMessageOptions,
): Promise<ToolOutcome> | ToolOutcome {
  const { teamContext } = options;
  if (teamContext?.store()?.config() === undefined) return failed(needsTeam);
  switch (message.type) {
    case "shutdown_request":
      return requestShutdown(message, teamContext);
    case "shutdown_response":
      return answerShutdown(message, teamContext, options);
    case "plan_approval_response":
      return answerPlan(message, teamContext);
  }
}

async function requestShutdown({ to, text }: ProtocolCall, teamContext: TeamContext): Promise<ToolOutcome> {
  if (!teamContext.isLead) return failed("Only the lead can ask a member to end.");
  const requestId = `shutdown-${Date.now()}@${to}`;
  const reason = text === undefined ? {} : { reason: text };
  const sent = await deliver(teamContext, to, { body: { type: "shutdown_request", requestId, ...reason } });
  if (sent.type === "refused") return failed(sent.reason);
  return done(`The request ${requestId} was sent; ${to} answers it.`, { request_id: requestId, target: to });
}

/** Counts only for a request that the lead has put into the inbox of this member. */
async function answerShutdown(
  { requestId, approve, text }: ProtocolCall,
  teamContext: TeamContext,
  { onShutdown }: SendMessageOptions,
): Promise<ToolOutcome> {
  const asked = teamContext
    .store()
    ?.inbox(teamContext.name)
    .mail.some(
      ({ from, protocol }) =>
        from === leadName && protocol?.type === "shutdown_request" && protocol.requestId === requestId,
    );
  if (teamContext.isLead || asked !== true)
    return failed(`There is no shutdown request ${JSON.stringify(requestId)} for you.`);
  if (approve === undefined) return failed("`approve` is missing: true to end, false to keep working.");
  const reason = text === undefined ? {} : { reason: text };
  const body = approve
    ? ({ type: "shutdown_approved", requestId } as const)
    : ({ type: "shutdown_rejected", requestId, ...reason } as const);
  const sent = await deliver(teamContext, leadName, { body });
  if (sent.type === "refused") return failed(sent.reason);
  if (!approve) return done("The lead was notified that you keep working.");
  onShutdown?.();
  return done("You end after this turn.");
}

/** Only the lead, and only the request that the member waits for. */
async function answerPlan(
  { to, requestId, approve, text }: ProtocolCall,
  teamContext: TeamContext,
): Promise<ToolOutcome> {
  if (!teamContext.isLead) return failed("Only the lead approves plans.");
  if (approve === undefined) return failed("`approve` is missing: true, or false with your feedback.");
  const store = await teamContext.ensureStore();
  const config = store.config();
  const member = config?.members.find((one) => one.name === to || one.planRequest === requestId);
  if (member === undefined || member.planRequest !== requestId)
    return failed(`No member waits for an answer to ${JSON.stringify(requestId)}.`);
  const feedback = text === undefined ? {} : { feedback: text };
  const body = { type: "plan_approval_response", requestId, approve, ...feedback } as const;
  // The config decides about its rights; the message only reports it.
  await store.update((now) => {
    const current = now === undefined ? undefined : findMember(now, member.name);
    if (now === undefined || current === undefined) throw memberGone(member.name);
    const { planRequest: _answered, ...rest } = current;
    return withMember(now, { ...rest, ...(approve ? { planApproved: true } : {}) });
  });
  const sent = await deliver(teamContext, member.name, { body });
  if (sent.type === "refused") return failed(sent.reason);
  return done(`${member.name} was notified that its plan is ${approve ? "approved" : "rejected"}.`);
}

function memberGone(name: string): RetinueError {
  return new RetinueError("member-gone", `The member ${JSON.stringify(name)} is no longer in the team.`);
}

function unknownMember(to: string, teamContext: TeamContext | undefined): string {
  const config = teamContext?.store()?.config();
  const members =
    config === undefined || teamContext === undefined ? [] : addressees(config, teamContext.name);
  return `There is no member ${JSON.stringify(to)} in the team. Members: ${members.join(", ")}.`;
}

function outcomeOf(sent: SendOutcome, teamContext: TeamContext | undefined): ToolOutcome {
  if (sent.type === "refused") {
    const config = teamContext?.store()?.config();
    const members =
      config === undefined || teamContext === undefined ? [] : addressees(config, teamContext.name);
    return failed(
      members.length === 0 ? sent.reason : `${sent.reason}\nMembers of the team: ${members.join(", ")}.`,
    );
  }
  const { id } = sent.recipient;
  if (sent.type === "queued") {
    const message = `The message was queued for ${id}, which runs; it reads it between its turns.`;
    return { content: message, data: { success: true, message } };
  }
  const { outcome } = sent;
  if (outcome.type === "refused") return failed(outcome.reason);
  const message = `The agent ${id} had ended and was resumed with the message.`;
  const details = typeof outcome.data === "object" && outcome.data !== null ? outcome.data : {};
  const isError = outcome.type === "ended" && outcome.isError;
  return {
    content: `${message}\n\n${outcome.text}`,
    data: { ...details, success: !isError, message, resumedAgentId: id },
    ...(isError ? { isError } : {}),
  };
}

function done(text: string, data: object = {}): ToolOutcome {
  return { content: text, data: { success: true, message: text, ...data } };
}

function failed(reason: string): ToolOutcome {
  return { content: reason, isError: true, data: { success: false, message: reason } };
}
