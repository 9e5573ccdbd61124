/** `npm run bench`: speed as ratios within one run. Ends with 1 when a limit is passed. */
import { benchColdStart } from "./cold-start.ts";
import { benchDefinitionLoading } from "./definition-loading.ts";

const ok = [await benchColdStart(), await benchDefinitionLoading()];
process.exitCode = ok.every(Boolean) ? 0 : 1;
