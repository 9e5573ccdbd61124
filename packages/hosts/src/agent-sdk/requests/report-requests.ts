import { isUtf8 } from "node:buffer";
import { open, realpath } from "node:fs/promises";
import { resolve } from "node:path";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { formatRule } from "../../../../../src/permissions.ts";
import { describeContext, describeCost } from "../answer-locally.ts";
import { refused } from "../control-channel.ts";
import {
  describeAgents,
  describeCommands,
  describeModels,
  followedVersion,
  serverStatus,
} from "../init-message.ts";
import type { OpenSdkSession } from "../open-sdk-session.ts";
import type { SdkConnection } from "../sdk-connection.ts";
import type { ControlHandler } from "./create-control-requests.ts";

/** Requests that only ask what there is, or read it again. */
export function reportRequests(options: SdkConnection): readonly (readonly [string, ControlHandler])[] {
  const { host } = options;
  return [
    [
      "get_context_usage",
      async () => {
        const opened = await host.ready();
        return { ...describeContext(opened, options.choices.model ?? opened.session.plan.model.value) };
      },
    ],
    [
      "get_usage",
      () => ({
        session: usage(options),
        subscription_type: null,
        rate_limits_available: false,
        rate_limits: null,
        behaviors: null,
      }),
    ],
    ["get_session_cost", () => ({ text: costText(options), total_cost_usd: host.totals.cost() })],
    ["get_binary_version", () => ({ version: followedVersion })],
    ["list_models", async () => ({ models: describeModels((await host.ready()).session) })],
    ["reload_skills", async () => ({ skills: describeCommands((await host.reopen()).session.skills) })],
    ["reload_plugins", async () => describePlugins(await host.reopen())],
    ["reload_output_styles", () => ({ available_output_styles: ["default"] })],
    ["read_file", (request) => readFile(request, options)],
    ["get_settings", async () => describeSettings(await host.ready(), options)],
    ["list_permission_rules", async () => ({ state: describeRules(await host.ready(), options) })],
    ["get_task_output", async ({ task_id: id }) => taskOutput(await host.ready(), id, options)],
  ];
}

function costText({ host, startedAt }: SdkConnection): string {
  return describeCost({
    totals: host.totals,
    apiMs: host.apiDurationMs(),
    wallMs: Date.now() - startedAt,
  });
}

function usage({ host, startedAt }: SdkConnection): JsonRecord {
  return {
    total_cost_usd: host.totals.cost(),
    total_api_duration_ms: host.apiDurationMs(),
    total_duration_ms: Date.now() - startedAt,
    total_lines_added: host.totals.lines().added,
    total_lines_removed: host.totals.lines().removed,
    model_usage: host.totals.modelUsage(),
  };
}

function describePlugins({ session }: OpenSdkSession): JsonRecord {
  const plugins = session.discovered.plugins.filter(({ enabled }) => enabled);
  return {
    commands: describeCommands(session.skills),
    agents: describeAgents(session),
    plugins: plugins.map(({ name, root }) => ({ name, path: root })),
    mcpServers: session.mcpServers().map(({ name, status }) => ({ name, status: serverStatus(status) })),
    error_count: 0,
  };
}

const defaultBytes = 256 * 1024;

async function readFile(
  { path, max_bytes: limit, encoding }: JsonRecord,
  { host, policy }: SdkConnection,
): Promise<JsonRecord> {
  if (typeof path !== "string" || path === "") throw refused("read_file needs a path");
  const { session } = await host.ready();
  const file = resolve(session.plan.directory, path);
  const folders = policy.apply(session.plan.policy).workingDirectories;
  if (!(await isInside(file, folders))) throw refused(`${file} is outside the working directories`);
  const max = typeof limit === "number" && limit > 0 ? Math.floor(limit) : defaultBytes;
  await using handle = await open(file, "r");
  const buffer = Buffer.alloc(max + 1);
  const { bytesRead } = await handle.read(buffer, 0, max + 1, 0);
  const bytes = buffer.subarray(0, Math.min(bytesRead, max));
  return {
    contents: bytes.toString(encoding === "base64" ? "base64" : "utf8"),
    absPath: file,
    requested_path: path,
    lossy: encoding !== "base64" && !isUtf8(bytes),
    ...(bytesRead > max ? { truncated: true } : {}),
  };
}

/** Links are followed first, so that none leads out. */
async function isInside(file: string, folders: readonly string[]): Promise<boolean> {
  const [real, ...roots] = await Promise.all(
    [file, ...folders].map((each) => realpath(each).catch(() => each)),
  );
  return roots.some((root) => real === root || real?.startsWith(`${root}/`));
}

/** What settings come to, and what of it the host has changed since; never values of variables. */
function describeSettings({ session }: OpenSdkSession, { choices, policy }: SdkConnection): JsonRecord {
  const { settings } = session.discovered.settings;
  const { env, permissions, plain } = settings;
  return {
    effective: {
      ...plain,
      env: Object.fromEntries([...env.keys()].map((name) => [name, ""])),
      permissions: { ...describePermissions(session, policy), defaultMode: permissions.defaultMode },
    },
    sources: [...settings.sources].map(([key, { scope, file }]) => ({
      key,
      source: scope,
      file,
    })),
    applied: {
      model: choices.model ?? session.plan.model.value,
      effort: choices.effort ?? session.plan.effort?.value ?? null,
      permissionMode: policy.mode() ?? session.plan.policy.mode,
    },
  };
}

type RuleLists = Readonly<Record<"allow" | "ask" | "deny", readonly string[]>>;

function describePermissions(
  { plan }: OpenSdkSession["session"],
  { apply }: Pick<SdkConnection["policy"], "apply">,
): RuleLists {
  const { allow, ask, deny } = apply(plan.policy);
  const texts = (rules: typeof allow): readonly string[] => rules.map(({ rule }) => formatRule(rule));
  return { allow: texts(allow), ask: texts(ask), deny: texts(deny) };
}

function describeRules({ session }: OpenSdkSession, { policy }: SdkConnection): JsonRecord {
  const lists = Object.entries(describePermissions(session, policy));
  return {
    rules: lists.flatMap(([behavior, rules]) => rules.map((rule) => ({ behavior, rule }))),
    workspaceDirectories: policy.apply(session.plan.policy).workingDirectories.map((path) => ({ path })),
    originalCwd: session.plan.directory,
    managedOnly: false,
  };
}

const maxOutputBytes = 1024 * 1024;

async function taskOutput(
  opened: OpenSdkSession,
  id: unknown,
  { commands }: SdkConnection,
): Promise<JsonRecord> {
  const command = typeof id === "string" ? commands.find(id) : undefined;
  const agent = typeof id === "string" ? opened.tree.get(id)?.state() : undefined;
  const file = command?.outputFile ?? (agent === undefined ? undefined : opened.outputFile(agent.id));
  if (file === undefined) throw refused(`there is no task ${JSON.stringify(id)}`);
  await using handle = await open(file, "r");
  const { size } = await handle.stat();
  const buffer = Buffer.alloc(Math.min(size, maxOutputBytes));
  const { bytesRead } = await handle.read(buffer, 0, buffer.length, size - buffer.length);
  return {
    output: buffer.subarray(0, bytesRead).toString("utf8"),
    total_bytes: size,
    truncated: size > buffer.length,
  };
}
