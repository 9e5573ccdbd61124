/** The fake provider of the torture in a process of its own, which outlives every kill. Started by torture-provider.ts. */
import { startFakeProvider } from "../../src/testing/fake-provider.ts";
import { answerTortured } from "./torture-script.ts";

let answers = 0;
const provider = await startFakeProvider({
  respond: (request) => {
    answers += 1;
    process.send?.({ type: "answering" });
    return { ...answerTortured(request, String(answers)), delayMs: 1 };
  },
  keepsRequests: false,
});
process.send?.({ type: "ready", url: provider.url });
process.once("disconnect", () => process.exit());
