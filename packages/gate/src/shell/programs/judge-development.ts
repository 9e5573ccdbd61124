import { steersPrograms } from "../../steers-programs.ts";
import type { Judgement, Word } from "../model.ts";
import { type OptionTable, optionTable } from "../word.ts";
import { judgement } from "./judgement.ts";

/** How a tool of developers reads its options. One that is missing here may start a program or write a file. */
interface ToolSpec {
  /** The subcommands that the options belong to; absent for a tool without any. */
  readonly commands?: string;
  readonly options: string;
  /** `-name` is one option, as is `--name`. */
  readonly words?: true;
  /** Options whose value is a plain name; another could be a file to load. */
  readonly plain?: string;
  /** Options whose value is a file that the tool finds by itself as well: code, which is asked about when it is edited. */
  readonly configures?: string;
  /** Options whose value must be of this form, by their names. */
  readonly names?: Readonly<Record<string, RegExp>>;
  /** What such a file is called. */
  readonly configuration?: RegExp;
  /** Options whose value is a file that is written, or a folder with files: none that steers another program. */
  readonly writes?: string;
  readonly fills?: string;
  /** Options by which it changes the files that it is given. */
  readonly rewrites?: string;
  /** Further options that are understood as a whole. */
  readonly also?: RegExp;
  /** Why an operand is asked about. */
  readonly operand?: (text: string) => string | undefined;
  /** What is behind `--` goes to another program; why an option there is asked about. */
  readonly passedOn?: string;
}

const goBuild = "v race tags: a n x p: trimpath mod: buildvcs: msan asan json";
const cargo =
  "v verbose q quiet p: package: workspace all exclude: lib bin: bins example: examples test: tests bench: benches all-targets doc " +
  "no-run no-fail-fast F: features: all-features no-default-features r release profile: j: jobs: keep-going locked offline " +
  "frozen message-format: color: ignore-rust-version no-deps help h";
