// A run that is stopped: by a signal, such as that of a request whose client has gone. What was written until then stays.
import { createRuntime } from "retinue";
import { createScriptedModel } from "retinue/testing";

const model = createScriptedModel([
  { text: "Once upon a time there was a king", failure: "stall", after: 1 },
]);
await using runtime = createRuntime({ model });

const request = new AbortController();
const run = runtime.run("Tell me a story.", { signal: request.signal });
for await (const _piece of run.textStream) request.abort();

const { status, text, partial } = await run.result;
console.log(status, JSON.stringify(text), partial);
await run.text.catch((error) => console.log(error.code, error.message));
