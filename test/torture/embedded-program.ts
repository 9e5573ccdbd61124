/** A program that embeds the library: it must outlive whatever its agents run into. Started by descriptors.ts. */
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";

let beats = 0;
const heart = setInterval(() => {
  beats += 1;
}, 10);
try {
  await using runtime = createRuntime({ settingSources: ["user", "project", "local"], transcripts: true });
  const run = runtime.run("Do all steps.", {
    skipPermissions: true,
    model: "claude-sonnet-4-5",
    limits: { tree: { seconds: Number(process.argv[2]) } },
  });
  const { status, text, error } = await run.result;
  console.log(JSON.stringify({ type: "result", status, text, error }));
} catch (error) {
  console.log(JSON.stringify({ type: "result", status: "failed", error: String(error) }));
} finally {
  clearInterval(heart);
}
console.log(`host alive ${beats > 0}`);
