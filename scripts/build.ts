/**
 * Builds the library (with the packages its users do not install) and the command line (with all packages, split for a
 * fast cold start), then the types.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { type BuildOptions, build, type Metafile, type Plugin } from "esbuild";
import manifest from "../package.json" with { type: "json" };
import { helpText } from "../packages/hosts/src/cli/program/help-text.ts";
import { bundleGate, completeGate } from "./build-gate.ts";
import { compileEarly } from "./compile-early.ts";
import { copyTypes } from "./copy-types.ts";
import { type ChunkGroup, joinChunks } from "./join-chunks.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const shared = {
  absWorkingDir: root,
  bundle: true,
  splitting: true as const,
  platform: "node" as const,
  format: "esm" as const,
  target: "node22.18",
  logLevel: "warning" as const,
  legalComments: "linked" as const,
  metafile: true as const,
  // The CommonJS builds of some packages load their own parts in ways a bundler cannot follow.
  mainFields: ["module", "main"],
  // Pages are parsed before they are given to it, so it needs no parser of its own.
  alias: { turndown: "turndown/lib/turndown.browser.es.js" },
} satisfies BuildOptions;

const [, minimumNode = ""] = /(\d+\.\d+)/.exec(manifest.engines.node) ?? [];
const [minimumMajor, minimumMinor] = minimumNode.split(".").map(Number);

/** The first that a program of an older Node sees of the library, whichever file it imports, is one sentence. */
const nodeCheck =
  "{ const [major, minor] = globalThis.process.versions.node.split('.').map(Number); " +
  `if (major < ${minimumMajor} || (major === ${minimumMajor} && minor < ${minimumMinor})) ` +
  `throw new Error('Retinue needs Node ${minimumNode} or newer; this is ' + globalThis.process.version + '.'); }`;

/** For the CommonJS packages in the library: what they require of Node. */
const requiredBuiltins: Plugin = {
  name: "required-builtins",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /.*/ }, ({ path, kind }) =>
      kind === "require-call" && isBuiltin(path) ? { path, namespace: "required-builtin" } : undefined,
    );
    onLoad({ filter: /.*/, namespace: "required-builtin" }, ({ path }) => ({
      contents: `module.exports = ${builtin(path)};`,
    }));
  },
};

/**
 * Takes Node's own modules as they are. An import statement makes Node copy every export first, which also loads parts
 * that no one asked for: for `node:fs` alone some milliseconds of each start. As a module of the bundle, of which only
 * the names in use remain, it costs nothing.
 */
const plainBuiltins: Plugin = {
  name: "plain-builtins",
  setup({ onResolve, onLoad }) {
    // What is imported while the program runs is a module of its own: all its exports are kept, so it would be loaded at the start.
    onResolve({ filter: /.*/ }, ({ path, kind }) =>
      kind !== "require-call" && isBuiltin(path)
        ? { path, namespace: kind === "dynamic-import" ? "builtin-later" : "builtin" }
        : undefined,
    );
    for (const namespace of ["builtin", "builtin-later"])
      onLoad({ filter: /.*/, namespace }, ({ path }) => ({ contents: builtinModule(path) }));
  },
};

/**
 * jsonc-parser makes 1,200 indented line breaks when it is loaded, for formatting what is long: 3 ms of every start. Beyond the first
 * level of its tables it puts a line break together when it needs one.
 */
const noTablesOfSpaces: Plugin = {
  name: "no-tables-of-spaces",
  setup({ onLoad }) {
    onLoad({ filter: /jsonc-parser[\\/]lib[\\/]esm[\\/]impl[\\/]string-intern\.js$/ }, () => ({
      contents: `
        export const supportedEols = ["\\n", "\\r", "\\r\\n"];
        const breaks = (sign) => Object.fromEntries(supportedEols.map((eol) => [eol, { length: 1, 1: eol + sign }]));
        export const cachedSpaces = Array.from({ length: 20 }, (_, count) => " ".repeat(count));
        export const cachedBreakLinesWithSpaces = { " ": breaks(" "), "\\t": breaks("\\t") };`,
    }));
  },
};

