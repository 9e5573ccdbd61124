import { RetinueError } from "../../foundation/retinue-error.ts";
import type { Approver } from "../../permissions/approver.ts";
import type { CanUseTool } from "../../runtime/authorize.ts";
import type { ToolHost } from "../../tools/tool-host.ts";
import { choiceQuestion } from "./choice-question.ts";
import type { PendingCall } from "./pending-call.ts";
import { permissionQuestion } from "./permission-question.ts";

/** All calls that are under way, and how what their agents ask finds the client that waits for them. */
export interface PendingCalls {
  add(pendingCall: PendingCall): void;
  remove(id: string): void;
  find(id: string): PendingCall | undefined;
  /** Refuses at once where the client cannot be asked, so that the reason is not taken for a person's. */
  readonly canUseTool: CanUseTool;
  readonly approver: Approver;
  readonly ask: NonNullable<ToolHost["ask"]>;
  stopAll(): Promise<void>;
}

export function createPendingCalls(): PendingCalls {
  const pendingCalls = new Map<string, PendingCall>();
  const ofAgent = (agentId: string): PendingCall | undefined =>
    [...pendingCalls.values()].find((pendingCall) => pendingCall.tasks.get(agentId)?.callId === pendingCall.id);

  return {
    add: (pendingCall) => void pendingCalls.set(pendingCall.id, pendingCall),
    remove: (id) => void pendingCalls.delete(id),
    find: (id) => pendingCalls.get(id),
    async canUseTool(_tool, _input, { agentId, reason }) {
      if (ofAgent(agentId)?.asks === true) return { behavior: "ask" };
      return {
        behavior: "deny",
        message: `${reason}, and this MCP client cannot be asked (no elicitation)`,
      };
    },
    approver: {
      async approve(request, { signal }) {
        // What is asked before an agent starts names only the call.
        const pendingCall = pendingCalls.get(request.callId) ?? ofAgent(request.path.at(-1)?.id ?? "");
        if (pendingCall?.mayAsk() === true) return pendingCall.ask(permissionQuestion(request), signal);
        const why = pendingCall?.asks === true ? "this call has asked too often" : "the client cannot be asked";
        return { type: "deny", message: `(nobody was asked: ${why})` };
      },
    },
    async ask(questions, { signal, agent }) {
      const pendingCall = ofAgent(agent?.id ?? "");
      const answers =
        pendingCall?.mayAsk() === true
          ? await pendingCall.ask(choiceQuestion(agent?.name ?? "", questions), signal)
          : undefined;
      if (answers !== undefined) return answers;
      throw new RetinueError("not-answered", "the person gave no answer, or the MCP client cannot be asked");
    },
    async stopAll() {
      await Promise.all([...pendingCalls.values()].map((pendingCall) => pendingCall.stop()));
    },
  };
}
