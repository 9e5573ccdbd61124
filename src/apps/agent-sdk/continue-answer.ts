import { textOf, type UserMessage } from "../../conversation/message.ts";
import type { LoopPorts } from "../../loop/loop-ports.ts";

/** Makes the model continue an answer that is none: cut at its limit, refused, or empty. */
export interface AnswerContinuation {
  readonly continueAnswer: NonNullable<LoopPorts["continueAnswer"]>;
  /** Called when the next prompt begins. */
  begin(): void;
}

/** As often in one turn; a model that never says anything complete must end some time. */
const maxCuts = 3;

export function createAnswerContinuation({
  notice,
}: {
  readonly notice: (text: string) => void;
}): AnswerContinuation {
  let cuts = 0;
  let isRefused = false;
  let isEmpty = false;
  return {
    begin() {
      cuts = 0;
      isRefused = false;
      isEmpty = false;
    },
    continueAnswer({ stopReason, message, model }) {
      if (stopReason === "max_tokens" && cuts < maxCuts) {
        cuts += 1;
        return said(
          "Your answer was cut at the output limit. Continue exactly where it broke off, and do the rest in smaller steps.",
        );
      }
      if (stopReason === "refusal" && !isRefused) {
        isRefused = true;
        notice(`${model} declined to answer. It is asked once more, and told so.`);
        return said(
          "Your last answer was stopped as a refusal. If a part of the request can be answered, answer that part; otherwise say briefly what you cannot do.",
        );
      }
      if (stopReason !== "end_turn" || isEmpty || textOf(message).trim() !== "") return undefined;
      isEmpty = true;
      return said("Your last answer had no text. Continue, and answer in words.");
    },
  };
}

function said(text: string): UserMessage {
  return { role: "user", content: [{ type: "text", text }] };
}
