import { join } from "node:path";
import type { ModelRequest } from "../model/model.ts";
import { createRuntime, type Runtime } from "../runtime/create-runtime.ts";
import type { RuntimeOptions } from "../runtime/runtime-options.ts";
import type { Step } from "./script.ts";
import { createScriptedModel, type ScriptedModelOptions } from "./scripted-model.ts";
import { createWorkspace, type Workspace } from "./workspace.ts";

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
      environment: { PATH: process.env["PATH"], RETINUE_LOCAL_MODELS: "0" },
      managedDirectory: join(workspace.root, "managed"),
      model,
      ...shared,
      ...changes,
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
