import { createInterface, type Interface } from "node:readline";
import { plural } from "../../shared/format.ts";
import { findSlashCommand, readLoginWords, readSlashCommand } from "../../shared/slash-commands.ts";
import { Conversation } from "../app/conversation.ts";
import { guardMs } from "../questions/question-controller.ts";
import { cleanText, rowText } from "../screen/row.ts";
import {
  type AgentSnapshot,
  type Question,
  type QuestionAnswer,
  type ReportTopic,
  reportTopics,
  type SessionEvent,
  type TerminalSession,
} from "../session/terminal-session.ts";
import { isRunning } from "../text/agent-rows.ts";
import { diffRows } from "../text/diff-rows.ts";
import { plainContext, type RowContext } from "../text/row-context.ts";

export interface PlainAppOptions {
  readonly session: TerminalSession;
  readonly input: NodeJS.ReadableStream;
  readonly write: (text: string) => void;
  readonly columns: () => number;
  readonly fileName: RowContext["fileName"];
  readonly now: () => number;
  readonly onExit: () => void;
}

const help = `Write a message and press enter. A backslash at the end of a line continues in the next.
/yes  /always  /no [message]   answer the question that was asked
/answer [words]                answer questions with choices, by number or in your own words
/stop                          interrupt the turn
/background                    move the running agents to the background
/mode [mode]                   the permission mode
/new, /quit                    start a new conversation; quit
/model NAME, /rename TITLE     change the model; set a title
/export [file]                 write the conversation as Markdown, or as a page to NAME.html
/${reportTopics.join(", /")}   reports about the session
!command                       run a command through the same rules
`;

/** The conversation reads these as messages. */
const sentCommands: ReadonlySet<string> = new Set(["compact"]);

/** The conversation as lines, without repainting anything: for screen readers and for terminals that know no escapes. */
export class PlainApp {
  readonly #options: PlainAppOptions;
  readonly #conversation: Conversation;
  readonly #questions = new Map<string, Question>();
  #guardedUntil = 0;
  readonly #agents = new Map<string, AgentSnapshot["state"]>();
  #lines: Interface | undefined;
  #forget: (() => void) | undefined;
  #draft = "";
  #modes: readonly string[] = [];

