import type { Judgement, Word } from "../model.ts";
import { optionTable, scanOptions } from "../word.ts";
import { launchers, managers } from "../wrapper-specs.ts";
import { judgeDevelopment } from "./judge-development.ts";

/**
 * The words of a command that may name files which it changes, because no table says what it does with them or because an
 * option makes it change them. `script` is where the script is that an interpreter runs, and only reads.
 */
export function changeableWords(
  words: readonly Word[],
  judged: Judgement | undefined,
  script: number | undefined,
): readonly Word[] {
  const name = words[0]?.literal === true ? baseName(words[0].text) : "";
  const isUnread =
    judged === undefined ||
    launchers.has(name) ||
    judged.namesFiles === "code" ||
    (judged.exactOnly !== undefined && judged.namesFiles === undefined);
  if (!(judged?.changesOperands ?? (isUnread && !onlyReadsOperands(words)))) return [];
  return words.filter(
    ({ text, numeric }, at) =>
      at > 0 && at !== script && numeric !== true && !/^[a-z][a-z0-9+.-]*:\/\//i.test(text),
  );
}

/** Whether it is a tool that leaves its operands as they are, also where another program starts it. */
function onlyReadsOperands(words: readonly Word[]): boolean {
  const start = startOf(words);
  const tool = words.slice(start);
  const [program, verb] = tool;
  const name = baseName(program?.text ?? "");
  if (start > 0) {
    const inner = judgeDevelopment(tool);
    if (inner !== undefined) return inner.exactOnly === undefined && inner.changesOperands !== true;
  }
  return readers.some(({ programs, verbs, needs, anyWords, table }) => {
    if (!programs.has(name) || (verbs !== undefined && !verbs.has(verb?.text ?? ""))) return false;
    const { options, unclear, loose } = scanOptions(tool.slice(verbs === undefined ? 1 : 2), table, {
      numeric: true,
    });
    const isUnderstood = unclear === undefined || (anyWords === true && loose);
    return isUnderstood && (needs === undefined || options.some((option) => needs.has(option.name)));
  });
}

/** Where the tool is that `npx`, a package manager or `python3 -m` starts. */
function startOf(words: readonly Word[]): number {
  const name = baseName(words[0]?.text ?? "");
  const second = words[1]?.text ?? "";
  if (/^python[\d.]*$/.test(name) && second === "-m") return 2;
  if (/^(?:npx|bunx|pnpx|uvx)$/.test(name)) return 1;
  return managers.get(name)?.includes(second) === true ? 2 : 0;
}

function baseName(text: string): string {
  return text.slice(text.lastIndexOf("/") + 1);
}

interface ReaderSpec {
  readonly programs: string;
  /** The subcommands that are meant; absent for programs without any. */
  readonly verbs?: string;
  /** The options with which it leaves its operands as they are; another may change them. */
  readonly options: string;
  /** One of these must be given. */
  readonly needs?: string;
  /** Its operands are no files, so that they need not be known. */
  readonly anyWords?: true;
}

const readers = (
  [
    {
      programs: "docker podman",
      verbs: "build",
      options:
        "t: tag: f: file: build-arg: target: platform: no-cache progress: pull q quiet load push label: network:",
      anyWords: true,
    },
    {
      programs: "docker podman",
      verbs: "compose",
      options:
        "f: file: p: project-name: d detach build wait profile: env-file: no-deps rm v volumes follow tail:",
    },
    {
      programs: "docker podman",
      verbs: "ps logs stop start restart rm rmi kill inspect images pull push tag",
      options: "a all f follow force q quiet tail: n: t: filter: format:",
      anyWords: true,
    },
    {
      programs: "pip pip3",
      verbs: "install download show",
      options:
        "e: r: requirement: U upgrade q quiet v no-cache-dir no-deps user c: constraint: editable: dry-run",
    },
    {
      programs: "mypy pyright pylint flake8 bandit shellcheck hadolint yamllint actionlint",
      options:
        "strict p: m: ignore-missing-imports show-error-codes pretty v verbose q quiet no-error-summary config-file: r: s: x " +
        "max-line-length: rcfile: disable: enable: select: ignore: exclude: project:",
    },
    {
      programs: "ruff",
      verbs: "check",
      options:
        "q quiet v verbose select: ignore: exclude: output-format: no-cache statistics watch diff no-fix config:",
    },
    {
      programs: "ruff",
      verbs: "format",
      options: "check diff q quiet v verbose exclude: no-cache config:",
      needs: "check diff",
    },
    {
      programs: "black isort",
      options:
        "check check-only c diff q quiet v verbose l: line-length: t: target-version: exclude: profile:",
      needs: "check check-only diff",
    },
    {
      programs: "rspec",
      options:
        "f: format: e: example: t: tag: fail-fast b backtrace c color no-color d profile seed: order: only-failures n next-failure",
    },
    {
      programs: "rubocop standardrb",
      options: "f: format: P parallel only: except: D display-cop-names fail-fast c: config:",
    },
    {
      programs: "phpunit",
      options:
        "filter: testsuite: group: exclude-group: colors? stop-on-failure v verbose testdox c: configuration: no-coverage",
    },
    {
      programs: "mocha ava",
      options:
        "g: grep: R: reporter: t: timeout: bail b watch w exit parallel r: require: match: m: verbose v",
    },
    {
      programs: "playwright",
      verbs: "test",
      options: "g: grep: project: headed debug ui workers: reporter: retries: x list",
    },
    {
      programs: "dotnet mix swift flutter dart",
      verbs: "test",
      options:
        "filter: no-build no-restore c: configuration: v: verbosity: trace stale only: include: exclude: seed: name: " +
        "plain-name: r: reporter:",
    },
    {
      programs: "bats ctest",
      options: "r recursive t tap j: jobs: f: filter: R: E: V verbose output-on-failure test-dir:",
    },
    { programs: "cmake", options: "build: S: B: D: G: j? parallel? target: t: config: preset: v verbose" },
    {
      programs: "terraform tofu",
      verbs: "plan validate init apply",
      options: "input? no-color var? var-file? auto-approve target? upgrade",
    },
    { programs: "kill pkill killall", options: "s: n: signal: f x TERM KILL HUP INT", anyWords: true },
    { programs: "code cursor subl open xdg-open", options: "n new-window r reuse-window g goto a: w wait" },
  ] satisfies ReaderSpec[]
).map(({ programs, verbs, options, needs, anyWords }: ReaderSpec) => ({
  anyWords,
  programs: new Set(programs.split(" ")),
  verbs: verbs === undefined ? undefined : new Set(verbs.split(" ")),
  needs: needs === undefined ? undefined : new Set(needs.split(" ")),
  table: optionTable(options),
}));
