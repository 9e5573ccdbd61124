export { Fault, isFault } from "./foundation/fault.ts";
export type { Problem, Severity } from "./foundation/problem.ts";
