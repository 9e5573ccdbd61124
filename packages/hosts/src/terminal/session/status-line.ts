import { type ProcessResult, runProcess } from "@retinue/base/foundation/start-process.ts";
import type { TreeFacts } from "@retinue/core/kernel/agent-tree.ts";
import { sessionRecord } from "@retinue/core/kernel/session-record.ts";
import type { CliHost } from "../../shared/cli-host.ts";
import type { SessionEvent, Status } from "./terminal-session.ts";

export interface StatusLineOptions {
  readonly command: string;
  /** Cells before the text. */
  readonly padding: number;
  readonly facts: TreeFacts;
  readonly host: Pick<CliHost, "cwd" | "environment" | "version">;
  readonly report: (event: SessionEvent) => void;
  readonly now: () => number;
  /** Aborted when the terminal is closed. */
  readonly signal: AbortSignal;
}

type Settings = TreeFacts["discovered"]["settings"]["settings"];

/** Between two runs of the command. */
const pauseMs = 300;
const timeLimitMs = 5_000;
const maxBytes = 10_000;

/** What the command of the setting `statusLine` writes about the conversation: run when something has changed, one run at a time. */
export class StatusLine {
  readonly #options: StatusLineOptions;
  readonly #openedAt: number;
  readonly #closing = new AbortController();
  #status: Partial<Status> = {};
  #timer: NodeJS.Timeout | undefined;
  #lastRun = Number.NEGATIVE_INFINITY;
  #isRunning = false;
  #isStale = false;
  #hasFailed = false;

  constructor(options: StatusLineOptions) {
    this.#options = options;
    this.#openedAt = options.now();
  }

  onEvent(event: SessionEvent): void {
    if (event.type === "status-changed") {
      const { statusLine, ...others } = event.status;
      if (statusLine !== undefined) return;
      this.#status = { ...this.#status, ...others };
    } else if (event.type !== "turn-ended" && event.type !== "conversation-opened") return;
    this.#refresh();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#closing.abort();
  }

  #refresh(): void {
    this.#isStale = true;
    if (this.#isRunning || this.#timer !== undefined || this.#closing.signal.aborted) return;
    const wait = Math.max(0, this.#lastRun + pauseMs - this.#options.now());
    this.#timer = setTimeout(() => void this.#run(), wait);
  }

  async #run(): Promise<void> {
    const { command, facts, host, now, signal } = this.#options;
    this.#timer = undefined;
    this.#lastRun = now();
    this.#isRunning = true;
    this.#isStale = false;
    const input = describeConversation(facts, {
      host,
      status: this.#status,
      durationMs: now() - this.#openedAt,
    });
    const result = await runProcess({
      file: "/bin/sh",
      arguments: ["-c", command],
      directory: host.cwd,
      environment: definedOnly({
        ...host.environment,
        ...Object.fromEntries(facts.discovered.settings.settings.env),
      }),
      input: JSON.stringify(input),
      signal: AbortSignal.any([signal, this.#closing.signal]),
      timeLimitMs,
      graceMs: 500,
      maxBytes,
    });
    this.#isRunning = false;
    if (signal.aborted || this.#closing.signal.aborted) return;
    this.#show(result);
    if (this.#isStale) this.#refresh();
  }

  /** What it wrote last stays where it fails; that is reported once. */
  #show(result: ProcessResult): void {
    const { report, padding } = this.#options;
    const failure = failureOf(result);
    if (failure === undefined) {
      const [first = ""] = result.stdout.split("\n");
      const text = first.trim() === "" ? "" : `${" ".repeat(padding)}${first}`;
      report({ type: "status-changed", status: { statusLine: text } });
    } else if (!this.#hasFailed) {
      this.#hasFailed = true;
      report({
        type: "notice",
        level: "warning",
        text: `The command of the setting statusLine ${failure}. Run it by hand, with {} as its input.`,
      });
    }
  }
}

/** The command that counts; hooks that settings switch off switch it off as well, because it is one in all but name. */
export function statusLineSetting({
  plain,
  sources,
}: Pick<Settings, "plain" | "sources">): Pick<StatusLineOptions, "command" | "padding"> | undefined {
  const { statusLine, disableAllHooks = false, allowManagedHooksOnly = false } = plain;
  if (statusLine === undefined) return undefined;
  const isManaged = sources.get("statusLine.command")?.scope === "managed";
  const isOffByManager = disableAllHooks && sources.get("disableAllHooks")?.scope === "managed";
  if (isOffByManager || ((disableAllHooks || allowManagedHooksOnly) && !isManaged)) return undefined;
  return { command: statusLine.command, padding: statusLine.padding ?? 0 };
}

/** What such commands read on their input. */
export function describeConversation(
  facts: TreeFacts,
  {
    host,
    status,
    durationMs,
  }: {
    readonly host: StatusLineOptions["host"];
    readonly status: Partial<Status>;
    readonly durationMs: number;
  },
): Readonly<Record<string, unknown>> {
  const { plan, model, discovered } = facts;
  const cwd = plan.directory ?? host.cwd;
  const used = Math.round((status.contextFill ?? 0) * 100);
  return {
    hook_event_name: "Status",
    session_id: plan.sessionId,
    session_name: status.title,
    transcript_path: sessionRecord(facts).transcript,
    cwd,
    model: { id: model.id, display_name: model.id },
    workspace: { current_dir: cwd, project_dir: discovered.paths.projectRoot },
    version: host.version,
    permission_mode: status.mode,
    cost: { total_cost_usd: status.costUsd ?? 0, total_duration_ms: Math.round(durationMs) },
    context_window: {
      context_window_size: model.contextWindow,
      used_percentage: used,
      remaining_percentage: 100 - used,
    },
  };
}

function failureOf({ notStarted, timedOut, exitCode, signal, stderr }: ProcessResult): string | undefined {
  if (notStarted !== undefined) return `did not start: ${notStarted}`;
  if (timedOut) return `took longer than ${timeLimitMs / 1000} s`;
  if (exitCode === 0) return undefined;
  const why = stderr.trim().split("\n").at(-1) ?? "";
  return `ended with ${exitCode ?? signal ?? "a signal"}${why === "" ? "" : ` (${why.slice(0, 200)})`}`;
}

function definedOnly(variables: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
