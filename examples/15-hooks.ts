// Hooks of the program: one refuses a call before it runs, one writes down what ran.
import { createRuntime } from "retinue";
import { createScriptedModel } from "retinue/testing";

const model = createScriptedModel([
  { calls: [{ name: "Read", input: { file_path: "package.json" } }] },
  { calls: [{ name: "Read", input: { file_path: ".env.production" } }] },
  "I read one of the two.",
]);

await using runtime = createRuntime({
  model,
  hooks: {
    PreToolUse: [
      {
        matcher: "Read",
        hooks: [
          ({ tool_input }) =>
            String(tool_input["file_path"]).includes(".env")
              ? { decision: "block", reason: "Secrets stay unread." }
              : undefined,
        ],
      },
    ],
    PostToolUse: [({ tool_name, tool_input }) => console.log("ran", tool_name, tool_input["file_path"])],
  },
});

const { text, denials } = await runtime.run("Read both files.").result;
console.log(text, denials.map(({ reason }) => reason).join());
