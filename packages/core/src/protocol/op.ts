import type { PermissionMode } from "@retinue/base/foundation/option-words.ts";
import type { UserMessage } from "../conversation/message.ts";
import type { Answer, QuestionId } from "./question.ts";

/** `main`, or the id of a child. */
export type AgentId = string;
export type Content = UserMessage["content"];
export type Effort = string | number;

/** One change of rights as programs write it: setMode, addRules, replaceRules, removeRules, addDirectories, removeDirectories. */
export type RuleUpdate = Readonly<Record<string, unknown>>;

/** Everything a host can ask of an agent. Plain JSON. */
export type Op =
  /** Starts a turn, or waits for the end of the running one; ends with exactly one `prompt-ended` of its id. */
  | ({ readonly type: "prompt" } & PromptInput)
  /** Removes prompts that no turn has started with: the one with this id, or all. */
  | { readonly type: "withdraw"; readonly id?: string | undefined }
  /** Stops the running turn and the shell commands of the person; prompts that wait begin the next turn unless they are withdrawn. */
  | {
      readonly type: "interrupt";
      /** The reason of the ending; `aborted` when absent. */
      readonly code?: string | undefined;
      readonly reason?: string | undefined;
    }
  | { readonly type: "compact"; readonly instructions?: string | undefined }
  | { readonly type: "answer"; readonly question: QuestionId; readonly answer: Answer }
  /** Holds from the next model call or decision on; `null` goes back to what was planned. */
  | {
      readonly type: "configure";
      readonly mode?: PermissionMode | undefined;
      readonly model?: string | null | undefined;
      readonly effort?: Effort | null | undefined;
      readonly rules?: readonly RuleUpdate[] | undefined;
    }
  /** A child reads it between its turns; one that has ended is resumed with it in the background, unless `resume` is false. */
  | {
      readonly type: "message";
      readonly agent: AgentId;
      readonly text: string;
      readonly resume?: boolean | undefined;
    }
  /** Its result names who ended it: the user, unless its caller did. */
  | {
      readonly type: "stop";
      readonly agent: AgentId;
      readonly by?: "user" | "parent" | "program" | undefined;
    }
  /** Stops waiting for this child, or for everything that the turn waits for. */
  | {
      readonly type: "background";
      readonly agent?: AgentId | undefined;
      /** Only the commands that the main agent waits for. */
      readonly commandsOnly?: boolean | undefined;
    }
  /** A command of the person, by the rules and questions of the session; the agent reads of it with the next prompt. */
  | { readonly type: "shell"; readonly command: string }
  /** Brings the changes of children back that are in worktrees of their own; ends with the last step of it. */
  | ({ readonly type: "merge" } & MergeAsk)
  | { readonly type: "rename"; readonly title: string }
  | { readonly type: "close" };

export interface MergeAsk {
  /** Absent: those that settings and definitions name; an empty list: none. */
  readonly checks?: readonly string[] | undefined;
  readonly into?: string | undefined;
  readonly only?: readonly string[] | undefined;
  readonly resolver?: string | false | undefined;
  readonly apply?: boolean | undefined;
  readonly dryRun?: boolean | undefined;
  readonly discard?: readonly string[] | undefined;
}

export interface PromptInput {
  readonly content: Content;
  /** Given back in all events of this prompt; made up when absent. */
  readonly id?: string | undefined;
  /** True: it calls no command and attaches no file, whatever it says. */
  readonly verbatim?: boolean | undefined;
  /** False: it begins no turn, and is read together with the next prompt. */
  readonly asks?: boolean | undefined;
  /** Kept with the prompt for its host; the kernel does not read it. */
  readonly note?: unknown;
}

/** A prompt that waits for its turn. */
export interface QueuedPrompt extends PromptInput {
  readonly id: string;
}

/** Outcome of an op, for people. */
export interface OpOutcome {
  readonly text: string;
  /** Of `background`: what was moved, as a few words each. */
  readonly moved?: readonly string[] | undefined;
}
