// app/api/chat/route.ts of Next, or of anything else that calls a function with a Request.
import { promptFromUiMessages } from "retinue";
import { approver, sessionOf } from "../../../../agent.ts";

export async function POST(request: Request): Promise<Response> {
  const session = await sessionOf(request);
  const { messages } = await request.json();
  const run = session.run(promptFromUiMessages(messages), { signal: request.signal });
  return run.toResponse({ format: "ui-messages", approvals: approver });
}
