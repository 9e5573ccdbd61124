import { RetinueError } from "../../foundation/retinue-error.ts";
import type { Approver } from "../../permissions/approver.ts";
import type { CanUseTool } from "../../runtime/authorize.ts";
import type { ToolHost } from "../../tools/tool-host.ts";
import { choiceQuestion } from "./choice-question.ts";
import type { Flight } from "./flight.ts";
import { permissionQuestion } from "./permission-question.ts";

/** All calls that are under way, and how what their agents ask finds the client that waits for them. */
export interface FlightDesk {
  add(flight: Flight): void;
  remove(id: string): void;
  find(id: string): Flight | undefined;
  /** Refuses at once where the client cannot be asked, so that the reason is not taken for a person's. */
  readonly canUseTool: CanUseTool;
  readonly approver: Approver;
  readonly ask: NonNullable<ToolHost["ask"]>;
  stopAll(): Promise<void>;
}

export function createFlightDesk(): FlightDesk {
  const flights = new Map<string, Flight>();
  const ofAgent = (agentId: string): Flight | undefined =>
    [...flights.values()].find((flight) => flight.tasks.get(agentId)?.callId === flight.id);

  return {
    add: (flight) => void flights.set(flight.id, flight),
    remove: (id) => void flights.delete(id),
    find: (id) => flights.get(id),
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
        const flight = flights.get(request.callId) ?? ofAgent(request.path.at(-1)?.id ?? "");
        if (flight?.mayAsk() === true) return flight.ask(permissionQuestion(request), signal);
        const why = flight?.asks === true ? "this call has asked too often" : "the client cannot be asked";
        return { type: "deny", message: `(nobody was asked: ${why})` };
      },
    },
    async ask(questions, { signal, agent }) {
      const flight = ofAgent(agent?.id ?? "");
      const answers =
        flight?.mayAsk() === true
          ? await flight.ask(choiceQuestion(agent?.name ?? "", questions), signal)
          : undefined;
      if (answers !== undefined) return answers;
      throw new RetinueError("not-answered", "the person gave no answer, or the MCP client cannot be asked");
    },
    async stopAll() {
      await Promise.all([...flights.values()].map((flight) => flight.stop()));
    },
  };
}
