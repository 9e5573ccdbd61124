import {
  type AcceptedRight,
  acceptableRights,
  parseAcceptedRights,
} from "@retinue/core/kernel/project/plan-origins.ts";
import { misuse } from "./misuse.ts";

/** `--accept-rights`: what counts of a plan beyond the own rights; nothing where it was not given. */
export function readAcceptedRights(text: string | undefined): readonly AcceptedRight[] {
  if (text === undefined) return [];
  const accepted = parseAcceptedRights(text);
  if (accepted !== undefined) return accepted;
  throw misuse(
    `--accept-rights takes ${acceptableRights.join(", ")}, separated by commas, all or none, but got ${JSON.stringify(text)}.`,
  );
}