  constructor(options: PlainAppOptions) {
    this.#options = options;
    this.#conversation = new Conversation({
      context: () => ({ ...plainContext(Math.max(20, options.columns() - 1)), fileName: options.fileName }),
      now: options.now,
      startHint: "/help lists the commands · /quit leaves",
    });
  }

  open(): void {
    this.#forget = this.#options.session.subscribe((event) => this.#onEvent(event));
    const lines = createInterface({ input: this.#options.input, terminal: false });
    lines.on("line", (line) => this.#take(line));
    lines.on("close", () => this.#options.onExit());
    this.#lines = lines;
    this.#writeLine("retinue: write a message, or /help.");
  }

  close(): void {
    this.#forget?.();
    this.#forget = undefined;
    this.#conversation.close();
    this.#print();
    this.#lines?.removeAllListeners("close");
    this.#lines?.close();
  }

  #take(line: string): void {
    if (line.endsWith("\\")) {
      this.#draft += `${line.slice(0, -1)}\n`;
      return;
    }
    const text = `${this.#draft}${line}`.trim();
    this.#draft = "";
    if (text === "") return;
    const { session } = this.#options;
    if (text.startsWith("!")) session.runShell(text.slice(1).trim());
    else if (!text.startsWith("/")) session.submit(text);
    else void this.#command(text).catch((error: unknown) => this.#writeLine(String(error)));
  }

  async #command(text: string): Promise<void> {
    const { session } = this.#options;
    const { name, words } = readSlashCommand(text) ?? { name: "", words: "" };
    const server = name === "mcp" ? readLoginWords(words) : undefined;
    if (server !== undefined) return session.logIn(server);
    const topic = reportTopics.find((one): one is ReportTopic => one === name);
    if (topic !== undefined)
      return this.#writeLine(await session.library.report(topic, words === "" ? [] : words.split(/\s+/)));
    switch (name) {
      case "yes":
      case "always":
      case "no":
      case "answer":
        return this.#answer(name, words);
      case "help":
        return this.#writeLine(help);
      case "stop":
        return session.interrupt();
      case "background":
        return void session
          .moveToBackground()
          .then((moved) => this.#writeLine(`Moved to the background: ${moved.join(", ") || "nothing"}.`));
      case "mode":
        if (this.#modes.includes(words)) return session.setMode(words);
        return this.#writeLine(`The modes are ${this.#modes.join(", ")}.`);
      case "new":
      case "clear":
        return session.switchTo(undefined);
      case "model":
        if (words === "") return this.#writeLine("Write the model after /model.");
        await session.setModel(words);
        return this.#writeLine(`The model is ${words} from now on.`);
      case "rename":
        if (words === "") return this.#writeLine("Write the title after /rename.");
        await session.rename(words);
        return this.#writeLine(`The conversation is called ${words}.`);
      case "export": {
        const file = await session.library.exportTo(words === "" ? "conversation.md" : words);
        return this.#writeLine(`Written to ${this.#options.fileName(file)}.`);
      }
      case "login":
        return session.chooseAccess();
      case "logout":
        return session.forgetKey();
      case "trust":
        return session.reviewTrust();
      case "quit":
      case "exit":
        return this.#options.onExit();
      default:
        return this.#unknown(name, text);
    }
  }

  /** A skill is for the agent; what only the screen has is refused. */
  async #unknown(name: string, text: string): Promise<void> {
    const { session } = this.#options;
    const command = findSlashCommand(name);
    const skills = command === undefined ? [] : await session.library.commands();
    if (
      command === undefined ||
      skills.some((skill) => skill.name === name) ||
      sentCommands.has(command.name)
    )
      return session.submit(text);
    this.#writeLine(
      `/${name} needs the screen, which --plain and TERM=dumb leave out. /help lists what there is here.`,
    );
  }

  #answer(command: "yes" | "always" | "no" | "answer", words: string): void {
    const [question] = this.#questions.values();
    const answer = question === undefined ? undefined : readAnswer(question, command, words);
    if (question === undefined) this.#writeLine("There is no open question.");
    // An answer that comes this soon after the question before it was meant for that one.
    else if (answer === undefined || this.#options.now() < this.#guardedUntil)
      this.#writeLine(describeQuestion(question));
    else this.#options.session.answer(question.id, answer);
  }

  #onEvent(event: SessionEvent): void {
    this.#conversation.onEvent(event);
    if (event.type === "status-changed") {
      this.#modes = event.status.modes ?? this.#modes;
      if (event.status.mode !== undefined) this.#conversation.note(`The mode is ${event.status.mode}.`);
    }
    if (event.type === "conversation-opened") {
      for (const note of event.notes) this.#conversation.note(note);
      this.#conversation.replay(event.earlier);
    }
    if (event.type === "agent-changed") this.#showAgent(event.agent);
    if (event.type === "workflow-changed" && event.change.type === "phase")
      this.#writeLine(`Workflow ${event.run.name}: ${event.change.phase.title}`);
    const isNext = event.type === "question-closed" && this.#close(event.questionId);
    this.#print();
    const [next] = this.#questions.values();
    if (isNext && next !== undefined) this.#writeLine(describeQuestion(next));
    if (event.type === "question-asked") this.#ask(event.question);
    if (event.type === "turn-ended") this.#writeLine("Ready.");
  }

  /** Whether the question that is now the first has not been read out yet. */
  #close(questionId: string): boolean {
    const [first] = this.#questions.keys();
    this.#questions.delete(questionId);
    if (first !== questionId || this.#questions.size === 0) return false;
    this.#guardedUntil = this.#options.now() + guardMs;
    return true;
  }

  #ask(question: Question): void {
    this.#questions.set(question.id, question);
    if (this.#questions.size === 1) this.#writeLine(describeQuestion(question));
    else this.#writeLine(`${this.#questions.size} questions are waiting; answer the first.`);
  }

  #showAgent(agent: AgentSnapshot): void {
    const before = this.#agents.get(agent.id);
    this.#agents.set(agent.id, agent.state);
    this.#conversation.agentStarted(agent);
    if (before === undefined && isRunning(agent))
      this.#conversation.note(
        agent.depth === undefined
          ? `The agent ${agent.name} starts: ${agent.description}.`
          : `On level ${agent.depth} the agent ${agent.name} starts: ${agent.description}.`,
      );
    else if (!isRunning(agent) && before !== agent.state) this.#conversation.agentEnded(agent);
  }

  #print(): void {
    for (const row of this.#conversation.takeFinished()) this.#options.write(`${rowText(row)}\n`);
  }

  #writeLine(text: string): void {
    // What is said here may be a command or a question of an agent.
    this.#options.write(`${text.trimEnd().split("\n").map(cleanText).join("\n")}\n`);
  }
}

