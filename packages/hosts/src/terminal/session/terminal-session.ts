import type { AgentEvent } from "@retinue/core/protocol/agent-event.ts";
import type { MergeAsk } from "@retinue/core/protocol/op.ts";
import type { WorkflowRunState } from "@retinue/core/protocol/workflow-state.ts";
/**
 * All that the terminal knows of what runs behind it. Everything arrives as events, everything a person does leaves as a
 * call; the terminal knows no runtime, no journal and no files. One file, `runtime-session.ts`, opens the trees of agents behind it.
 */
export interface TerminalSession extends AsyncDisposable {
  /** What can be looked up beside the conversation. */
  readonly library: SessionLibrary;
  /** False: a message such as `/name` is plain text, unless it is a command of the terminal. */
  readonly takesCommands: boolean;

  /** Is notified of what happens from now on; the session shows what was before with `conversation-opened`. */
  subscribe(listener: (event: SessionEvent) => void): () => void;

  /** Starts a turn with a message, or queues it while one runs; the agent reads it between two model calls. */
  submit(text: string): void;
  /**
   * Takes an image, of a file or of the clipboard, for prompts that have what this resolves with in their text. Undefined where
   * there is no image; rejects where it cannot be sent.
   */
  attachImage(file?: string): Promise<string | undefined>;
  /** Takes a queued message back; undefined when it was read meanwhile. */
  takeBack(messageId: string): string | undefined;
  /** Stops the turn and the agents it waits for; the conversation continues with the next message. */
  interrupt(): void;

  answer(questionId: string, answer: QuestionAnswer): void;
  setMode(mode: string): void;
  setModel(model: string): Promise<void>;
  /** Takes the person through a login at an MCP server. Rejects where there is none. */
  logIn(server: string): Promise<void>;

  /** Asks the person who is to answer: a key, a server on this machine, or the offline demo. */
  chooseAccess(): Promise<void>;
  /** Forgets the key that `chooseAccess` kept. */
  forgetKey(): Promise<void>;
  /** Shows what this folder would run and set, and asks whether it is trusted. */
  reviewTrust(): Promise<void>;

  /** Moves what the turn waits for to the background, or the agent with this id; says what was moved. */
  moveToBackground(agentId?: string): Promise<readonly string[]>;
  messageAgent(agentId: string, text: string): Promise<string>;
  stopAgent(agentId: string): Promise<void>;
  /** Is notified of what an agent has done so far, and what it does from now on. */
  watchAgent(agentId: string, listener: (entry: AgentEntry) => void): () => void;

  /** `!command`: runs through the same rules and questions as a command of the agent. */
  runShell(command: string): void;
  /** `#note`: appends it to the instructions of the project or of the person; says where. */
  addMemory(note: string, scope: "project" | "user"): Promise<string>;

  /** Keeps how the terminal looks and takes keys, for this person in all folders. */
  prefer(preferences: Partial<Preferences>): void;

  /** Changes files of the project or of the person, and opens the conversation again so that it holds; says what was changed. */
  change(change: ProjectChange): Promise<string>;

  rename(title: string): Promise<void>;
  compact(instructions: string): void;
  /** Each child of the queue is reported as it is done. */
  merge(ask: MergeAsk): Promise<void>;
  /** Continues from before a prompt, in a copy; the conversation as it was stays on disk. */
  rewind(promptId: string, restores?: RewindTarget): Promise<void>;
  /** Continues with another conversation, or with a new one. */
  switchTo(sessionId: string | undefined, options?: { readonly fork?: boolean }): Promise<void>;

  /** What would be lost by ending now, for the line that is shown at the end. */
  closing(): { readonly sessionId: string | undefined; readonly running: readonly string[] };
}

type WorkflowProgress = Extract<AgentEvent, { type: "workflow-changed" }>["change"];

/** What can be looked up and kept beside the conversation; nothing of it changes how it continues. */
export interface SessionLibrary {
  /** Skills and commands of files, beside those of the terminal. */
  commands(): Promise<readonly CommandSummary[]>;
  models(): Promise<readonly Choice[]>;
  /** What there is to look at, to use and to change. */
  managed(topic: ManagedTopic): Promise<readonly ManagedItem[]>;
  /** Paths of files of the project, from its folder on, for `@` in a message. */
  files(): Promise<readonly string[]>;
  /** A page for a person, such as the rules in force or what the session cost. */
  report(topic: ReportTopic, words: readonly string[]): Promise<string>;
  /** What people have sent before in this folder, newest first. */
  history(): Promise<readonly string[]>;