const maven: ToolSpec = {
  words: true,
  operand: (text) =>
    /^[^:]+:[^:]+:|^exec:/.test(text) ? "a goal with an address runs any plugin" : undefined,
  options:
    "q X e B o U T P pl am amd N ntp fae ff fn quiet debug errors batch-mode offline update-snapshots threads projects also-make " +
    "also-make-dependents non-recursive no-transfer-progress fail-at-end fail-fast fail-never show-version V version v help h",
  also: /^-D(?:skipTests|maven\.test\.skip|test|it\.test|groups)(?:=[\w.,#*+-]*)?$/,
};
const gradle: ToolSpec = {
  words: true,
  options:
    "q i s S d m x info stacktrace full-stacktrace debug quiet warn parallel no-parallel no-daemon daemon offline continue " +
    "rerun-tasks build-cache no-build-cache tests console exclude-task dry-run max-workers configuration-cache " +
    "no-configuration-cache version v help h",
};
const compiler: ToolSpec = {
  words: true,
  options: "c S E v pthread pedantic ansi shared static w version help dumpversion dumpmachine",
  also: /^-(?:g\d?|O(?:[0-3sgz]|fast)?|W[a-z][\w+=-]*|std=[\w+]+|[IL].+|[DU]\w+(?:=.*)?|l[\w.+-]+|m(?:arch|tune)=[\w.+-]+|m(?:32|64)|x|f(?:no-)?(?:PIC|pic|PIE|pie|sanitize=[\w,-]+|omit-frame-pointer|strict-aliasing|exceptions|rtti|stack-protector(?:-strong|-all)?|common|inline|inline-functions|unroll-loops|permissive|lto|openmp|visibility=\w+|diagnostics-color(?:=\w+)?|syntax-only|wrapv|fast-math|data-sections|function-sections|builtin))$/,
  operand: (text) =>
    text.startsWith("@") ? "a compiler takes further options from a file after @" : undefined,
};

/** The tools that people allow most, with the options that a rule with a star covers. */
const tools: readonly (readonly [string, ToolSpec])[] = [
  [
    "go",
    {
      commands: "test",
      words: true,
      options: `${goBuild} short cover covermode coverpkg count run skip bench benchtime benchmem timeout parallel cpu failfast list shuffle vet fullpath fuzz fuzztime fuzzminimizetime`,
    },
  ],
  ["go", { commands: "vet build install", words: true, options: `${goBuild} c` }],
  [
    "go",
    {
      commands: "list",
      words: true,
      options: `${goBuild} m f e deps test u versions find compiled retracted`,
    },
  ],
  [
    "go",
    {
      commands: "env",
      words: true,
      options: "json changed help h",
    },
  ],
  ["cargo", { commands: "test t build b check c clippy bench doc", options: cargo }],
  [
    "pytest",
    {
      options:
        "v q x s l k: m: verbose quiet exitfirst maxfail: lf last-failed ff failed-first nf new-first tb: durations: durations-min: " +
        "capture: showlocals co collect-only no-header no-summary r: strict-markers strict-config n: numprocesses: dist: cov? " +
        "cov-fail-under: cov-branch no-cov timeout: color: disable-warnings sw stepwise markers fixtures version V h help " +
        "cache-clear cache-show setup-show ignore: ignore-glob: deselect: reruns: full-trace import-mode: runxfail cov-report: " +
        "p: W: o: log-cli-level: log-level: no-cov-on-fail cov-append cov-context: asyncio-mode: benchmark-only " +
        "benchmark-skip snapshot-update randomly-seed: forked junitxml: junit-xml: rootdir: verbosity: show-capture: pdb " +
        "create-db reuse-db nomigrations looponfail f suppress-no-test-exit-code fixtures-per-test trace-config code-highlight:",
      plain: "cov-report cov-context",
      names: {
        p: /^no:[\w.-]+$/,
        o: /^(?:console_output_style|log_cli|log_cli_level)=\w*$/,
      },
      writes: "junitxml junit-xml",
      operand: (text) =>
        text.startsWith("@") ? "pytest takes further options from a file after @" : undefined,
    },
  ],
  [
    "eslint",
    {
      options:
        "ext: quiet max-warnings: cache f: format: color no-color ignore-pattern: no-ignore no-inline-config fix-dry-run " +
        "report-unused-disable-directives debug v version h help no-error-on-unmatched-pattern no-warn-ignored cache-strategy: " +
        "stdin stdin-filename: pass-on-no-patterns stats exit-on-fatal-error fix fix-type: no-fix no-cache cache-location: cache-file: " +
        "c: config: env: global: no-config-lookup no-eslintrc rule: env-info print-config: concurrency: flag: " +
        "report-unused-inline-configs: suppress-all prune-suppressions o: output-file:",
      plain: "f format",
      configures: "c config",
      configuration:
        /^(?:\.?\/)?(?:[\w-]+\/)*(?:eslint\.config\.[cm]?[jt]s|\.eslintrc(?:\.(?:[cm]?js|json|ya?ml))?)$/,
      writes: "o output-file cache-file",
      fills: "cache-location",
      rewrites: "fix",
    },
  ],
  [
    "prettier",
    {
      options:
        "c check l list-different no-color color log-level: no-error-on-unmatched-pattern ignore-unknown u no-config single-quote " +
        "no-semi tab-width: print-width: use-tabs trailing-comma: arrow-parens: bracket-same-line no-bracket-spacing " +
        "jsx-single-quote quote-props: prose-wrap: end-of-line: parser: version v help h stdin-filepath: no-cache no-editorconfig " +
        "write w cache cache-strategy: cache-location: config: ignore-path: with-node-modules no-plugin-search semi bracket-spacing " +
        "html-whitespace-sensitivity: vue-indent-script-and-style embedded-language-formatting: single-attribute-per-line " +
        "experimental-ternaries object-wrap: insert-pragma require-pragma range-start: range-end: file-info: find-config-path: " +
        "support-info config-precedence: no-bracket-same-line cursor-offset:",
      plain: "parser",
      configures: "config",
      configuration:
        /^(?:\.?\/)?(?:[\w-]+\/)*(?:prettier\.config\.[cm]?[jt]s|\.prettierrc(?:\.(?:[cm]?[jt]s|json5?|ya?ml|toml))?)$/,
      fills: "cache-location",
      rewrites: "write w",
    },
  ],
  [
    "tsc",
    {
      options:
        "noEmit p: project: w watch strict pretty? incremental skipLibCheck t: target: m: module: listFiles showConfig v version h " +
        "help all noEmitOnError lib: jsx: esModuleInterop moduleResolution: allowJs checkJs noImplicitAny strictNullChecks types: " +
        "traceResolution diagnostics extendedDiagnostics preserveWatchOutput outDir: outFile: declaration? d declarationMap? " +
        "declarationDir: emitDeclarationOnly? sourceMap? inlineSourceMap? inlineSources? removeComments? rootDir: rootDirs: baseUrl: " +
        "paths: typeRoots: tsBuildInfoFile: composite? b build clean dry force f verbose listEmittedFiles listFilesOnly explainFiles " +
        "noEmitHelpers importHelpers downlevelIteration isolatedModules? verbatimModuleSyntax? resolveJsonModule? " +
        "allowSyntheticDefaultImports? forceConsistentCasingInFileNames? skipDefaultLibCheck? useDefineForClassFields? " +
        "experimentalDecorators? emitDecoratorMetadata? noUnusedLocals? noUnusedParameters? noImplicitReturns? " +
        "noFallthroughCasesInSwitch? noUncheckedIndexedAccess? noImplicitOverride? noImplicitThis? strictFunctionTypes? " +
        "strictBindCallApply? strictPropertyInitialization? alwaysStrict? exactOptionalPropertyTypes? allowUnreachableCode? " +
        "allowUnusedLabels? noPropertyAccessFromIndexSignature? useUnknownInCatchVariables? jsxFactory: jsxFragmentFactory: " +
        "jsxImportSource: reactNamespace: newLine: charset: locale: moduleDetection: customConditions: allowImportingTsExtensions? " +
        "allowArbitraryExtensions? rewriteRelativeImportExtensions? erasableSyntaxOnly? isolatedDeclarations? maxNodeModuleJsDepth: " +
        "noResolve? noLib? stripInternal? preserveConstEnums? preserveSymlinks? noErrorTruncation? disableSizeLimit? " +
        "assumeChangesOnlyAffectDirectDependencies? stopBuildOnErrors? ignoreConfig? ignoreDeprecations: watchFile: watchDirectory:",
      writes: "outFile",
      fills: "outDir declarationDir tsBuildInfoFile",
      operand: (text) => (text.startsWith("@") ? "tsc takes further options from a file after @" : undefined),
    },
  ],
  [
    "jest",
    {
      options:
        "t: testNamePattern: testPathPattern: testPathPatterns: watch watchAll ci coverage? verbose silent bail? b i runInBand w: " +
        "maxWorkers: onlyChanged o onlyFailures f passWithNoTests u updateSnapshot json listTests no-coverage detectOpenHandles " +
        "forceExit runTestsByPath findRelatedTests color no-color colors errorOnDeprecated expand e logHeapUsage changedSince: " +
        "selectProjects: shard: randomize testTimeout: version help h no-cache clearCache watchman? c: config: reporters: " +
        "coverageDirectory: coverageReporters: collectCoverageFrom: collectCoverage outputFile: rootDir: roots: lastCommit " +
        "notify no-watchman cache useStderr showConfig noStackTrace debug seed: showSeed env: testEnvironment: " +
        "testMatch: testPathIgnorePatterns: testRegex: ignoreProjects: openHandlesTimeout: workerIdleMemoryLimit: waitNextEventLoopTurnForUnhandledRejectionEvents",
      plain: "reporters coverageReporters env testEnvironment",
      configures: "c config",
      configuration: /^(?:\.?\/)?(?:[\w-]+\/)*jest\.config\.(?:[\w-]+\.)?(?:[cm]?[jt]s|json)$/,
      writes: "outputFile",
      fills: "coverageDirectory",
    },
  ],
  [
    "vitest",
    {
      options:
        "run t: testNamePattern: u update w watch coverage? coverage.enabled? silent? bail? retry: maxWorkers: minWorkers: pool: " +
        "passWithNoTests hideSkippedTests changed? shard: no-coverage isolate? no-isolate fileParallelism? no-file-parallelism " +
        "sequence.shuffle? testTimeout: hookTimeout: allowOnly? typecheck? version v help h project: globals dir: logHeapUsage " +
        "mode: no-color color reporter: c: config: r: root: outputFile: coverage.reporter: coverage.provider: coverage.include: " +
        "coverage.exclude: coverage.all? coverage.reportsDirectory: coverage.thresholds.lines: coverage.thresholds.branches: " +
        "coverage.thresholds.functions: coverage.thresholds.statements: exclude: teardownTimeout: maxConcurrency: disable-console-intercept " +
        "clearScreen? standalone? related tags-filter: diff.expand printConsoleTrace? " +
        "expandSnapshotDiff? slowTestThreshold: environment: dom name: silent",
      plain: "reporter coverage.reporter coverage.provider environment",
      configures: "c config",
      configuration: /^(?:\.?\/)?(?:[\w-]+\/)*(?:vitest|vite)\.config\.(?:[\w-]+\.)?[cm]?[jt]s$/,
      writes: "outputFile",
      fills: "coverage.reportsDirectory",
    },
  ],
  ...["mvn", "mvnw"].map((name): [string, ToolSpec] => [name, maven]),
  ...["gradle", "gradlew"].map((name): [string, ToolSpec] => [name, gradle]),
  ...["gcc", "g++", "cc", "c++", "clang", "clang++"].map((name): [string, ToolSpec] => [name, compiler]),
  [
    "helm",
    {
      commands: "template lint list ls status get history show search version",
      options:
        "n: namespace: f: values: set: set-string: set-json: version: debug s: show-only: include-crds kube-version: a A api-versions: " +
        "name-template: release-name skip-crds skip-tests no-hooks all-namespaces all q short filter: max: m: revision: devel strict " +
        "with-subcharts quiet no-color o: output: kube-context: is-upgrade help h l versions",
    },
  ],
  [
    "helm",
    {
      commands: "install upgrade uninstall delete rollback",
      options:
        "n: namespace: f: values: set: set-string: set-json: version: debug i install wait wait-for-jobs atomic rollback-on-failure " +
        "timeout: create-namespace dry-run? description: history-max: cleanup-on-fail no-hooks force reset-values reuse-values " +
        "reset-then-reuse-values render-subchart-notes skip-crds devel repo: username: g generate-name name-template: o: output: " +
        "kube-context: dependency-update take-ownership hide-notes keep-history cascade: ignore-not-found replace labels: l: " +
        "disable-openapi-validation hide-secret q quiet help h",
    },
  ],
  [
    "kubectl",
    {
      commands: "config",
      options: "o: output: minify raw flatten context: current no-headers help h",
      operand: (text) =>
        /^set(?:-credentials|-cluster)?$/.test(text)
          ? "a changed configuration of kubectl can start programs"
          : undefined,
    },
  ],
  [
    "kubectl",
    {
      commands: "get describe logs top explain api-resources api-versions version",
      options:
        "n: namespace: A all-namespaces o: output: l: selector: w watch watch-only field-selector: show-labels no-headers? sort-by: " +
        "L: label-columns: show-kind context: cluster: chunk-size: ignore-not-found? server-print? f follow p previous c: " +
        "container: tail: since: since-time: timestamps? all-containers? prefix? max-log-requests: limit-bytes: containers v: " +
        "request-timeout: raw: R recursive api-version: api-group: client help h",
    },
  ],
  [
    "gh",
    {
      commands: "alias extension extensions ext config codespace cs",
      options: "help h",
      operand: () => "it changes or starts what other calls of gh run",
    },
  ],
  [
    "gh",
    {
      passedOn: "gh passes the options behind -- to git, which some of them make start programs",
      commands: "pr issue run release repo workflow search label",
      options:
        "R: repo: json: q: jq: t: template: L: limit: s: state: a: assignee: A: author: l: label: S: search: B: base: H: head: d draft c " +
        "comments title: body: b: fill f fill-first fill-verbose m milestone: name-only patch color: exit-status log log-failed " +
        "job: j: reviewer: r: merge squash rebase auto delete-branch add-label: remove-label: add-assignee: add-reviewer: " +
        "watch i: interval: required fail-fast approve request-changes comment reason: notes: n: tag: prerelease generate-notes " +
        "target: latest? verbose v user: branch: workflow: event: status: created: owner: language: sort: order: match: help h F: body-file:",
    },
  ],
  [
    "openssl",
    {
      commands:
        "version rand dgst x509 req pkey rsa ec s_client ciphers list enc base64 md5 sha1 sha256 sha512 verify asn1parse",
      words: true,
      options:
        "a d e A v hex base64 in inform outform noout text subject issuer dates startdate enddate fingerprint serial modulus " +
        "pubin pubout pubkey check sha1 sha256 sha384 sha512 md5 r c connect servername showcerts help ext purpose email " +
        "checkend nameopt issuer_hash subject_hash brief alpn tls1_2 tls1_3 port host",
    },
  ],
  [
    "openssl",
    { commands: "engine", options: "c t v vv", operand: () => "an engine is a library that is loaded" },
  ],
];

interface Tool extends ToolSpec {
  readonly table: OptionTable;
  readonly commandNames: ReadonlySet<string> | undefined;
  readonly plainNames: ReadonlySet<string>;
  readonly configuring: ReadonlySet<string>;
  readonly writing: ReadonlySet<string>;
  readonly filling: ReadonlySet<string>;
}

/** The tools of each name, made when one of them is first called. */
const known = new Map<string, readonly Tool[]>();

function toolOf(spec: ToolSpec): Tool {
  const words = (text: string | undefined) => new Set((text ?? "").split(" "));
  return {
    ...spec,
    table: optionTable(spec.options),
    commandNames: spec.commands === undefined ? undefined : words(spec.commands),
    plainNames: words(spec.plain),
    configuring: words(spec.configures),
    writing: words(spec.writes),
    filling: words(spec.fills),
  };
}

/** Reads a call of a tool of developers; undefined for one that is not listed. */
export function judgeDevelopment(words: readonly Word[]): Judgement | undefined {
  const name = words[0]?.text ?? "";
  const rows = known.get(name) ?? tools.filter(([each]) => each === name).map(([, spec]) => toolOf(spec));
  if (rows.length > 0) known.set(name, rows);
  const { place, risk } = readLeading(words, rows);
  const command = words[place];
  const tool = rows.find(
    ({ commandNames }) =>
      commandNames === undefined || (command?.literal === true && commandNames.has(command.text)),
  );
  if (tool === undefined)
    return risk && { ...judgement(false, [], [risk.reason]), ...reachOf(words, risk.at) };
  const from = tool.commandNames === undefined ? 1 : place + 1;
  const end = words.findIndex(({ text }) => text === "--");
  const risks = words.flatMap((word, at) => {
    const isPassedOn = end !== -1 && at >= end;
    if (at < from || (isPassedOn && (tool.passedOn === undefined || word.text === "--"))) return [];
    const passed = isPassedOn && (word.loose || word.text.startsWith("-")) ? tool.passedOn : undefined;
    const reason = passed ?? (isPassedOn ? undefined : riskOf(word, words[at + 1], tool));
    return reason === undefined ? [] : [{ at, reason }];
  });
  const all = risk === undefined ? risks : [risk, ...risks];
  const mayRewrite =
    tool.rewrites !== undefined && (all.length > 0 || rewritesOperands(words, tool.rewrites));
  return {
    ...judgement(false, [], [all[0]?.reason]),
    ...reachOf(words, all.at(-1)?.at),
    ...(mayRewrite && { changesOperands: true as const }),
  };
}

function rewritesOperands(words: readonly Word[], rewrites: string): boolean {
  const names = rewrites.split(" ");
  return words.some(({ text }) =>
    text.startsWith("--")
      ? names.includes(text.slice(2))
      : text.startsWith("-") && names.some((name) => name.length === 1 && text.includes(name)),
  );
}

/** A rule that names the options as far as the last one in question says enough. */
function reachOf(words: readonly Word[], last: number | undefined) {
  const head = words.slice(0, (last ?? 0) + 1).map(({ text }) => text);
  return {
    ...(last !== undefined && { wildcardHead: head.join(" ") }),
    namesFiles: "any" as const,
    anywhere: false,
  };
}

interface Leading {
  /** Where the subcommand is. */
  readonly place: number;
  readonly risk?: { readonly at: number; readonly reason: string };
}

/** Reads the options before a subcommand, which belong to the tool as a whole; a tool without subcommands has none. */
function readLeading(words: readonly Word[], tools: readonly Tool[]): Leading {
  if (tools.length === 0 || tools.some(({ commandNames }) => commandNames === undefined)) return { place: 1 };
  let place = 1;
  let risk: Leading["risk"];
  for (let word = words[place]; word !== undefined && /^[-+]./.test(word.text); word = words[place]) {
    const [, name = "", value] = /^-{1,2}([^=]+)(=.*)?$/s.exec(word.text) ?? [];
    const signs = tools.flatMap(({ table }) => table.get(name) ?? [])[0];
    // `+nightly` names an installed version.
    if (signs === undefined && !/^\+|^--?(?:version|help|list)$|^-[Vhv]+$/.test(word.text))
      risk ??= {
        at: place,
        reason: `the option ${word.text} is not known to be harmless`,
      };
    place += signs?.includes(":") === true && value === undefined ? 2 : 1;
  }
  return risk === undefined ? { place } : { place, risk };
}

function riskOf(word: Word, next: Word | undefined, tool: Tool): string | undefined {
  const { text } = word;
  if (word.loose) return "an argument is only known when it runs and may be an option";
  if (!text.startsWith("-") || text === "-") return tool.operand?.(text);
  const reason = `the option ${text} is not known to be harmless`;
  if (tool.also?.test(text) === true) return undefined;
  const [, long, value] = /^(--?[^=]+)(?:=(.*))?$/s.exec(text) ?? [];
  const name = long?.replace(/^--?/, "") ?? "";
  if (tool.words === true || text.startsWith("--")) {
    if (!tool.table.has(name)) return reason;
    return mayHold(name, value ?? next?.text, tool) ? undefined : reason;
  }
  for (const [at, letter] of [...text.slice(1)].entries()) {
    const signs = tool.table.get(letter);
    if (signs === undefined) return reason;
    const rest = text.slice(at + 2);
    if (!mayHold(letter, rest === "" ? next?.text : rest, tool)) return reason;
    if (signs.includes(":")) return undefined;
  }
  return undefined;
}

/** What tools write there is taken for nothing but their output. */
const outputFolders = /^(?:dist|build|out|output|coverage|tmp|temp|reports|test-results|junit)\/[\w-]/;

/** Whether the value of an option is one that a rule with a star covers. */
function mayHold(option: string, value: string | undefined, tool: Tool): boolean {
  if (tool.plainNames.has(option)) return value !== undefined && /^[\w-]+$/.test(value);
  const form = Object.hasOwn(tool.names ?? {}, option) ? tool.names?.[option] : undefined;
  if (form !== undefined) return value !== undefined && form.test(value);
  if (tool.configuring.has(option)) return value !== undefined && tool.configuration?.test(value) === true;
  const isFolder = tool.filling.has(option);
  if (!isFolder && !tool.writing.has(option)) return true;
  const path = value?.replace(/^\.\//, "").replace(/\/+$/, "") ?? "..";
  const isOutput = isFolder || outputFolders.test(path);
  return !path.split("/").includes("..") && steersPrograms(path, { isFolder: isOutput }) === undefined;
}