function builtin(path: string): string {
  return `globalThis.process.getBuiltinModule(${JSON.stringify(path)})`;
}

/** `default` has a line of its own; the others make Node load its whole HTTP client when they are only looked at. */
const notTaken = new Set(["default", "WebSocket", "CloseEvent", "MessageEvent"]);

/** Modules that Node does not load for itself. Many starts call nothing of them, so each is loaded with the first call of one of its functions. */
const slowToLoad = new Set(["child_process", "crypto", "fs/promises", "net", "readline"]);

function builtinModule(path: string): string {
  const whole: object = process.getBuiltinModule(path) ?? {};
  const names = Object.keys(whole).filter((name) => /^[A-Za-z_$][\w$]*$/.test(name) && !notTaken.has(name));
  const isSlow = slowToLoad.has(path.replace(/^node:/, ""));
  // What is not imported is left out by the bundler, because picking is marked as pure.
  const exported = names.map((name) => {
    const isPlainFunction = typeof Reflect.get(whole, name) === "function" && /^[a-z]/.test(name);
    const value =
      isSlow && isPlainFunction
        ? `(...input) => whole()[${JSON.stringify(name)}](...input)`
        : `/* @__PURE__ */ pick("${name}")`;
    return `const _${name} = ${value}; export { _${name} as ${name} };`;
  });
  const take = `const whole = () => ${builtin(path)};\nconst pick = (name) => whole()[name];`;
  const all = isSlow ? "new Proxy({}, { get: (_, name) => whole()[name] })" : "whole()";
  return [take, `export default /* @__PURE__ */ ${all};`, ...exported].join("\n");
}