  /** Everything in this conversation. */
  transcript(): Promise<readonly AgentEntry[]>;
  /** The prompts of this conversation that it can go back to, oldest first. */
  prompts(): Promise<readonly EarlierPrompt[]>;
  /** What agents have changed in files since a prompt, as far as it can be taken back. */
  changedSince(promptId: string): Promise<ChangedFiles>;
  exportTo(file: string): Promise<string>;

  sessions(): Promise<readonly SessionSummary[]>;
  deleteSession(sessionId: string): Promise<void>;

  /** Questions of all sessions of this folder that wait in the inbox, and grants that hold; of all folders where asked. */
  parked(options: { readonly everywhere: boolean }): Promise<readonly ParkedQuestion[]>;
  answerParked(id: string, answer: QuestionAnswer): Promise<void>;
  /** Takes a grant back; what it has allowed stays done. */
  revokeGrant(id: string): Promise<void>;
}

/** A question that waits on disk until a user answers it, or a grant that was the answer. */
export interface ParkedQuestion {
  readonly id: string;
  readonly isWaiting: boolean;
  readonly tool: string;
  readonly subject: string;
  /** Who asks: the path of the agent, or how many agents. */
  readonly agents: string;
  readonly at: number;
  /** All about it, for a page. */
  readonly text: string;
  readonly question: PermissionQuestion;
  /** How many agents ask the same. */
  readonly count: number;
  /** How far an answer can reach; empty where every such call must be asked about. */
  readonly scopes: readonly GrantScope[];
}

export type ManagedTopic = "agents" | "permissions" | "mcp" | "hooks" | "skills" | "config";

/** How the terminal looks and takes keys. */
export interface Preferences {
  /** `terminal`: as the environment says. */
  readonly theme: Theme;
  readonly hasVimKeys: boolean;
}

export const themes = ["terminal", "dark", "light"] as const;
export type Theme = (typeof themes)[number];

/** A setting of the person's own settings file that a list can change. */
export interface EditableSetting {
  readonly path: readonly string[];
  /** What can be chosen; without it a text is written. */
  readonly values?: readonly string[];
  /** What the values mean. */
  readonly meanings?: ReadonlyMap<string, string>;
  readonly isNumber?: boolean;
  readonly value: string | undefined;
}

/** One thing of a list that can be used and changed there. */
export interface ManagedItem {
  readonly id: string;
  readonly label: string;
  readonly detail: string;
  /** All about it, for a page. */
  readonly page: string;
  /** The file that a person can edit. */
  readonly file?: string | undefined;
  /** What the draft begins with when it is used. */
  readonly draft?: string | undefined;
  readonly isOff?: boolean | undefined;
  /** Switches it off or on again, or takes it away. */
  readonly toggle?: ProjectChange | undefined;
  readonly login?: "in" | "out" | undefined;
  readonly setting?: EditableSetting | undefined;
}

export type RuleList = "allow" | "ask" | "deny";
export type RuleScope = "local" | "project" | "user";

/** A change of files beside the conversation. */
export type ProjectChange =
  | {
      readonly type: "add-rule" | "remove-rule";
      readonly list: RuleList;
      readonly rule: string;
      readonly scope: RuleScope;
    }
  | { readonly type: "approve-server" | "reject-server" | "log-out"; readonly server: string }
  /** A server for this person in this project: an address, or a command with its arguments. */
  | { readonly type: "add-server"; readonly server: string; readonly words: readonly string[] }
  | { readonly type: "reconnect" }
  /** The model of new conversations, for this person. */
  | { readonly type: "model"; readonly model: string }
  /** Switches all hooks of settings off or on, for this person in this project. */
  | { readonly type: "hooks"; readonly on: boolean }
  | { readonly type: "new-agent" | "new-skill"; readonly name: string }
  /** A setting of this person; without a value it is taken out. */
  | {
      readonly type: "setting";
      readonly path: readonly string[];
      readonly value: string | number | boolean | undefined;
    }
  /** A file was edited. */
  | { readonly type: "edited"; readonly file: string };

export const reportTopics = [
  "agents",
  "approvals",
  "tasks",
  "permissions",
  "mcp",
  "memory",
  "context",
  "cost",
  "inspect",
  "doctor",
  "workflows",
] as const;
export type ReportTopic = (typeof reportTopics)[number];

export interface Choice {
  readonly value: string;
  readonly label: string;
  readonly description?: string;
}

export interface CommandSummary {
  readonly name: string;
  readonly description: string;
  readonly argumentHint?: string;
}

export interface EarlierPrompt {
  readonly id: string;
  readonly text: string;
  readonly at?: number;
  /** How many files were changed for it, as far as that can be taken back. */
  readonly files?: number;
}

