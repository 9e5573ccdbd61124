import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import type { RuntimeOptions, SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { parsePermissionMode } from "@retinue/gate/permission-policy.ts";
import type { ScriptedCall } from "@retinue/testing/script.ts";
import { createScriptedModel } from "@retinue/testing/scripted-model.ts";
import { caseFiles, texts, trustStore, writeTrustedRoots } from "./case-settings.ts";
import { type Fields, isFields, NotHonoured, type Roots, type SecurityCase } from "./security-case.ts";

/** What a session did that was started as a case says. */
export interface CaseSession {
  readonly requests: readonly ModelRequest[];
  readonly calls: readonly { readonly name: string; readonly isError: boolean; readonly denied: boolean }[];
  /** Why nothing was started. */
  readonly refused?: string;
}

export interface CaseSessionOptions extends RuntimeOptions {
  /** What the model calls in its first answer. */
  readonly calls?: readonly ScriptedCall[];
  readonly session?: SessionOptions;
}

/** Runs one prompt in the folders of a case: its settings are files, its trust is in the person's record. */
export async function runCaseSession(
  testCase: SecurityCase,
  roots: Roots,
  { calls = [], session = {}, ...options }: CaseSessionOptions = {},
): Promise<CaseSession> {
  const { P, H, W } = roots;
  const { cwd = P, additionalDirectories = [], mode, context = {} } = testCase;
  const isListed = context["trustedRoots"] !== undefined;
  if (isListed) await writeTrustedRoots(texts(context["trustedRoots"]), roots);
  else if (testCase.trusted ?? true) await trustStore(roots).trust(cwd);
  const permissionMode = parsePermissionMode(mode);
  const model = createScriptedModel([...(calls.length === 0 ? [] : [{ calls }]), "Done.", "Done.", "Done."]);
  const ended: CaseSession["calls"][number][] = [];
  await using runtime = createRuntime({
    cwd,
    home: H,
    settingSources: ["user", "project", "local"],
    transcripts: true,
    managedDirectory: join(W, "managed"),
    additionalDirectories,
    model,
    // The schema of cases says that it is one of these.
    ...(testCase.platform === undefined ? {} : { platform: testCase.platform as NodeJS.Platform }),
    ...options,
    env: { PATH: process.env["PATH"], HOME: H, RETINUE_LOCAL_MODELS: "0", ...options.env },
  });
  try {
    const chosen = permissionMode === undefined || permissionMode === "default" ? {} : { permissionMode };
    const handle = runtime.run("Work.", { ...chosen, ...session });
    for await (const event of handle.events) {
      if (event.type !== "call-finished") continue;
      ended.push({ name: event.call.name, isError: event.isError, denied: event.denied !== undefined });
    }
    await handle.result;
    return { requests: model.requests, calls: ended };
  } catch (error) {
    return { requests: model.requests, calls: ended, refused: String(error) };
  }
}

/** Writes every settings file of a case, and more settings by scope, where a start reads them. */
export async function writeCaseSettings(
  testCase: SecurityCase,
  roots: Roots,
  more: Readonly<Record<string, Fields>> = {},
): Promise<void> {
  const files = new Map([
    ["user", join(roots.H, ".claude/settings.json")],
    ["project", join(roots.P, ".claude/settings.json")],
    ["local", join(roots.P, ".claude/settings.local.json")],
    ["managed", join(roots.W, "managed/managed-settings.json")],
  ]);
  const parts = [
    ...caseFiles(testCase).map(({ scope, settings, root }) => {
      if (root !== undefined) throw new NotHonoured(`scopes.root cannot be honoured on ${testCase.surface}`);
      return [scope, settings] as const;
    }),
    ...Object.entries(more),
  ];
  for (const [scope, settings] of parts) {
    const file = files.get(scope);
    if (file === undefined) throw new NotHonoured(`there is no settings file of the scope ${scope}`);
    const earlier = await readFile(file, "utf8").then(JSON.parse, () => ({}));
    await mkdir(dirname(file), { recursive: true, mode: 0o755 });
    await writeFile(file, JSON.stringify(merge(isFields(earlier) ? earlier : {}, settings)), { mode: 0o644 });
  }
}

function merge(before: Fields, after: Fields): Fields {
  const all = Object.entries(after).map(([key, value]): [string, unknown] => {
    const old = Object.hasOwn(before, key) ? before[key] : undefined;
    if (isFields(old) && isFields(value)) return [key, merge(old, value)];
    return [key, Array.isArray(old) && Array.isArray(value) ? [...old, ...value] : value];
  });
  return { ...before, ...Object.fromEntries(all) };
}
