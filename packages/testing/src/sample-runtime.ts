import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { defined } from "@retinue/base/foundation/defined.ts";
import { createRuntime, type Runtime } from "@retinue/core/kernel/create-runtime.ts";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { createSessionFiles } from "@retinue/core/tools/file-ledger.ts";
import type { Tool, ToolContext, ToolOutcome } from "@retinue/core/tools/tool.ts";
import type { Step } from "./script.ts";
import { createScriptedModel, type ScriptedModelOptions } from "./scripted-model.ts";

/** A temporary project for trying tools on real files; disposing removes it. */
export interface Workspace extends AsyncDisposable {
  /** Absolute and real; the project is the folder `project` in it. */
  readonly root: string;
  readonly project: string;
  path(name: string): string;
  /** Makes a file of the project, and the folders above it. */
  write(name: string, content: string | Uint8Array): Promise<string>;
  /** A context for calls of one agent; the same name gives the same ledger of files. */
  context(agent?: string, changes?: Partial<ToolContext>): ToolContext;
  /** Checks the input as the loop does, and calls the tool for the agent `main`. */
  call(tool: Tool, input: unknown, context?: ToolContext): Promise<CalledTool>;
}

interface CalledTool {
  readonly text: string;
  readonly isError: boolean;
  readonly outcome: ToolOutcome;
}

export async function createWorkspace(): Promise<Workspace> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "workspace-")));
  const project = join(root, "project");
  await mkdir(project);
  const session = createSessionFiles();
  const ledgers = new Map<string, ToolContext["files"]>();
  let calls = 0;
  const workspace: Workspace = {
    root,
    project,
    path: (name) => join(project, name),
    async write(name, content) {
      const file = join(project, name);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, content);
      return file;
    },
    context(agent = "main", changes = {}) {
      const files = ledgers.get(agent) ?? session.forAgent();
      ledgers.set(agent, files);
      return {
        signal: new AbortController().signal,
        directory: project,
        workingDirectories: [project],
        sessionId: "s1",
        agent: { id: agent, name: agent },
        agentPath: [{ id: agent, name: agent }],
        callId: `call-${++calls}`,
        files,
        host: {},
        environment: { HOME: join(root, "home") },
        outputDirectory: join(root, "output"),
        progress: () => undefined,
        ...changes,
      };
    },
    async call(tool, input, context = workspace.context()) {
      const checked = tool.input?.safeParse(input) ?? { success: true, data: input };
      if (!checked.success) throw new Error(checked.error.issues.map(({ message }) => message).join("; "));
      const outcome = await tool.call(checked.data, context);
      return { text: textOf(outcome), isError: outcome.isError ?? false, outcome };
    },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
  return workspace;
}

function textOf({ content }: ToolOutcome): string {
  if (typeof content === "string") return content;
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

/** A runtime on a scripted model in a temporary project with an empty home; disposing ends and removes all of it. */
export interface SampleRuntime extends AsyncDisposable {
  readonly runtime: Runtime;
  readonly workspace: Workspace;
  readonly home: string;
  /** What the model was asked, in order. */
  readonly requests: readonly ModelRequest[];
  /** Another runtime at the same place, as after a restart. */
  restart(steps: readonly Step[], options?: RuntimeOptions): Pick<SampleRuntime, "runtime" | "requests">;
}

export async function createSampleRuntime(
  steps: readonly Step[],
  options: RuntimeOptions & { readonly modelOptions?: ScriptedModelOptions } = {},
): Promise<SampleRuntime> {
  const workspace = await createWorkspace();
  const home = join(workspace.root, "home");
  const runtimes: Runtime[] = [];
  const { modelOptions, ...shared } = options;
  const start = (script: readonly Step[], changes: RuntimeOptions) => {
    const model = createScriptedModel(script, modelOptions);
    const runtime = createRuntime({
      cwd: workspace.project,
      home,
      env: { PATH: process.env["PATH"], RETINUE_LOCAL_MODELS: "0" },
      managedDirectory: join(workspace.root, "managed"),
      model,
      settingSources: ["user", "project", "local"],
      transcripts: true,
      ...defined(shared),
      ...defined(changes),
    });
    runtimes.push(runtime);
    return { runtime, requests: model.requests };
  };
  return {
    ...start(steps, {}),
    workspace,
    home,
    restart: (script, changes = {}) => start(script, changes),
    async [Symbol.asyncDispose]() {
      for (const runtime of runtimes) await runtime[Symbol.asyncDispose]();
      await workspace[Symbol.asyncDispose]();
    },
  };
}