/** What goes back to how it was before a prompt. */
export type RewindTarget = "conversation" | "files" | "both";

export interface ChangedFiles {
  readonly files: readonly string[];
  readonly insertions: number;
  readonly deletions: number;
}

export interface SessionSummary {
  readonly id: string;
  readonly title: string;
  readonly modified: number;
  readonly messages: number;
  /** Another process has it open. */
  readonly isOpenElsewhere?: boolean;
}

/** What the line at the bottom says; only what has changed is reported. */
export interface Status {
  readonly model: string;
  readonly mode: string;
  /** Modes that Shift+Tab goes through. */
  readonly modes: readonly string[];
  /** How full the model's window is, from 0 to 1. */
  readonly contextFill: number;
  readonly costUsd: number;
  readonly title: string;
  /** What the person's own command says of the conversation; it may ask for colours. */
  readonly statusLine: string;
}

export interface AgentSnapshot {
  readonly id: string;
  readonly parentId?: string;
  /** Its level below the main agent, from 2; absent for a child of the main agent. */
  readonly depth?: number;
  /** The call that started it, when an agent did. */
  readonly callId?: string;
  readonly name: string;
  readonly colour?: string;
  readonly description: string;
  readonly state: "queued" | "running" | "completed" | "partial" | "failed" | "stopped";
  readonly isBackground: boolean;
  /** What it does now, with its file or command. */
  readonly activity: string;
  readonly tokens: number;
  readonly costUsd?: number;
  /** Milliseconds on the clock of `Date.now`. */
  readonly startedAt: number;
  readonly endedAt?: number;
  /** Why it failed or was stopped, as one sentence. */
  readonly reason?: string;
}

export interface EndedCommand {
  readonly command: string;
  readonly state: "completed" | "failed" | "stopped" | "timed-out";
  readonly exitCode?: number;
  readonly durationMs: number;
}

export interface ToolCall {
  readonly id: string;
  readonly tool: string;
  readonly input: unknown;
  /** The person made it at the prompt: it belongs to no turn, and its output is for them. */
  readonly isPerson?: true;
}

export interface ToolResult {
  readonly text: string;
  readonly isError: boolean;
  /** Why it was not allowed to run, for people. */
  readonly refusal?: string;
  readonly diff?: FileDiff;
  readonly durationMs: number;
}

export interface FileDiff {
  readonly path: string;
  readonly hunks: readonly DiffHunk[];
}

export interface DiffHunk {
  readonly oldStart: number;
  readonly newStart: number;
  /** Each with ` `, `-` or `+` before it. */
  readonly lines: readonly string[];
}

/** One thing an agent said or did, for its own view. */
export type AgentEntry =
  | { readonly type: "prompt"; readonly text: string }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "call"; readonly call: ToolCall }
  | { readonly type: "result"; readonly callId: string; readonly result: ToolResult }
  | { readonly type: "ended"; readonly text: string };

export interface TodoItem {
  readonly text: string;
  readonly state: "pending" | "active" | "done";
}

export type SessionEvent =
  /** A conversation begins or is taken up again; `earlier` is the end of what was said in it. */
  | {
      readonly type: "conversation-opened";
      readonly sessionId: string;
      readonly earlier: readonly AgentEntry[];
      readonly notes: readonly string[];
      /** Another process writes it; here it can only be watched. */
      readonly isReadOnly?: boolean;
      /** The same conversation as before, with what was changed beside it. */
      readonly isReopened?: boolean;
    }
  | { readonly type: "status-changed"; readonly status: Partial<Status> }
  | { readonly type: "preferences-changed"; readonly preferences: Partial<Preferences> }
  | { readonly type: "turn-started" }
  | { readonly type: "turn-ended"; readonly outcome: TurnOutcome }
  /** The terminal has been started; once, before everything else. */
  | { readonly type: "started"; readonly facts: StartFacts }
  /** A message of the person reached the agent. */
  | { readonly type: "message-read"; readonly text: string }
  | { readonly type: "queue-changed"; readonly messages: readonly QueuedMessage[] }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly text: string }
  /** An answer broke off: what came since the last answer is void, and the request is made again. */
  | {
      readonly type: "retry";
      readonly attempt: number;
      readonly maxAttempts: number;
      readonly delayMs: number;
      readonly reason: string;
    }
  | { readonly type: "call-started"; readonly call: ToolCall }
  | { readonly type: "call-progressed"; readonly callId: string; readonly text: string }
  | { readonly type: "call-finished"; readonly call: ToolCall; readonly result: ToolResult }
  | { readonly type: "agent-changed"; readonly agent: AgentSnapshot }
  /** Agents that this conversation had in earlier processes. */
  | { readonly type: "agents-found"; readonly agents: readonly AgentSnapshot[] }
  /** A command in the background has ended. */
  | { readonly type: "command-ended"; readonly command: EndedCommand }
  | { readonly type: "question-asked"; readonly question: Question }
  /** It needs no answer any more. */
  | { readonly type: "question-closed"; readonly questionId: string }
  | { readonly type: "todos-changed"; readonly todos: readonly TodoItem[] }
  /** Something happened in the run of a workflow; `run` is its state after it. */
  | { readonly type: "workflow-changed"; readonly change: WorkflowProgress; readonly run: WorkflowRunState }
  | { readonly type: "compaction"; readonly state: "started" | "ended"; readonly text: string }
  | { readonly type: "notice"; readonly level: "info" | "warning" | "error"; readonly text: string };

