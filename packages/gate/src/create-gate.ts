import { canonicalToolName, toolFacts } from "@retinue/base/foundation/tool-table.ts";
import { describeRule } from "./decide.ts";
import { decideCall } from "./decide-call.ts";
import type { AllowedBy, PermissionPolicy } from "./permission-policy.ts";
import { suggestRules } from "./suggest-rules.ts";

/** A call that an agent wants to make. */
export interface GateCall {
  /** `Bash`, `Read`, `Edit`, `Write`, `Glob`, `Grep`, `WebFetch`, `mcp__server__tool`, or a name of your own. */
  readonly tool: string;
  /** The input by the field names of these tools: `command`, `file_path`, `url` … */
  readonly input: Readonly<Record<string, unknown>>;
  /** What a tool of your own does; absent means that of the tool of this name, and `execute` for unknown ones. */
  readonly effect?: "read" | "edit" | "execute" | "network" | "interact" | "spawn" | "coordinate" | undefined;
  /** Files that a tool of your own touches. */
  readonly paths?: readonly string[] | undefined;
}

export interface GateDecision {
  /** `ask`: only a person can say; show the call and the reason. */
  readonly type: "allow" | "deny" | "ask";
  readonly reason: string;
  readonly allowedBy?: AllowedBy | undefined;
  /** The rule that decided, with the file it is in. */
  readonly rule?: string | undefined;
  /** For an allowed command, what to run in its place: the same command, with everything that was judged quoted literally. */
  readonly run?: string | undefined;
  /** What `run` does differently, to be shown with the result. */
  readonly notes: readonly string[];
  /** Rules that together would have allowed this call and little more; none where no rule can. */
  readonly suggestions: readonly string[];
}

export interface GateCallOptions {
  /** The folder the call starts in; absent means the first working directory. Absolute and real. */
  readonly directory?: string | undefined;
  /** Whether a person can be asked; where not, what would be asked is denied. Absent means yes. */
  readonly attended?: boolean | undefined;
}

/** Decides about calls by one policy. */
export interface Gate {
  /** Whether a call may run, and why. Reads files and asks git what the call would touch; runs nothing of it. Never rejects. */
  decide(call: GateCall, options?: GateCallOptions): Promise<GateDecision>;
}

export function createGate(policy: PermissionPolicy): Gate {
  const [root = "/"] = policy.workingDirectories;
  return {
    async decide({ tool: name, input, effect, paths }, { directory = root, attended = true } = {}) {
      const tool = canonicalToolName(name);
      const call = {
        tool,
        effect: effect ?? toolFacts.get(tool)?.effect ?? "execute",
        input,
        ...(paths && { paths }),
      };
      const { request, type, reason, allowedBy, rule, run } = await decideCall(call, policy, {
        directory,
        attended,
      });
      return {
        type,
        reason,
        ...(allowedBy && { allowedBy }),
        ...(rule && { rule: describeRule(rule) }),
        ...(run && { run: run.command }),
        notes: run?.notes ?? [],
        suggestions: type === "allow" ? [] : suggestRules(request, policy, { anchor: root }),
      };
    },
  };
}
