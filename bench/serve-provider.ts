/** The fake provider in a process of its own, so that its work is not counted as the agent's. Started by provider.ts. */
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { answerScripted } from "./scripted-turns.ts";

const deltaSize = Number(process.argv[2] ?? 1000);
const provider = await startFakeProvider({ respond: answerScripted, keepsRequests: false, deltaSize });
process.send?.(provider.url);
process.once("disconnect", () => process.exit());
