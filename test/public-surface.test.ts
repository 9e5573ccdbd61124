import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as cluster from "@retinue/cluster/index.ts";
import { helpText } from "@retinue/hosts/cli/program/help-text.ts";
import * as testing from "@retinue/testing/index.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import packageJson from "../package.json" with { type: "json" };
import * as surface from "../src/index.ts";
import { ownImports } from "./import-rules.ts";
import { projectRoot, readProjectFile } from "./project-files.ts";
import { packageOf, readImports } from "./read-imports.ts";
import { createPlace, runCommand } from "./scenarios/run-command.ts";

/** A name added here is a promise to users: it stays until a major version. */
const exportedNames = [
  "RetinueError",
  "createApprovalQueue",
  "createRuntime",
  "defineAgent",
  "defineTool",
  "isRetinueError",
  "promptFromUiMessages",
];

const subpathNames = {
  definitions: [
    "builtinAgents",
    "createAgentCatalog",
    "createRegistry",
    "defineAgent",
    "describeAgents",
    "discoverAgents",
    "lintDefinition",
    "parseAgentDefinition",
    "rateDescription",
    "readSessionAgents",
  ],
  permissions: ["createPaths", "createTrustStore", "formatRule", "grantTools", "loadSettings", "parseRule"],
  model: ["ModelError", "createTextModel", "parseModelReference", "toAiSdkTools", "toAnthropicTools"],
  mcp: ["readMcpServers"],
};

/** Values and types together; a small root is what people read first. */
const maxRootNames = 90;

const testingNames = [
  "assertReplay",
  "createFakeHost",
  "createFakeMcpServer",
  "createManualClock",
  "createScriptedModel",
  "describeModelContract",
  "describeStoreContract",
  "startFakeProvider",
];

const clusterNames = [
  "describeWorkspace",
  "findWorkspace",
  "followSession",
  "inspectAgent",
  "isConflict",
  "logConflict",
  "openStore",
  "planMain",
  "postgres",
  "pruneAgents",
  "reviveAgent",
  "sendMessage",
  "serveAgents",
  "serveSessions",
  "setUpStore",
  "startAgent",
  "startPlan",
  "startSession",
  "startWorkflow",
  "stopAgent",
  "storeApprovals",
  "waitForEnd",
  "watchAgent",
  "workersOf",
];

const exportMap = {
  ".": { types: "./dist/types/src/index.d.ts", default: "./dist/lib/index.js" },
  "./definitions": { types: "./dist/types/src/definitions.d.ts", default: "./dist/lib/definitions.js" },
  "./permissions": { types: "./dist/types/src/permissions.d.ts", default: "./dist/lib/permissions.js" },
  "./model": { types: "./dist/types/src/model.d.ts", default: "./dist/lib/model.js" },
  "./mcp": { types: "./dist/types/src/mcp.d.ts", default: "./dist/lib/mcp.js" },
  "./cluster": { types: "./dist/types/packages/cluster/src/index.d.ts", default: "./dist/lib/cluster.js" },
  "./testing": { types: "./dist/types/packages/testing/src/index.d.ts", default: "./dist/lib/testing.js" },
  "./schemas/*.json": "./schemas/*.json",
  "./package.json": "./package.json",
};

/** What a program loads with `import "retinue"`, before it calls anything. */
const packagesOfRootEntry = ["js-yaml", "jsonc-parser"];

