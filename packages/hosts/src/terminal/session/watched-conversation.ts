import type { TreeElsewhere } from "@retinue/core/kernel/live/tree-elsewhere.ts";
import type { AgentEvent } from "@retinue/core/protocol/agent-event.ts";
import type { Question } from "@retinue/core/protocol/question.ts";
import { describeCall } from "../../shared/describe-call.ts";
import { conversationEntries, lastEntries } from "./conversation-entries.ts";
import { ConversationView, type ConversationViewOptions, describeError } from "./conversation-view.ts";
import type { AgentEntry, SessionEvent } from "./terminal-session.ts";

export interface WatchOptions {
  readonly tree: TreeElsewhere;
  readonly report: (event: SessionEvent) => void;
  readonly view: Pick<ConversationViewOptions, "directory" | "fileName" | "stored">;
  /** How many of the last prompts are shown. */
  readonly shownPrompts: number;
  /** What is written here is sent to the process that has it. */
  readonly follows: boolean;
}

const watched =
  "Another terminal has this conversation open. It is read-only here; /fork continues it in a copy.";
const followed =
  "This session runs in the background. What you write reaches it between its turns; leaving (Ctrl+D) does not end it.";

/** A conversation that another process has open, shown like one of this process. */
export class WatchedConversation implements Disposable {
  readonly view: ConversationView;
  readonly #options: WatchOptions;

  constructor(options: WatchOptions) {
    const { tree, report, view } = options;
    this.#options = options;
    // What is read of the files of another process has the time of day.
    this.view = new ConversationView({ ...view, report, showsPrompts: () => true, clockOffset: 0 });
    this.view.attach(tree);
  }

  get sessionId(): string {
    return this.#options.tree.sessionId;
  }

  /** Whether the other process still has it. */
  get isOwned(): boolean {
    return this.#options.tree.isOwned;
  }

  entries(): readonly AgentEntry[] {
    return conversationEntries(this.#options.tree.messages());
  }

  /** Reports what was said so far, and from then on what comes. */
  async open(): Promise<void> {
    const { report, tree, shownPrompts, follows } = this.#options;
    report({
      type: "conversation-opened",
      sessionId: tree.sessionId,
      earlier: lastEntries(this.entries(), shownPrompts),
      notes: [follows ? followed : watched],
      isReadOnly: !follows,
    });
    const mode = follows ? "background" : "watching";
    report({ type: "status-changed", status: { model: "", mode, modes: [mode] } });
    await tree.follow((event) => this.#onEvent(event));
  }

  /** The process that has the conversation reads it between its turns; it is shown when it is in the journal. */
  submit(text: string): void {
    const { tree, report } = this.#options;
    tree
      .submit("main", { type: "prompt", content: text })
      .catch((error: unknown) =>
        report({ type: "notice", level: "warning", text: `${describeError(error)} It was not sent.` }),
      );
  }

  [Symbol.dispose](): void {
    this.#options.tree[Symbol.dispose]();
  }

  #onEvent(event: AgentEvent): void {
    const { report, follows } = this.#options;
    if (event.type === "user-added" && event.agentId === "main" && event.origin !== "system") {
      for (const entry of conversationEntries([event.message]))
        if (entry.type === "prompt") report({ type: "message-read", text: entry.text });
    } else if (event.type === "question-asked") {
      // No one is asked in the process that has the session: its questions wait in the inbox.
      report({ type: "notice", level: "warning", text: waitingNotice(event.question) });
    } else if (event.type === "closed") {
      const who = follows ? "The session has ended" : "The other terminal has closed this conversation";
      report({ type: "notice", level: "info", text: `${who}. Write a message to continue it here.` });
    } else this.view.onEvent(event);
  }
}

function waitingNotice({ id, path, ...asked }: Question): string {
  const agents = path.map(({ name }) => name).join(", ");
  const call = "tool" in asked ? describeCall({ name: asked.tool, input: asked.input }) : asked.kind;
  return `${agents} waits for an answer: ${call} (/approvals, or retinue approve ${id}).`;
}
