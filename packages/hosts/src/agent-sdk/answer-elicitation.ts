import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { LiveControls } from "@retinue/core/kernel/agent/open-agent.ts";
import { isBlocking, specificOf } from "./observed-hooks.ts";
import type { SdkConnection } from "./sdk-connection.ts";

type Elicit = NonNullable<LiveControls["elicit"]>;
type McpQuestion = Parameters<Elicit>[0];
type McpAnswer = Awaited<ReturnType<Elicit>>;
type Connection = Pick<SdkConnection, "channel" | "host" | "observed">;

/** Puts the question of an MCP server to hooks and then to the host; one that answers no questions declines it. */
export async function answerElicitation(
  connection: Connection,
  question: McpQuestion,
  signal: AbortSignal,
): Promise<McpAnswer> {
  const fields = fieldsOf(question);
  const subject = question.server;
  const before = await connection.observed().fire("Elicitation", { fields, signal, subject });
  const answer = before.some(isBlocking)
    ? ({ action: "decline" } as const)
    : (decided(before) ?? (await askHost(connection, fields, signal)));
  const { mcp_server_name, mode, elicitation_id } = fields;
  const after = await connection.observed().fire("ElicitationResult", {
    fields: { mcp_server_name, mode, elicitation_id, ...answer },
    signal,
    subject,
  });
  if (after.some(isBlocking)) return { action: "decline" };
  return decided(after) ?? answer;
}

function fieldsOf({ server, message, schema, url, elicitationId }: McpQuestion): JsonRecord {
  return {
    mcp_server_name: server,
    message,
    mode: url === undefined ? "form" : "url",
    requested_schema: schema,
    url,
    elicitation_id: elicitationId,
  };
}

/** The first answer of a callback, where one gives an answer. */
function decided(outputs: readonly JsonRecord[]): McpAnswer | undefined {
  return outputs.map((output) => readAnswer(specificOf(output))).find((answer) => answer !== undefined);
}

function readAnswer({ action, content }: JsonRecord): McpAnswer | undefined {
  if (action !== "accept" && action !== "decline" && action !== "cancel") return undefined;
  if (action !== "accept" || !isRecord(content)) return { action };
  // What is in it is checked by the server that asked.
  return { action, content: content as NonNullable<McpAnswer["content"]> };
}

async function askHost(
  { channel, host }: Pick<Connection, "channel" | "host">,
  fields: JsonRecord,
  signal: AbortSignal,
): Promise<McpAnswer> {
  host.setState("requires_action");
  try {
    const answer = await channel.ask({ subtype: "elicitation", ...fields }, signal);
    return readAnswer(answer) ?? { action: "decline" };
  } catch (error) {
    if (signal.aborted) throw error;
    return { action: "decline" };
  } finally {
    host.setState("running");
  }
}
