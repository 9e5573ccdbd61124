// A model of one's own: a function from messages to text, or to pieces of it.
import { createRuntime } from "retinue";
import { createTextModel } from "retinue/model";

const model = createTextModel(async function* (messages) {
  const last = messages.at(-1)?.text ?? "";
  for (const word of last.split(" ").toReversed()) yield `${word} `;
});

await using runtime = createRuntime({ model, tools: [] });
for await (const piece of runtime.run("world the hello").textStream) process.stdout.write(piece);
console.log();
