import type { AttackClass } from "./attack.ts";
import { programsThatExecute } from "./classes/programs-that-execute.ts";

/** All attacks, class by class. */
export const attackClasses: readonly AttackClass[] = [programsThatExecute];
