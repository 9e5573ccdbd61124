import { actingForms, harmlessForms } from "./builtin-forms.ts";
import { judge } from "./check-grammars.ts";
import { type Laboratory, quote } from "./laboratory.ts";

/** What commands later in a shell would see, apart from variables of its own, and whether a file was made. */
const state = (made: string): string =>
  "{ ( set -o posix; set ) | grep -vE '^(_|a|b|i|line|first|second|PIPESTATUS|BASH_[A-Z_]*|LINENO|OLDPWD|PWD|SHELLOPTS|FUNCNAME|RANDOM|SECONDS|EPOCH[A-Z]*|SRANDOM|REPLY|PPID|OPTIND)='; " +
  `printf '%s|' "$PWD" "$-" "$*"; shopt; readonly -p; alias; trap; umask; ulimit -n; hash -l; enable -n; complete; dirs; [ -e ${made} ] && echo made; } 2>&1 | cksum`;

function script(form: string, at: number): string {
  const made = `"$HOME"/made-${at}`;
  const own = form.replaceAll(/\bmade\b/g, made);
  return `bash --norc --noprofile -c ${quote(`exec 8>&1; exec > /dev/null; a=$(${state(made)}); ${own}\nb=$(${state(made)}); [ "$a" = "$b" ] && echo same >&8; exit 0`)}`;
}

/** Runs forms of builtins and compares what the shell holds before and after. */
export async function checkBuiltins(
  laboratory: Laboratory,
  {
    harmless = harmlessForms,
    acting = actingForms,
  }: { harmless?: readonly string[]; acting?: readonly string[] } = {},
): Promise<string[]> {
  const judged = await Promise.all([...harmless, ...acting].map((form) => judge(form, laboratory)));
  const outcomes = await laboratory.run([...harmless, ...acting].map(script));
  const isSame = (at: number): boolean => /^same$/m.test(outcomes[at]?.output ?? "");
  const isFree = (at: number): boolean => judged[at]?.isFree === true;
  return [
    ...harmless.flatMap((form, at) => {
      const changes = /^(?:cd|set|exit)\b/.test(form) ? false : !isSame(at);
      return [...(isFree(at) ? [] : [`${form} asks`]), ...(changes ? [`${form} changes the shell`] : [])];
    }),
    ...acting.flatMap((form, index) => {
      const at = harmless.length + index;
      return [
        ...(isFree(at) ? [`${form} does not ask`] : []),
        ...(isSame(at) ? [`${form} was not seen to change anything`] : []),
      ];
    }),
  ];
}
