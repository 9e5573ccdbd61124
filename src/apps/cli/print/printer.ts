import { randomUUID } from "node:crypto";
import type { RunEnding, RunEvent } from "../../../conversation/run-event.ts";
import { sessionFiles } from "../../../journal/session-files.ts";
import type { Session } from "../../../runtime/session.ts";
import { agentOutputFile } from "../../../tasks/agent-output-file.ts";
import type { TaskEvent } from "../../../tasks/task-manager.ts";
import type { CliHost, CliOutput } from "../cli-host.ts";
import { harmlessLines } from "../views/text-width.ts";
import { createChildMessages } from "./child-messages.ts";
import { createModelTally } from "./model-tally.ts";
import { initMessage, type MessageContext, messagesOf, type OutputMessage } from "./output-messages.ts";
import type { PrintRequest } from "./print-options.ts";
import { createProgressView } from "./progress-view.ts";
import { resultMessage } from "./result-message.ts";

/** What is printed of a session, in one of the output formats. */
export interface Printer {
  begin(): void;
  show(event: RunEvent): void;
  /** What a child agent does. */
  showChild(news: TaskEvent): void;
  end(ending: RunEnding): void;
}

/** `told` is what the person has been told before; the notes of the plan do not say it again. */
export function createPrinter(
  host: CliHost,
  request: PrintRequest,
  session: Session,
  reported: ReadonlySet<string> = new Set(),
): Printer {
  if (request.output === "text") return createTextPrinter(host, session, reported);
  const context: MessageContext = { sessionId: session.plan.sessionId, uuid: randomUUID };
  const line = (message: OutputMessage): void => host.stdout.write(`${JSON.stringify(message)}\n`);
  const tally = createModelTally();
  const end = (ending: RunEnding): void => line(resultMessage(ending, session.model, context, tally.take()));
  if (request.output === "json")
    return { begin: () => undefined, show: () => undefined, showChild: ({ event }) => tally.add(event), end };
  const children = createChildMessages({
    ...context,
    text: request.childText,
    outputFile: outputFiles(session),
  });
  return {
    begin: () => line(initMessage(session, keySourceOf(session, host), context)),
    show(event) {
      for (const message of messagesOf(event, request, context)) line(message);
    },
    showChild(news) {
      tally.add(news.event);
      for (const message of children(news)) line(message);
    },
    end,
  };
}

function createTextPrinter(host: CliHost, session: Session, reported: ReadonlySet<string>): Printer {
  const progress = createProgressView(host, reported);
  return {
    begin: () => progress.begin(session.plan),
    show: progress.show,
    showChild: progress.showChild,
    end(ending) {
      progress.end(ending);
      if (ending.output !== undefined) host.stdout.write(`${JSON.stringify(ending.output)}\n`);
      else if (ending.text !== "") host.stdout.write(`${answerText(ending.text.trimEnd(), host.stdout)}\n`);
    },
  };
}

/** What a model says: as it is for programs, and for a terminal without what that would act on. */
export function answerText(text: string, { isTerminal }: CliOutput): string {
  return isTerminal ? harmlessLines(text) : text;
}

function outputFiles({ plan, discovered }: Session): (agentId: string) => string {
  const files = sessionFiles(discovered.paths.transcripts, plan.sessionId);
  return (agentId) => agentOutputFile(files, agentId);
}

/** Which of the places a key can come from has one; never the key. */
function keySourceOf({ model, discovered }: Session, { environment }: CliHost): string {
  if (model.provider !== "anthropic") return "none";
  const { env, plain } = discovered.settings.settings;
  const isSet = (name: string): boolean => (env.get(name) ?? environment[name] ?? "").trim() !== "";
  const variable = ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"].find(isSet);
  return variable ?? (plain.apiKeyHelper === undefined ? "none" : "apiKeyHelper");
}
