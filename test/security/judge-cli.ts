import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { startInProcess } from "../start-in-process.ts";
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
  const command = startInProcess(words, {
    cwd,
    environment: { HOME: roots.H, ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "a-key" },
    out: () => undefined,
    err: () => undefined,
    host: { stdin: { isTerminal: true, readAll: async () => "", async *lines() {} } },
  });
  return (await command.code) === 0 ? "allow" : "deny";
}

function wordsOf(context: Readonly<Record<string, unknown>>): readonly string[] {
  const lists = ["args", "argv", "arguments", "command"].map((name) => {
    const written = context[name];
    return typeof written === "string" ? written.split(/\s+/) : texts(written);
  });
  const words = lists.find((list) => list.length > 0) ?? [];
  return /^(?:claude|retinue)$/.test(words[0] ?? "") ? words.slice(1) : words;
}
