import { randomBytes } from "node:crypto";
import { checks } from "@retinue/base/foundation/check-arguments.ts";
import { resultText } from "../../conversation/message.ts";
import { callTools } from "../../loop/call-tools.ts";
import type { LoopPorts } from "../../loop/loop-ports.ts";
import { specificationOf } from "../../tools/json-schema-of.ts";
import type { Tool } from "../../tools/tool.ts";

/** A tool as a loop of the program's own can offer it to its model. */
export interface LoopTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the input. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** Never rejects: what goes wrong is a result with `isError`. The signal stops the child that the call waits for. */
  call(
    input: unknown,
    options?: {
      readonly signal?: AbortSignal | undefined;
      readonly callId?: string | undefined;
      /** Called with the newest line of a call that takes a while. */
      readonly onProgress?: ((text: string) => void) | undefined;
    },
  ): Promise<LoopToolResult>;
}

export interface LoopToolResult {
  /** What the model is to read. */
  readonly text: string;
  readonly isError: boolean;
  /** The same for programs; absent when the call was refused. */
  readonly data?: unknown;
}

const childTools: readonly string[] = ["Agent", "TaskOutput", "TaskStop"];

/** A list of tools as `runtime.tools()` gives them. */
export const loopTools = checks.listOf(
  checks.shape({ name: checks.filled, call: checks.call }, ["name", "call"]),
  "tools",
);

/** The tools around children, or those named. Each call is checked, decided and passed to hooks as one of the session's own agent would be. */
export function toolsForLoops(
  ports: LoopPorts,
  over: AbortSignal,
  names: readonly string[] = childTools,
): readonly LoopTool[] {
  return ports.tools
    .filter(({ name }) => names.includes(name))
    .map((tool) => ({
      ...specificationOf(tool),
      call: (input, { signal, callId = newCallId(), onProgress } = {}) =>
        callOne(
          tool,
          { input, callId, onProgress },
          ports,
          signal === undefined ? over : AbortSignal.any([signal, over]),
        ),
    }));
}

interface LoopCall {
  readonly input: unknown;
  readonly callId: string;
  readonly onProgress: ((text: string) => void) | undefined;
}

async function callOne(
  tool: Tool,
  { input, callId, onProgress }: LoopCall,
  ports: LoopPorts,
  signal: AbortSignal,
): Promise<LoopToolResult> {
  const calls = callTools([{ type: "tool_use", id: callId, name: tool.name, input }], ports, signal);
  let step = await calls.next();
  while (step.done !== true) {
    if (step.value.type === "call-progressed") onProgress?.(step.value.text);
    step = await calls.next();
  }
  const { blocks, data } = step.value;
  const block = blocks[0];
  return {
    text: block === undefined ? "" : resultText(block.content),
    isError: block?.is_error === true,
    ...(Object.hasOwn(data, callId) ? { data: data[callId] } : {}),
  };
}

function newCallId(): string {
  return `call_${randomBytes(8).toString("hex")}`;
}
