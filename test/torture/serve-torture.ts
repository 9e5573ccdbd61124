/** The fake provider of the torture in a process of its own, which outlives every kill. Started by torture-provider.ts. */
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { answerFamily } from "./children-script.ts";
import { answerStorm } from "./storm-script.ts";
import { answerTeam } from "./team-script.ts";
import { answerTortured } from "./torture-script.ts";
import { answerWorktrees } from "./worktree-script.ts";

const models = {
  alone: answerTortured,
  children: answerFamily,
  storm: answerStorm,
  team: answerTeam,
  worktrees: answerWorktrees,
};
const name = process.argv[2] ?? "";
const answer = Object.hasOwn(models, name) ? models[name as keyof typeof models] : answerTortured;
let answers = 0;
const provider = await startFakeProvider({
  respond: (request) => {
    answers += 1;
    process.send?.({ type: "answering" });
    return { ...answer(request, String(answers)), delayMs: 1 };
  },
  keepsRequests: false,
});
process.send?.({ type: "ready", url: provider.url });
process.once("disconnect", () => process.exit());
