import { randomUUID } from "node:crypto";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { Session } from "@retinue/core/kernel/session.ts";
import { createAnswerStream } from "../agent-sdk/answer-stream.ts";
import { createCallResults } from "../agent-sdk/call-results.ts";
import { initMessage } from "../agent-sdk/init-message.ts";
import { createMessageOutput } from "../agent-sdk/print-messages.ts";
import { createSessionTotals, failureMessage, resultMessage } from "../agent-sdk/result-message.ts";
import { noteTiming, timingOf, turnsOf } from "../agent-sdk/run-turn.ts";
import type { TurnFigures } from "../agent-sdk/sdk-host.ts";
import { type SdkMessage, sdkMessages } from "../agent-sdk/sdk-messages.ts";
import { startFailure } from "../agent-sdk/serve-agent-sdk.ts";
import type { CliHost } from "../shared/cli-host.ts";
import { keySourceOf } from "../shared/open-print-session.ts";
import type { PrintRequest } from "../shared/print-options.ts";
import { createTextPrinter, type Printer } from "./printer.ts";

/** A failure before there is a session is a result too. What is wrong with the command line itself is only said on stderr. */
export function printFailure(host: CliHost, { output, session }: PrintRequest, error: unknown): void {
  if (output === "text" || (isRetinueError(error) && error.code === "misuse")) return;
  const result = startFailure(error, session.sessionId ?? session.resume ?? "");
  host.stdout.write(`${JSON.stringify(result)}\n`);
}

/** `reported` is what the person has been shown before; the notes of the plan do not say it again. */
export function createPrinter(
  host: CliHost,
  request: PrintRequest,
  session: Session,
  reported: ReadonlySet<string> = new Set(),
): Printer {
  return request.output === "text"
    ? createTextPrinter(host, session, { reported, budget: request.session.maxBudgetUsd })
    : createJsonPrinter(host, request, session);
}

/** Messages of a session that another process or command drives; they are made as those of a host's session. */
function createJsonPrinter(host: CliHost, request: PrintRequest, session: Session): Printer {
  const { sessionId } = session.plan;
  const context = {
    uuid: randomUUID,
    lineIds: () => [],
    partial: request.partial,
    results: createCallResults(),
  };
  const output = createMessageOutput(host, request);
  const send = (message: SdkMessage): void => output.write(`${JSON.stringify(message)}\n`);
  const answers = createAnswerStream({ ...context, sessionId: () => sessionId });
  const totals = createSessionTotals();
  totals.know(session.model);
  let turn = newTurn();
  return {
    begin() {
      send(
        initMessage(session, {
          mode: session.plan.policy.mode,
          model: session.plan.model.value,
          apiKeySource: keySourceOf(session, host.environment),
          uuid: randomUUID(),
        }),
      );
    },
    show(event) {
      totals.add(event);
      noteTiming(event, turn);
      const shown = answers.take(event);
      const others = event.type === "assistant-answered" ? [] : sdkMessages(event, { ...context, sessionId });
      for (const message of [...shown, ...others]) {
        if (message.type === "user") turn.userMessages += 1;
        send(message);
      }
    },
    end(ending) {
      const failure = failureMessage(ending, { sessionId, uuid: randomUUID(), id: randomUUID() });
      if (failure !== undefined) send(failure);
      const { lastStop } = turn;
      send(
        resultMessage(ending, {
          sessionId,
          uuid: randomUUID(),
          totals,
          turns: turnsOf(ending, turn, false),
          timing: timingOf(turn),
          lastStop,
          interrupted: false,
          inTools: turn.inTools,
          maxBudget: request.session.maxBudgetUsd,
        }),
      );
      turn = newTurn();
      output.end();
    },
    fail(error) {
      send(startFailure(error, sessionId));
      output.end();
    },
  };
}

function newTurn(): TurnFigures {
  return { inTools: false, startedAt: Date.now(), userMessages: 0 };
}
