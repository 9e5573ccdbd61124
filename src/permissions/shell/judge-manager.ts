import { type Judgement, judgement, optionRisk } from "./judgement.ts";
import { optionTable, scanOptions } from "./options.ts";
import type { Word } from "./shell-word.ts";

export const managerOptions = optionTable(
  "s silent q quiet w: workspace: workspaces if-present D E P S O B save save-dev save-exact save-optional save-prod " +
    "no-save omit: include: only: production prod dev no-audit no-fund no-optional legacy-peer-deps strict-peer-deps " +
    "force f verbose d loglevel: json long depth: all a parseable dry-run ignore-scripts frozen-lockfile " +
    "no-frozen-lockfile immutable prefer-offline offline yes y r recursive filter: F: parallel stream no-bail bail " +
    "include-workspace-root progress no-progress color no-color version v help h package-lock no-package-lock " +
    "package-lock-only non-interactive pure-lockfile latest L i g global script-shell:! shell:! prefix:! C:! dir:! " +
    "cwd:! userconfig:! globalconfig:! node-options:! init-module:! git:! editor:! viewer:! browser:! " +
    "onload-script:! use-yarnrc:! modules-folder:!",
);

const builtIn = new Set(
  (
    "add install i ci remove rm uninstall un update up upgrade outdated list ls ll why audit publish pack link unlink " +
    "config init create cache info view search login logout version dedupe prune rebuild owner team token set import fetch store"
  ).split(" "),
);

/** Reads a call of npm, pnpm or yarn: their own options are known ones, and what follows a script's name is the script's. */
export function judgeManager(words: readonly Word[]): Judgement {
  const program = words[0]?.text ?? "";
  const before = scanOptions(words.slice(1), managerOptions, { stopAtOperand: true });
  const [command, ...rest] = words.slice(1 + before.taken);
  // npm takes every option before `--` for its own, wherever it stands.
  const isStrict = program === "npm" || (command !== undefined && builtIn.has(command.text));
  const after = scanOptions(isStrict ? rest : [], managerOptions);
  const changes = command?.text === "config" && !/^(?:get|list|ls)$/.test(after.operands[0]?.text ?? "list");
  const isQuestion =
    program === "npm" && words.length === 2 && /^(?:--version|-v)$/.test(words[1]?.text ?? "");
  return {
    ...judgement(
      isQuestion,
      [],
      [
        optionRisk(program, { options: [...before.options, ...after.options] }),
        before.unclear ?? after.unclear,
        changes ? `a changed configuration of ${program} can start programs` : undefined,
      ],
    ),
    anywhere: false,
  };
}