/** What a person should know at the start, each as text for a line. */
export interface StartFacts {
  /** Nothing was ever started by this person. */
  readonly isFirst: boolean;
  readonly version: string;
  readonly folder: string;
  /** Empty for the offline model. */
  readonly model: string;
  /** Where the key comes from, and whether it works. */
  readonly access: { readonly text: string; readonly isGood: boolean };
  readonly trust: { readonly text: string; readonly short?: string; readonly isGood: boolean };
  readonly mode: string;
}

export interface QueuedMessage {
  readonly id: string;
  readonly text: string;
}

export interface TurnOutcome {
  readonly status: "completed" | "partial" | "failed" | "stopped";
  /** What went wrong and what to do about it. */
  readonly error?: string;
}

interface QuestionBase {
  readonly id: string;
  /** From the main agent to the asking agent. */
  readonly path: readonly string[];
  /** The agent that asks; absent for the main agent. */
  readonly agentId?: string;
}

/** May this call run? */
export interface PermissionQuestion extends QuestionBase {
  readonly kind: "permission";
  readonly call: ToolCall;
  /** Exactly what would run, in the form it was judged in. */
  readonly subject: string;
  readonly diff?: FileDiff;
  readonly reason: string;
  /** It is about agents that start together: so many, and no answer reaches beyond them. */
  readonly starts?: number;
  /** The narrow rules that would have allowed it; none where no rule can. */
  readonly rules: readonly string[];
  /** What is wrong with a rule that a person wrote instead. */
  readonly checkRule: (rule: string) => string | undefined;
}

/** Before an agent goes to the background: what may it use, since it cannot ask then? */
export interface BackgroundQuestion extends QuestionBase {
  readonly kind: "background";
  readonly agent: string;
  readonly description: string;
  readonly tools: readonly string[];
}

/** AskUserQuestion. */
export interface FormQuestion extends QuestionBase {
  readonly kind: "form";
  /** Only the options count. */
  readonly isChoice?: boolean;
  readonly fields: readonly FormField[];
}

export interface FormField {
  readonly question: string;
  readonly header: string;
  /** Lines below the question, such as what an answer would bring about. */
  readonly details?: readonly string[];
  readonly options: readonly FormOption[];
  readonly multiple: boolean;
}

export interface FormOption {
  readonly label: string;
  readonly description: string;
  /** Chooses it besides its number. */
  readonly key?: string;
  /** Choosing it asks for a text. */
  readonly input?: {
    readonly label: string;
    readonly isSecret?: boolean;
    /** The text is asked for immediately; Escape goes back to the options. */
    readonly isOpen?: boolean;
  };
}

/** A finished plan waits to be carried out. */
export interface PlanQuestion extends QuestionBase {
  readonly kind: "plan";
  readonly plan: string;
}

export type Question = PermissionQuestion | BackgroundQuestion | FormQuestion | PlanQuestion;

/**
 * How long an answer holds: for this call, or for what the rules cover while the agent, it and those below it, the session or
 * the project lasts.
 */
export type GrantScope = "agent" | "tree" | "session" | "project";

export type QuestionAnswer =
  | { readonly type: "allow" }
  | { readonly type: "allow-always"; readonly scope: GrantScope; readonly rules: readonly string[] }
  | { readonly type: "deny"; readonly message?: string }
  | { readonly type: "grant"; readonly tools: readonly string[] }
  /** By the question's text; `text` is what the last option asked for. */
  | {
      readonly type: "fields";
      readonly answers: Readonly<Record<string, string>>;
      readonly text?: string;
    }
  | { readonly type: "approve-plan"; readonly plan: string; readonly mode: string };
