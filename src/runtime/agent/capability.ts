import type { UserMessage } from "../../conversation/message.ts";
import type { CallRequest, LoopLimits, LoopPorts } from "../../loop/loop-ports.ts";
import type { Model } from "../../model/model.ts";
import type { PermissionPolicy } from "../../permissions/permission-policy.ts";
import type { Tool } from "../../tools/tool.ts";
import type { PreparedPrompt } from "../hooks/prompt-hooks.ts";
import type { TurnRights } from "../skills/skill-turn.ts";
import type { AuthorizeWithHooks, BeforeAsk } from "./create-authorize.ts";

/**
 * What one part of the runtime adds to an agent: skills, hooks, servers, limits, children. Opening an agent folds a list of
 * these; everything is optional, and the order of the list is the order in which they are asked.
 */
export interface Capability {
  readonly tools?: readonly Tool[];
  /** Around each tool of the agent; the last of the list is closest to the tool. */
  readonly tool?: (tool: Tool) => Tool;
  /** Around the agent's model; the last of the list is closest to the provider. */
  readonly model?: (model: Model) => Model;
  readonly limits?: LoopLimits;
  /** The policy as it is now, made from that of the plan. */
  readonly policy?: (planned: PermissionPolicy) => PermissionPolicy;
  /** Rules that hold beside those of the plan now. */
  readonly rights?: () => TurnRights;
  /** Around the decision about each call; the last of the list comes first. */
  readonly beforeCall?: (next: AuthorizeWithHooks) => AuthorizeWithHooks;
  /** May answer in place of the person who would be asked. */
  readonly beforeAsk?: BeforeAsk;
  /** Called when a person is about to be asked. */
  readonly onAsk?: (request: CallRequest) => void;
  readonly afterCall?: NonNullable<LoopPorts["afterCall"]>;
  /** Sees a prompt before the model does, and may add to it or refuse it. */
  readonly prepare?: (content: UserMessage["content"], signal: AbortSignal) => Promise<PreparedPrompt>;
  /** Messages that arrived since the last turn; those of the last of the list come first. */
  readonly messages?: () => readonly UserMessage[];
  /** Sees the final text; a message given back makes the agent continue with it. */
  readonly beforeEnd?: NonNullable<LoopPorts["beforeEnd"]>;
  /** Whether the run must end after this turn; forgotten once asked. */
  readonly takeStop?: () => boolean;
  /** Whether the result is there, so that no further turn is needed. */
  readonly isFinished?: () => boolean;
  /** Gives it the decision about calls that it makes on the agent's behalf. */
  readonly attach?: (authorization: AgentAuthorization) => void;
  readonly dispose?: (stopped?: AbortSignal) => Promise<void>;
}

/** How calls of one agent are decided about. */
export interface AgentAuthorization {
  /** With hooks, as for a call of the model. */
  readonly authorize: LoopPorts["authorize"];
  /** Rules and people only. */
  readonly ask: AuthorizeWithHooks;
}
