import type { CliHost, CliOutput } from "../../src/apps/cli/cli-host.ts";
import { main } from "../../src/apps/cli/main.ts";
import { RetinueError } from "../../src/foundation/retinue-error.ts";
import { startFakeProvider } from "../../src/testing/fake-provider.ts";
import { isTrusted, texts, trustStore } from "./case-settings.ts";
import { writeCaseSettings } from "./run-case-session.ts";
import { NotHonoured, type Roots, type SecurityCase, type Verdict } from "./security-case.ts";

/** Allowed are words that the command line takes and carries out. */
export async function judgeCommandLine(testCase: SecurityCase, roots: Roots): Promise<Verdict> {
  const { context = {}, cwd = roots.P } = testCase;
  const words = wordsOf(context);
  if (words.length === 0) throw new NotHonoured("the case holds no words of a command line");
  if (await isTrusted(testCase, roots)) await trustStore(roots).trust(cwd);
  await writeCaseSettings(testCase, roots);
  await using provider = await startFakeProvider({ respond: () => "Done." });
  const code = await main(words, createHost(roots, { cwd, url: provider.url }));
  return code === 0 ? "allow" : "deny";
}

function wordsOf(context: Readonly<Record<string, unknown>>): readonly string[] {
  const lists = ["args", "argv", "arguments", "command"].map((name) => {
    const written = context[name];
    return typeof written === "string" ? written.split(/\s+/) : texts(written);
  });
  const words = lists.find((list) => list.length > 0) ?? [];
  return /^(?:claude|retinue)$/.test(words[0] ?? "") ? words.slice(1) : words;
}

function createHost(roots: Roots, { cwd, url }: { readonly cwd: string; readonly url: string }): CliHost {
  const silent: CliOutput = { write: () => undefined, isTerminal: false, isColourAllowed: false };
  return {
    stdout: silent,
    stderr: silent,
    stdin: { isTerminal: true, readAll: async () => "", async *lines() {} },
    onInterrupt: () => () => {},
    canAsk: false,
    ask: () => Promise.reject(new RetinueError("interrupted", "No one is there.")),
    endQuestions: () => {},
    environment: {
      PATH: process.env["PATH"],
      HOME: roots.H,
      RETINUE_LOCAL_MODELS: "0",
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: "a-key",
    },
    cwd,
    home: roots.H,
    platform: "linux",
    nodeVersion: process.versions.node,
    version: () => "0.0.0",
  };
}