const width = 100;

/** A question as lines, with what to write to answer it. */
function describeQuestion(question: Question): string {
  const who = question.path.join(" > ");
  switch (question.kind) {
    case "permission": {
      const { call, subject, diff, reason, rules, starts } = question;
      if (starts !== undefined)
        return `Question: ${who} wants to start ${plural(starts, "agent")}:\n${subject}\n${reason}\nWrite /yes, or /no with what to do instead.`;
      const what =
        diff === undefined
          ? subject
          : [diff.path, ...diffRows(diff, plainContext(width), { maxRows: 100 }).map(rowText)].join("\n");
      const always = rules.length === 0 ? "" : `, /always to store ${rules.join(", ")} for this session`;
      return `Question: ${who} asks to use ${call.tool}:\n${what}\n${reason}\nWrite /yes${always}, or /no with what to do instead.`;
    }
    case "background":
      return `Question: ${who} starts ${question.agent} in the background: ${question.description}\nIt could use ${question.tools.join(", ")}. Write /yes to grant that, or /no to start it with nothing of it.`;
    case "plan":
      return `Question: ${who} has a plan:\n${question.plan}\nWrite /yes to carry it out, or /no with what is missing.`;
    case "form":
      return question.fields
        .map(({ question: asked, details = [], options }) => {
          const text = [asked, ...details].join("\n");
          const choices = options.map(({ label, description }, at) => `  ${at + 1} ${label}: ${description}`);
          return `Question: ${who} asks: ${text}\n${choices.join("\n")}\nWrite /answer with a number or your own words.`;
        })
        .join("\n");
  }
}

/** The answer that a command gives to a question; undefined where it is none. */
function readAnswer(
  question: Question,
  command: "yes" | "always" | "no" | "answer",
  words: string,
): QuestionAnswer | undefined {
  if (command === "no") return words === "" ? { type: "deny" } : { type: "deny", message: words };
  switch (question.kind) {
    case "permission":
      if (command === "yes") return { type: "allow" };
      return command === "always" && question.rules.length > 0
        ? { type: "allow-always", scope: "session", rules: question.rules }
        : undefined;
    case "background":
      return command === "yes" ? { type: "grant", tools: question.tools } : undefined;
    case "plan":
      return command === "yes" ? { type: "approve-plan", plan: question.plan, mode: "default" } : undefined;
    case "form":
      return command === "answer" && words !== "" ? readForm(question, words) : undefined;
  }
}

/** Several questions are answered in one line, with semicolons between the answers. */
function readForm(
  { fields }: Extract<Question, { kind: "form" }>,
  words: string,
): QuestionAnswer | undefined {
  const parts = fields.length === 1 ? [words] : words.split(";").map((part) => part.trim());
  if (parts.length !== fields.length) return undefined;
  const answers = fields.map(({ question, options }, at) => {
    const part = parts[at] ?? "";
    return [question, options[Number(part) - 1]?.label ?? part] as const;
  });
  return { type: "fields", answers: Object.fromEntries(answers) };
}