describe("the public surface is what is pinned here", () => {
  test("package.json exports exactly the pinned map", () => {
    expect(packageJson.exports).toEqual(exportMap);
  });

  test("the root entry exports exactly the pinned names", () => {
    expect(Object.keys(surface).sort()).toEqual([...exportedNames].sort());
  });

  test("the root entry has at most 90 names, types included", () => {
    const names = exportedIn(readProjectFile("src/index.ts"));
    expect(names).toEqual(expect.arrayContaining(exportedNames));
    expect(names.length).toBeLessThanOrEqual(maxRootNames);
    expect(exportedIn('export { type A, b } from "x";\nexport type {\n  C,\n  D as E,\n} from "y";')).toEqual(
      ["A", "b", "C", "E"],
    );
  });

  test.each(
    Object.entries(subpathNames),
  )("retinue/%s exports exactly the pinned names", async (name, names) => {
    const entry: Record<string, unknown> = await import(`../src/${name}.ts`);
    expect(Object.keys(entry).sort()).toEqual(names);
  });

  test("the testing entry exports exactly the pinned names [MDL-5]", () => {
    expect(Object.keys(testing).sort()).toEqual(testingNames);
  });

  test("the cluster entry exports exactly the pinned names [CLU-1]", () => {
    expect(Object.keys(cluster).sort()).toEqual(clusterNames);
  });

  test("every file of the export map and of the types is there after a build", () => {
    const files = Object.values(exportMap).flatMap((entry) =>
      typeof entry === "string" ? [entry] : Object.values(entry),
    );
    const missing = files.filter((file) => !file.includes("*") && !existsSync(join(projectRoot, file)));
    expect(missing, "npm ci builds dist; after that, npm run build does.").toEqual([]);
  });
});

