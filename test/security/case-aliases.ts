import { isFields, type SecurityCase } from "./security-case.ts";

/** Other names under which a case may give a fact, by surface; `*` is every surface. */
const aliases: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "*": {
    managedSettings: "managed",
    user: "userSettings",
    project: "projectSettings",
    local: "localSettings",
    trusted_roots: "trustedRoots",
    hookResult: "preToolUseHook",
    hook: "preToolUseHook",
    hookOutput: "preToolUseHook",
    mcpIdentity: "mcp",
    sandboxSettings: "sandbox",
    runInBackground: "background",
  },
  subagent_tool_call: {
    definition: "agent",
    subagent: "agent",
    agentDefinition: "agent",
    spawn: "spawnInput",
    mode: "parentMode",
  },
  redirect: {
    redirect: "redirectTo",
    location: "redirectTo",
    redirectTarget: "redirectTo",
    to: "redirectTo",
    hops: "redirects",
  },
  resolve: {
    addresses: "resolvesTo",
    ips: "resolvesTo",
    dns: "resolvesTo",
    rebindsTo: "thenResolvesTo",
    dialled: "dialledAddress",
  },
  agent_load: { content: "raw", file: "raw", text: "raw", fields: "frontmatter", definition: "frontmatter" },
  transcript_path: { session: "ownSession", sessionId: "ownSession", owner: "idBelongsTo" },
  mcp_register: { server: "name", registered: "existing", servers: "existing" },
  mcp_connect: { definition: "server", config: "server", approvedDefinition: "approved" },
  hook_match: { regex: "matcher", target: "subject", value: "subject", tool_name: "toolName" },
  cli_args: { flags: "args", line: "args", words: "args", cli: "args", options: "args" },
  exec_env: { environment: "env", vars: "variables", varName: "name", variableName: "name", envVar: "name" },
  mode_enter: {
    mode: "requested",
    to: "requested",
    target: "requested",
    requestedMode: "requested",
    via: "by",
    actor: "by",
  },
  settings_load: { setting: "key", name: "key" },
  worktree: { worktree_name: "worktreeName", directory: "path" },
  include: { path: "include", target: "include", from: "file", source: "file" },
  sandbox_fs: { operation: "op", action: "op", file: "path" },
  sandbox_net: { domain: "host", hostname: "host", target: "host" },
  http_api: { auth: "authorization", token: "authorization", url: "path", listen: "bind" },
  startup_exec: { program: "command", file: "repoFile" },
};

/** A case with its facts under the names that the judges read. A name that is known already stays what it is. */
export function withKnownNames<Case extends Pick<SecurityCase, "surface" | "context">>(
  testCase: Case,
  isKnown: (surface: string, name: string) => boolean,
): Case {
  const { surface, context } = testCase;
  if (typeof surface !== "string" || !isFields(context)) return testCase;
  const nameOf = (written: string): string => {
    const plain = written.replace(/[_-]([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const known = [
      plain,
      lookUp(surface, written),
      lookUp(surface, plain),
      lookUp("*", written),
      lookUp("*", plain),
    ];
    return isKnown(surface, written)
      ? written
      : (known.find((name) => name !== undefined && isKnown(surface, name)) ?? written);
  };
  const entries = Object.entries(context).map(([name, value]) => [nameOf(name), value] as const);
  // Two facts under one name would hide one of them.
  if (new Set(entries.map(([name]) => name)).size !== entries.length) return testCase;
  return { ...testCase, context: Object.fromEntries(entries) };
}

function lookUp(surface: string, name: string): string | undefined {
  const table = Object.hasOwn(aliases, surface) ? aliases[surface] : undefined;
  return table !== undefined && Object.hasOwn(table, name) ? table[name] : undefined;
}
