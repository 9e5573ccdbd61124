// app/api/approvals/route.ts: a person's answer, which counts for questions of their own session alone.
import { approver, sessionOf } from "../../../../agent.ts";

export async function POST(request: Request): Promise<Response> {
  const session = await sessionOf(request);
  const { id, answer } = await request.json();
  approver.answer(id, answer, { sessionId: session.id });
  return Response.json({ answered: true });
}
