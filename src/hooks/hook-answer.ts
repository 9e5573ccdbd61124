import type { FiredEvent } from "./hook-input.ts";

/** What one hook said, understood. Nothing in it means: continue. */
export interface HookAnswer {
  /** About a call; `blocks` is the word for all other events. */
  readonly verdict?: "allow" | "ask" | "deny";
  readonly blocks?: boolean;
  /** The reason for a verdict or a block. */
  readonly reason?: string;
  /** Takes the place of the whole input of a call. */
  readonly updatedInput?: Readonly<Record<string, unknown>>;
  /** Rules it wants to add while it allows a call, as written. */
  readonly updatedPermissions?: readonly unknown[];
  /** Takes the place of what the model sees of a call's result. */
  readonly updatedOutput?: string;
  /** Text for the model. */
  readonly context?: string;
  /** Text for the person. */
  readonly systemMessage?: string;
  /** The whole run is to end, with this reason. */
  readonly stop?: string;
}

/** A hook that could not say what it wanted is distinguished from one that said nothing. */
export type HookReading = (
  | { readonly type: "answer"; readonly answer: HookAnswer }
  | { readonly type: "failed"; readonly reason: string }
) & {
  /** What a command printed, for those who watch. */
  readonly printed?: { readonly stdout: string; readonly stderr: string; readonly exitCode?: number };
};

/** What blocking means for an event: a call is denied, something is held up, or only the user is notified. */
export const blockEffects: Readonly<Record<FiredEvent, "deny" | "block" | "tell-person" | "nothing">> = {
  PreToolUse: "deny",
  PermissionRequest: "deny",
  PostToolUse: "block",
  PostToolUseFailure: "block",
  UserPromptSubmit: "block",
  Stop: "block",
  SubagentStop: "block",
  PreCompact: "block",
  TeammateIdle: "block",
  TaskCreated: "block",
  TaskCompleted: "block",
  SessionStart: "tell-person",
  SessionEnd: "tell-person",
  SubagentStart: "tell-person",
  PostCompact: "tell-person",
  Notification: "nothing",
};

export function blockingAnswer(event: FiredEvent, reason: string): HookAnswer {
  switch (blockEffects[event]) {
    case "deny":
      return { verdict: "deny", reason };
    case "block":
      return { blocks: true, reason };
    case "tell-person":
      return { systemMessage: reason };
    case "nothing":
      return {};
  }
}

/** The most characters of one text that continue; the rest is kept in a file. */
const textLimit = 10_000;

export interface CutTexts {
  readonly answer: HookAnswer;
  /** Whole texts, each with the name that the shortened one mentions. */
  readonly files: readonly { readonly file: string; readonly text: string }[];
}

const textFields = ["reason", "context", "systemMessage", "stop", "updatedOutput"] as const;

/** Shortens every text that is too long; `fileFor` names the place of the whole, undefined where nothing can be kept. */
export function cutTexts(answer: HookAnswer, fileFor: (field: string) => string | undefined): CutTexts {
  const files: { file: string; text: string }[] = [];
  const cut = textFields.flatMap((field): [string, string][] => {
    const text = answer[field];
    if (text === undefined || text.length <= textLimit) return [];
    const file = fileFor(field);
    if (file !== undefined) files.push({ file, text });
    const where = file === undefined ? "the rest was dropped" : `all of it is in ${file}`;
    return [[field, `${beginning(text)}\n… (cut at ${textLimit} of ${text.length} characters; ${where})`]];
  });
  return { answer: { ...answer, ...Object.fromEntries(cut) }, files };
}

/** Does not part the two halves of one character. */
function beginning(text: string): string {
  const last = text.charCodeAt(textLimit - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? textLimit - 1 : textLimit);
}
