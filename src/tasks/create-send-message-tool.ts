import * as z from "zod";
import { jsonSchemaOf } from "../tools/json-schema-of.ts";
import type { Tool, ToolOutcome } from "../tools/tool.ts";
import type { Messenger, SendOutcome } from "./messenger.ts";

/** The tool with which a main agent writes to its child agents. */
export function createSendMessageTool(messenger: Messenger): Tool {
  const tool: Tool<SendInput> = {
    name: "SendMessage",
    description: `Writes to a child agent of this session, by its id or the name you gave it.

- An agent that runs reads the message between its turns.
- An agent that has ended is resumed with the message and remembers everything it did. If it ran in the background before, you are notified when it has ended; otherwise its answer comes back as the result of this call.`,
    effect: "coordinate",
    origin: "builtin",
    input,
    inputSchema: jsonSchemaOf(offered),
    isConcurrencySafe: () => true,
    async call(value, { signal, callId }) {
      const message = readMessage(value);
      if (typeof message !== "object") return failed(message);
      return outcomeOf(await messenger.send(message.to, message.text, { signal, callId }));
    },
  };
  // Input is checked by the schema before `call` sees it.
  return tool as Tool;
}

const offered = z.object({
  to: z.string().min(1).describe("The id or the name of the agent."),
  message: z.string().min(1).describe("What you want it to know, in full."),
  summary: z.string().optional().describe("The message in a few words, for the person who watches."),
});

/** Also the field names of older versions, and messages of a team's protocol, which need a sentence of their own. */
const input = z.object({
  to: z.string().optional(),
  recipient: z.string().optional(),
  message: z.union([z.string(), z.record(z.string(), z.unknown())]).optional(),
  content: z.string().optional(),
  type: z.string().optional(),
  summary: z.string().optional(),
});

type SendInput = z.infer<typeof input>;

function readMessage(value: SendInput): { readonly to: string; readonly text: string } | string {
  const to = (value.to ?? value.recipient ?? "").trim();
  const text = value.message ?? value.content ?? "";
  const isProtocol = typeof text !== "string" || (value.type ?? "message") !== "message";
  if (isProtocol || to === "*")
    return "Broadcasts, shutdown requests and plan approvals need a team, and there is none here. Send a text to one agent.";
  if (to === "") return "`to` is missing: give the id or the name of an agent.";
  if (text.trim() === "") return "`message` is missing: give the text to send.";
  return { to, text };
}

function outcomeOf(sent: SendOutcome): ToolOutcome {
  if (sent.type === "refused") return failed(sent.reason);
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

function failed(reason: string): ToolOutcome {
  return { content: reason, isError: true, data: { success: false, message: reason } };
}
