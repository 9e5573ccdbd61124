import { escapeLine } from "@retinue/base/foundation/escape-control-tags.ts";
import { shorten } from "@retinue/config/agents/describe-agents.ts";
import type { FilledPiece } from "@retinue/config/skills/skill-text.ts";
import type { AllowedBy, JudgedCommand } from "@retinue/gate/decide.ts";
import type { Tool, ToolContext } from "../tools/tool.ts";

export type CommandAuthorization =
  | {
      readonly type: "allowed";
      readonly command: string;
      readonly allowedBy?: AllowedBy;
      readonly judged?: JudgedCommand;
    }
  | { readonly type: "denied"; readonly reason: string };

export interface SkillCommandOptions {
  /** Why none may run, where that is known. */
  readonly refusal?: string | undefined;
  readonly shell?: SkillShell | undefined;
}

export interface SkillShell {
  /** The shell of the session: its limits, its sandbox, and the end of all that a command started. */
  readonly bash: Tool;
  readonly context: ToolContext;
  readonly variables: Readonly<Record<string, string>>;
  /** Decides about each command as about a call of the agent's own. */
  readonly authorize: (command: string, callId: string) => Promise<CommandAuthorization>;
}

/** How long one command may take. */
const limitMs = 60_000;
/** A skill with more is no preparation of a text any more. */
const maxCommands = 40;

/** Runs the commands of a skill, one after the other, and gives the text of each piece; what is not run says why. */
export async function runSkillCommands(
  pieces: readonly FilledPiece[],
  options: SkillCommandOptions,
): Promise<readonly string[]> {
  const texts: string[] = [];
  let count = 0;
  for (const piece of pieces) {
    if (piece.type === "text") texts.push(piece.text);
    else if (piece.type === "unusable") texts.push(notRun("a command", piece.reason));
    else {
      count += 1;
      texts.push(await runOne(piece.command, count, options));
    }
  }
  return texts;
}

async function runOne(command: string, count: number, options: SkillCommandOptions): Promise<string> {
  const { shell, refusal } = options;
  const shown = `\`${shorten(escapeLine(command), 200)}\``;
  if (refusal !== undefined || shell === undefined)
    return notRun(shown, refusal ?? "there is no shell in this session");
  if (count > maxCommands) return notRun(shown, `a skill may run ${maxCommands} commands`);
  const callId = `${shell.context.callId}-skill-${count}`;
  const authorization = await shell.authorize(command, callId);
  if (authorization.type === "denied") return notRun(shown, authorization.reason);
  shell.context.signal.throwIfAborted();
  const { allowedBy, judged } = authorization;
  const context = {
    ...commandContext(callId, shell),
    ...(allowedBy === undefined ? {} : { allowedBy }),
    ...(judged === undefined ? {} : { judged }),
  };
  const { content } = await shell.bash.call(inputOf(authorization.command), context);
  if (typeof content === "string") return content.trimEnd();
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

function inputOf(command: string): unknown {
  return { command, timeout: limitMs };
}

/** Each under a name of its own: a `cd` moves neither the agent nor the next command, which was decided about where it starts. */
function commandContext(callId: string, { context, variables }: SkillShell): ToolContext {
  // What let the skill through says nothing about its commands.
  const { allowedBy: _skill, judged: _judged, ...rest } = context;
  return {
    ...rest,
    callId,
    agent: { id: `${context.agent.id}/${callId}`, name: context.agent.name },
    environment: { ...context.environment, ...variables },
  };
}

function notRun(what: string, reason: string): string {
  return `[${what} was not run: ${reason.replace(/\.$/, "")}.]`;
}
