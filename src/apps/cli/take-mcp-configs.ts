import { statSync } from "node:fs";
import { resolve } from "node:path";

/**
 * People give several configurations behind one `--mcp-config`, so words that begin the prompt and can be nothing else
 * are taken for more of them: JSON with servers, or a `.json` file that is there.
 */
export function takeMcpConfigs(
  words: readonly string[],
  given: readonly string[] | undefined,
  cwd: string,
): { readonly words: readonly string[]; readonly configs?: readonly string[] } {
  if (given === undefined) return { words };
  const end = words.findIndex((word) => !isConfig(word, cwd));
  const count = end === -1 ? words.length : end;
  return { words: words.slice(count), configs: [...given, ...words.slice(0, count)] };
}

function isConfig(word: string, cwd: string): boolean {
  if (/^\s*\{/.test(word)) return word.includes('"mcpServers"');
  if (!/\.json$/i.test(word)) return false;
  return statSync(resolve(cwd, word), { throwIfNoEntry: false })?.isFile() === true;
}