/** The licences of the packages whose code is part of what is built. */
function writeLicences(files: readonly Metafile[], target: string): void {
  const inputs = files.flatMap(({ inputs }) => Object.keys(inputs));
  const folders = inputs.flatMap((input) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0] ?? []);
  const texts = [...new Set(folders)].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${root}/${folder}/package.json`, "utf8"));
    const file = readdirSync(`${root}/${folder}`).find((name) => /^licen[cs]e/i.test(name));
    const text = file === undefined ? "" : `\n${readFileSync(`${root}/${folder}/${file}`, "utf8").trim()}\n`;
    return `${name} ${version} (${license})\n${text}`;
  });
  writeFileSync(`${root}/${target}/THIRD-PARTY-LICENSES.txt`, texts.join(`\n${"-".repeat(80)}\n\n`));
}

/**
 * `@retinue/cluster` as it is published, in `packages/cluster/dist`: the cluster of `retinue` under a name of its own, with the client of the
 * database. It has no code, because runtimes and stores of one program must come from one copy of the library.
 */
function writeClusterPackage(): void {
  const folder = `${root}/packages/cluster`;
  const own = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const published = {
    name: own.name,
    version: own.version,
    description: own.description,
    license: own.license,
    repository: { ...manifest.repository, directory: "packages/cluster" },
    type: "module",
    engines: manifest.engines,
    sideEffects: false,
    exports: { ".": { types: "./index.d.ts", default: "./index.js" } },
    dependencies: own.peerDependencies,
    peerDependencies: { retinue: manifest.version },
  };
  mkdirSync(`${folder}/dist`, { recursive: true });
  writeFileSync(`${folder}/dist/package.json`, `${JSON.stringify(published, undefined, 2)}\n`);
  for (const name of ["index.js", "index.d.ts"])
    writeFileSync(`${folder}/dist/${name}`, 'export * from "retinue/cluster";\n');
  copyFileSync(`${folder}/README.md`, `${folder}/dist/README.md`);
  copyFileSync(`${root}/LICENSE`, `${folder}/dist/LICENSE`);
}

/** The first help, which the command shows without loading anything. */
function writeHelp(): void {
  writeFileSync(`${root}/dist/help.txt`, helpText);
}

/** The man page, as the built command prints it. */
function writeManual(): void {
  const manual = execFileSync(process.execPath, ["bin/retinue.js", "help", "--man"], { cwd: root });
  mkdirSync(`${root}/dist/man`);
  writeFileSync(`${root}/dist/man/retinue.1`, manual);
}

/**
 * The helper that isolates commands on Linux, for each machine that a compiler is there for. It needs no C library; where
 * there is no compiler, the package works without it and looks for bubblewrap.
 */
function buildWall(): void {
  mkdirSync(`${root}/dist/native`);
  const compilers = {
    x64: process.arch === "x64" ? "cc" : "x86_64-linux-gnu-gcc",
    arm64: process.arch === "arm64" ? "cc" : "aarch64-linux-gnu-gcc",
  };
  const options =
    "-O2 -Wall -static -nostdlib -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables -s " +
    "-Wl,--build-id=none -Wl,-z,noexecstack";
  for (const [machine, compiler] of Object.entries(compilers)) {
    const isOwn = process.platform === "linux" && process.arch === machine;
    if (process.platform !== "linux" && compiler === "cc") continue;
    const target = `${root}/dist/native/wall-linux-${machine}`;
    try {
      execFileSync(compiler, [...options.split(" "), "-o", target, `${root}/native/wall.c`], {
        stdio: "pipe",
      });
    } catch (error) {
      rmSync(target, { force: true });
      const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
      if (isOwn || !isMissing)
        console.warn(
          `native/wall.c was not built for linux-${machine}: ${isMissing ? `there is no ${compiler}` : String(error)}`,
        );
    }
  }
}

/** Where the types of every file are while the packages are built. */
const allTypes = `${root}/dist/all-types`;

/** The types that the entries reach, which name each other by relative paths, because users have none of the workspaces. */
function buildTypes(): void {
  const outdir = allTypes;
  execFileSync(
    process.execPath,
    ["node_modules/typescript/bin/tsc", "-p", "tsconfig.types.json", "--outDir", outdir],
    {
      cwd: root,
      stdio: "inherit",
    },
  );
  for (const name of readdirSync(outdir, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".d.ts")) continue;
    const file = join(outdir, name);
    const text = readFileSync(file, "utf8");
    const own = text.replace(/"@retinue\/([a-z]+)\/([^"]+)"/g, (_, workspace, path) => {
      const target = join(outdir, "packages", workspace, "src", path);
      const way = relative(dirname(file), target).replaceAll("\\", "/");
      return JSON.stringify(way.startsWith(".") ? way : `./${way}`);
    });
    if (own !== text) writeFileSync(file, own);
  }
  const entries = Object.values(manifest.exports).flatMap((entry) =>
    typeof entry === "string" ? [] : [join(outdir, relative("./dist/types", entry.types))],
  );
  for (const entry of entries) copyTypes(outdir, entry, `${root}/dist/types`);
}

/** What the first run of a runtime loads. */
const firstRun = [
  "packages/core/src/kernel/open-session.ts",
  "packages/core/src/kernel/servers/gather-mcp-servers.ts",
  "packages/config/src/skills/skill-catalog.ts",
  "packages/core/src/tasks/cleanup.ts",
];
const libraryGroups: readonly ChunkGroup[] = [
  { name: "base", entry: "index", roots: ["src/index.ts"] },
  { name: "run", roots: firstRun },
];
const printing = ["packages/hosts/src/print/run-print.ts", ...firstRun];
/** `retinue agents`, which scripts and prompts of shells ask most often. */
const listing = [
  "packages/hosts/src/cli/agents.ts",
  "packages/hosts/src/commands/agents/agents-list.ts",
  "packages/core/src/kernel/project/project-agents.ts",
];
/** Commands that read definitions or settings and run nothing. */
const reading = [
  ...listing,
  "packages/hosts/src/commands/mcp/mcp-list.ts",
  "packages/hosts/src/commands/tasks/tasks.ts",
  "packages/core/src/kernel/project/project-teams.ts",
  // It knows the words for tools, which a run needs too, and nothing else of a run.
  "packages/config/src/formats/read-foreign-file.ts",
];
/**
 * Every start needs the first, all that has arguments to read the second, every command that reads definitions or settings the
 * third, every run the fourth; a name that is there twice is one file.
 */
const commandGroups: readonly ChunkGroup[] = [
  { name: "main", roots: ["packages/hosts/src/cli/main.ts"] },
  { name: "main", roots: ["packages/hosts/src/cli/program/run-program.ts"], sharedWith: reading },
  { name: "program", roots: ["packages/hosts/src/cli/program/run-program.ts"] },
  { name: "core", roots: printing, sharedWith: reading },
  { name: "run", roots: printing },
  { name: "agents", roots: listing },
];

rmSync(`${root}/dist`, { recursive: true, force: true });
const built = await Promise.all([
  build({
    ...shared,
    entryPoints: {
      index: "src/index.ts",
      definitions: "src/definitions.ts",
      permissions: "src/permissions.ts",
      model: "src/model.ts",
      mcp: "src/mcp.ts",
      cluster: "packages/cluster/src/index.ts",
      testing: "packages/testing/src/index.ts",
    },
    outdir: "dist/lib-chunks",
    legalComments: "inline",
    banner: { js: nodeCheck },
    // What users install with the library is shared with theirs; the rest becomes part of it.
    external: [...Object.keys(manifest.dependencies), ...Object.keys(manifest.peerDependencies)],
    plugins: [requiredBuiltins, noTablesOfSpaces],
  }),
  build({
    ...shared,
    entryPoints: ["packages/hosts/src/cli/main.ts"],
    outdir: "dist/cli-chunks",
    legalComments: "inline",
    minifySyntax: true,
    // Less to read at each start; names stay, so that stack traces can be understood.
    minifyWhitespace: true,
    // The first finds its binary beside itself; the second is large and rarely used; the others are there only for users who name a store.
    external: ["@vscode/ripgrep", "unpdf", "pg"],
    plugins: [requiredBuiltins, plainBuiltins, noTablesOfSpaces],
    banner: {
      js: 'const require = (name) => globalThis.process.getBuiltinModule("node:module").createRequire(import.meta.url)(name);',
    },
  }),
  // The page of the studio, which only browsers load.
  build({
    absWorkingDir: root,
    entryPoints: ["packages/hosts/src/studio/page/page.ts", "packages/hosts/src/studio/page/page.css"],
    outdir: "dist/studio",
    bundle: true,
    minify: true,
    format: "iife",
    platform: "browser",
    target: "es2022",
    logLevel: "warning",
    legalComments: "none",
    metafile: true,
  }),
]);
const [library, commandLine] = built;
await joinChunks(library.metafile, libraryGroups, {
  ...shared,
  from: `${root}/dist/lib-chunks`,
  outdir: "dist/lib",
});
await joinChunks(commandLine.metafile, commandGroups, {
  ...shared,
  from: `${root}/dist/cli-chunks`,
  outdir: "dist/cli",
  minifySyntax: true,
  minifyWhitespace: true,
});
for (const name of ["lib", "cli"]) rmSync(`${root}/dist/${name}-chunks`, { recursive: true });
const gate = await bundleGate({ root, shared, banner: nodeCheck });
writeLicences(
  built.map(({ metafile }) => metafile),
  "dist",
);
writeLicences([gate], "packages/gate/dist");
await compileEarly(root);
writeHelp();
writeManual();
writeClusterPackage();
buildWall();
buildTypes();
completeGate(root, allTypes);
rmSync(allTypes, { recursive: true });