describe("loading stays light", () => {
  test("the root entry pulls in exactly the pinned packages", () => {
    expect(packagesLoadedBy("src/index.ts")).toEqual(packagesOfRootEntry);
  });

  test("the testing entry pulls in no package, a test runner least of all", () => {
    expect(packagesLoadedBy("packages/testing/src/index.ts")).toEqual([]);
  });

  test("without a store nothing of it is loaded, and naming one loads its client only then [CLU-1]", () => {
    for (const entry of [
      "src/index.ts",
      "packages/hosts/src/cli/main.ts",
      "packages/hosts/src/cli/program/run-program.ts",
      "packages/core/src/kernel/open-session.ts",
    ])
      expect(filesLoadedBy(entry).filter((path) => path.startsWith("packages/cluster/src/"))).toEqual([]);
    for (const entry of [
      "packages/cluster/src/index.ts",
      "packages/cluster/src/postgres/open-postgres-store.ts",
    ])
      expect(packagesLoadedBy(entry)).not.toContain("pg");
    const { dependencies, peerDependenciesMeta: peers } = packageJson;
    expect(dependencies).not.toHaveProperty("pg");
    expect(peers.pg).toEqual({ optional: true });
  });

  test("the built library exports what its sources export, and nothing else", async () => {
    for (const [subpath, entry] of Object.entries(packageJson.exports)) {
      if (typeof entry === "string") continue;
      const source = entry.types.replace("./dist/types/", "").replace(/\.d\.ts$/, ".ts");
      const [built, written] = await Promise.all(
        [entry.default, source].map(async (path) => Object.keys(await import(join(projectRoot, path)))),
      );
      expect([subpath, built?.sort()]).toEqual([subpath, written?.sort()]);
    }
  });

  test("running loads no schema library; a typed result does", () => {
    expect(packagesLoadedBy("packages/core/src/kernel/open-session.ts")).not.toContain("zod");
    expect(packagesLoadedBy("packages/core/src/kernel/options/read-output-schema.ts")).toContain("zod");
  });

  test("the root entry never pulls in the command line or a terminal", () => {
    const heavy = ["commander", "ink", "react"];
    expect(packagesLoadedBy("src/index.ts").filter((name) => heavy.includes(name))).toEqual([]);
  });

  test("the walk sees packages behind own files", () => {
    expect(packagesLoadedBy("packages/base/src/foundation/parse-json-document.ts")).toEqual(["jsonc-parser"]);
  });

  test("the command's own file loads nothing before it knows what is wanted, and then only the program", () => {
    const imports = readImports(readProjectFile("bin/retinue.js"));
    expect(imports.map(({ kind, specifier }) => `${kind} ${specifier}`)).toEqual([
      "dynamic ./find-node.js",
      "dynamic ../dist/cli/main.js",
    ]);
  });

  test("a run that asks the model does not load Node's own HTTP client, which nothing goes through", async () => {
    const server = createServer((_, response) => response.writeHead(401).end("{}")).listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const place = createPlace();
    const hook = `process.on("exit", () => process._rawDebug("loaded " + process.moduleLoadList.join(" ")));`;
    const { code, err } = await runCommand(place, ["-p", "hi"], {
      environment: {
        ANTHROPIC_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        ANTHROPIC_API_KEY: "key",
        NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}`,
      },
    });
    expect(code).toBe(1);
    expect(err).toContain("NativeModule http");
    expect(err).not.toContain("undici");
  });

  test.each([
    [2, ["help"]],
    [3, ["agents"]],
    [7, ["-p", "hi", "--model", "offline"]],
  ] as const)("at most %i files of the built program are read for retinue %j", (most, words) => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "retinue-files-")));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const hook = `process.getBuiltinModule("node:module").registerHooks({ load(url, context, next) {
      if (url.includes("/dist/cli/")) process._rawDebug("read " + url);
      return next(url, context);
    } });`;
    const { stderr } = spawnSync(
      process.execPath,
      [
        "--import",
        `data:text/javascript,${encodeURIComponent(hook)}`,
        join(projectRoot, "bin/retinue.js"),
        ...words,
      ],
      { cwd: folder, encoding: "utf8", env: { PATH: process.env["PATH"], HOME: folder } },
    );
    const read = stderr.split("\n").filter((line) => line.startsWith("read "));
    expect(read.length).toBeGreaterThan(0);
    expect(read.length, `${read.join("\n")}\nCorrect the groups in scripts/build.ts.`).toBeLessThanOrEqual(
      most,
    );
  });

  test.each([
    "--help",
    "-h",
  ])("retinue %s is the first help, and reads no code of the built program", (word) => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "retinue-help-")));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    for (const name of ["bin", "package.json", "dist/help.txt"])
      cpSync(join(projectRoot, name), join(folder, name), { recursive: true });
    const onlyReadsHere = ["--permission", `--allow-fs-read=${folder}`];
    const output = execFileSync(process.execPath, [...onlyReadsHere, join(folder, "bin/retinue.js"), word], {
      encoding: "utf8",
    });
    expect(output).toBe(helpText);
  });

  test("retinue --version answers without the built program, without packages and without another process", () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "retinue-version-")));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    cpSync(join(projectRoot, "bin"), join(folder, "bin"), { recursive: true });
    cpSync(join(projectRoot, "package.json"), join(folder, "package.json"));
    const onlyReadsHere = ["--permission", `--allow-fs-read=${folder}`];
    const output = execFileSync(
      process.execPath,
      [...onlyReadsHere, join(folder, "bin/retinue.js"), "--version"],
      {
        encoding: "utf8",
      },
    );
    expect(output).toBe(`${packageJson.version}\n`);
  });
});

/** Every name that a file of re-exports gives, values and types. */
function exportedIn(text: string): string[] {
  return [...text.matchAll(/^export (?:type )?\{([^}]*)\} from/gm)].flatMap(([, list = ""]) =>
    list
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "")
      .map((name) => name.replace(/^type /, "").replace(/^.* as /, "")),
  );
}

function packagesLoadedBy(entry: string): string[] {
  const packages = filesLoadedBy(entry).flatMap((path) =>
    readImports(readProjectFile(path)).flatMap(({ specifier, kind }) => {
      const name = packageOf(specifier);
      return kind === "static" && name !== undefined && !name.startsWith("@retinue/") ? [name] : [];
    }),
  );
  return [...new Set(packages)].sort();
}

function filesLoadedBy(entry: string): readonly string[] {
  const visited = new Set<string>();
  const visit = (path: string): void => {
    if (visited.has(path)) return;
    visited.add(path);
    for (const { target, kind } of ownImports({ path, text: readProjectFile(path) }))
      if (kind === "static") visit(target);
  };
  visit(entry);
  return [...visited];
}
