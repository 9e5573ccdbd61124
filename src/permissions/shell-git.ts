import { optionPaths, optionRisk } from "./shell-command-spec.ts";
import { gitCommand } from "./shell-git-commands.ts";
import { type Judgement, judgement, used } from "./shell-judgement.ts";
import { optionTable, type ScannedWords, scanOptions } from "./shell-options.ts";
import type { Word } from "./shell-word.ts";

const globals = optionTable(
  "C:! c:! exec-path?! git-dir:! work-tree:! namespace:! p! paginate! config-env:! super-prefix:! attr-source:! bare! " +
    "P no-pager no-replace-objects no-optional-locks no-lazy-fetch no-advice literal-pathspecs glob-pathspecs " +
    "noglob-pathspecs icase-pathspecs version help v h html-path man-path info-path list-cmds?",
);

/** The words of a git command with those before the subcommand taken out. */
export function withoutGitGlobals(words: readonly Word[]): readonly Word[] {
  const { taken } = scanOptions(words.slice(1), globals, true);
  return taken === 0 ? words : [...words.slice(0, 1), ...words.slice(taken + 1)];
}

/** Whether all options before the subcommand are such that a rule need not name them. */
export function hasHarmlessGitGlobals(words: readonly Word[]): boolean {
  const scanned = scanOptions(words.slice(1), globals, true);
  return scanned.strange === undefined && optionRisk(words, scanned) === undefined && !scanned.loose;
}

/** Reads a git command; `here`: it runs in the directory of the call, so with the configuration found there. */
export function judgeGit(words: readonly Word[], here: boolean): Judgement {
  const before = scanOptions(words.slice(1), globals, true);
  const [, subcommand, ...rest] = withoutGitGlobals(words);
  const elsewhere = here ? undefined : "git runs the configuration of the directory it is in";
  const outer = [elsewhere, optionRisk(words, before), strangeReason(before)];
  if (subcommand === undefined) return judgement(before.options.length > 0, [], outer);
  if (!subcommand.literal) return judgement(false, [], ["the git command is only known when it runs"]);
  const command = gitCommand(subcommand.text);
  if (command === undefined) return judgement(false, [], outer);
  const scanned = scanOptions(rest, command.options);
  const label = [{ ...subcommand, text: `git ${subcommand.text}` }];
  return judgement(
    command.readOnly(scanned),
    [
      ...optionPaths(scanned.options),
      ...used(command.reads(scanned), "read"),
      ...used(command.writes(scanned), "write"),
    ],
    [
      ...outer,
      optionRisk(label, scanned),
      command.risky && scanned.loose
        ? `an argument of git ${subcommand.text} is only known when it runs and may be an option`
        : undefined,
      command.caution(scanned),
    ],
  );
}

function strangeReason({ strange, loose }: ScannedWords): string | undefined {
  if (loose) return "an argument before the git command is only known when it runs";
  return strange === undefined ? undefined : `the option ${strange} of git is not known`;
}
