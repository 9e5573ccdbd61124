import { startProvider } from "./provider.ts";
import { programFile, runSubject } from "./run-subject.ts";
import { createWorkplace } from "./workplace.ts";

const turns = 50;
const least = 0.9;

/** Which part of what a run sends is read from the provider's cache, as the fake provider counts by the real one's rules. */
export async function benchPromptCache(): Promise<boolean> {
  using place = createWorkplace();
  await using provider = await startProvider({ deltaSize: 1000 });
  console.log(`\nInput tokens read from the cache, ${turns} turns`);
  let isGood = true;
  // More than twenty new blocks in a turn lie beyond what the provider looks back.
  for (const calls of [1, 12]) {
    const prompt = `turns=${turns} calls=${calls} folder=${place.project}`;
    const { output } = await runSubject({ arguments: [...command, prompt], url: provider.url }, place);
    const share = cachedShare(output);
    isGood &&= share >= least;
    const verdict = share >= least ? "ok" : "TOO LITTLE";
    console.log(
      `  ${String(calls).padStart(2)} calls a turn  ${(share * 100).toFixed(1)} %  at least ${least * 100} %  ${verdict}`,
    );
  }
  return isGood;
}

const command = [programFile, "-p", "--output-format", "json", "--model", "claude-sonnet-4-5"];

interface PrintedUsage {
  readonly input_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly cache_creation_input_tokens: number;
}

function cachedShare(output: string): number {
  // The shape that `--output-format json` promises.
  const { usage } = JSON.parse(output) as { readonly usage: PrintedUsage };
  const read = usage.cache_read_input_tokens;
  return read / (usage.input_tokens + read + usage.cache_creation_input_tokens);
}
