import { definitionKeys } from "@retinue/config/agents/agent-definition.ts";
import { readSettings, type SettingsScope } from "@retinue/config/settings/settings.ts";
import { permissionModes } from "@retinue/gate/permission-policy.ts";
import { asSettings, fieldsOf } from "./case-settings.ts";
import {
  anything,
  either,
  fields,
  flag,
  listOf,
  number,
  oneOf,
  oneOrMore,
  record,
  recordOf,
  type Shape,
  text,
  textOrNull,
  texts,
} from "./case-shape.ts";
import { modeAskers } from "./judge-mode.ts";
import { shownFields } from "./judge-render.ts";
import { skillCallers } from "./judge-skill.ts";
import { isFields, textFields } from "./security-case.ts";

/** What of a case this adapter would not honour, each as one sentence; none where it honours all of it. */
export function complaintsAbout(testCase: unknown): readonly string[] {
  const whole = caseShape(testCase, "");
  if (whole.length > 0) return whole;
  // The shape above says that there is a surface with a shape of its own.
  const { surface, context = {} } = testCase as { readonly surface: string; readonly context?: unknown };
  return (
    contexts.get(surface)?.(context, "context") ?? [
      `surface is ${JSON.stringify(surface)}, which this adapter does not recognize`,
    ]
  );
}

/** Whether a fact of this name is one that cases of a surface have. */
export function isKnownFact(surface: string, name: string): boolean {
  const complaints = contexts.get(surface)?.({ [name]: undefined }, "context") ?? [];
  return (
    contexts.has(surface) && !complaints.some((complaint) => complaint.includes("a field that this adapter"))
  );
}

const mode = oneOf(...permissionModes);
const ruleLists = fields({ allow: texts, ask: texts, deny: texts });
const scopeNames = ["managed", "user", "project", "local"] as const;

function settingsOf(scope: SettingsScope): Shape {
  return (value, path) => {
    if (!isFields(value)) return [`${path} must be an object`];
    const { settings } = readSettings(asSettings(value), { scope });
    const extra = [...settings.extra.keys()].filter((key) => !readElsewhere.has(key));
    return [...extra, ...settings.permissions.unknownKeys].map(
      (key) => `${path}.${key} is a setting that the product does not recognize`,
    );
  };
}

/** Keys that the product reads where it uses them. */
const readElsewhere: ReadonlySet<string> = new Set(["failingHooks"]);

const permissionsOf: Shape = (value, path) => settingsOf("managed")({ permissions: value }, path);

/** Each operation with the fields it takes. */
const operations: Readonly<Record<string, Shape>> = {
  dir: fields({ op: text, path: text }),
  file: fields({ op: text, path: text, content: text, mode: number }),
  rm: fields({ op: text, path: text }),
  symlink: fields({ op: text, path: text, target: text }),
  hardlink: fields({ op: text, path: text, target: text }),
  fifo: fields({ op: text, path: text }),
  bigfile: fields({ op: text, path: text }),
  tar: fields({ op: text, path: text }),
  commit: fields({ op: text, path: text, add: text }),
  gitconfig: fields({ op: text, path: text, key: text, value: text }),
  evilrepo: fields({ op: text, path: text }),
};

const operation: Shape = (value, path) => {
  const { op } = typeof value === "object" && value !== null && "op" in value ? value : { op: undefined };
  const shape = typeof op === "string" && Object.hasOwn(operations, op) ? operations[op] : undefined;
  return shape === undefined
    ? [`${path}.op is ${JSON.stringify(op)}, an operation that this adapter does not recognize`]
    : shape(value, path);
};

const caseShape = fields({
  // For people.
  id: text,
  category: text,
  title: text,
  why: text,
  source: anything,
  kind: oneOf("bypass", "benign", "policy"),
  profile: oneOf("core", "hardened", "readonly-set", "accept-edits-fs", "executor", "sandbox"),
  difficulty: anything,
  evidence: anything,
  handout: flag,
  scored: flag,
  // What bash would do if the call were allowed, as the suite observed it: nothing to decide by.
  effect: anything,
  // What is decided, and by what.
  surface: text,
  rules: ruleLists,
  scopes: listOf(fields({ scope: oneOf(...scopeNames), permissions: permissionsOf, root: text })),
  mode,
  tool: textOrNull,
  input: anything,
  context: record,
  fs: listOf(operation),
  interactive: flag,
  trusted: flag,
  platform: oneOf("linux", "darwin", "win32"),
  cwd: text,
  additionalDirectories: texts,
  expect: oneOf("allow", "ask", "deny"),
  accept: listOf(oneOf("allow", "ask", "deny")),
});

const agentScope = oneOf("managed", "session", "project", "user", "plugin", "builtin", "built-in");
const definitionFields = Object.fromEntries(definitionKeys.map((key) => [key, anything] as const));
const agent = fields({ ...definitionFields, scope: agentScope, plugin: text, prompt: text });

const hookAnswer = fields({
  // Words that mean nothing are the product's to judge.
  permissionDecision: anything,
  permissionDecisionReason: anything,
  decision: anything,
  behavior: anything,
  hookSpecificOutput: anything,
  message: text,
  interrupt: flag,
  reason: text,
  continue: flag,
  stopReason: text,
  updatedInput: anything,
  updatedPermissions: anything,
  setMode: text,
  additionalContext: text,
  systemMessage: text,
  suppressOutput: flag,
  exitCode: number,
  stdout: text,
  stderr: text,
  // The hook takes longer than it may; with a time of its own, where that is longer than the limit.
  timeout: either(flag, number),
  timeoutMs: number,
  timedOut: flag,
  hangs: flag,
  delayMs: number,
  sleepMs: number,
  durationMs: number,
  crash: flag,
  matcher: text,
  onFailure: oneOf("continue", "block"),
  async: flag,
  scope: oneOf(...scopeNames),
});

/** One answer, a list of answers, or an object that holds the list. */
const hookAnswers = either(
  oneOrMore(hookAnswer),
  fields({ answers: listOf(hookAnswer), results: listOf(hookAnswer), hooks: listOf(hookAnswer) }),
);

/** Settings of every file that a case may bring, and who trusts the folder. */
const setup = {
  managed: settingsOf("managed"),
  userSettings: settingsOf("user"),
  projectSettings: settingsOf("project"),
  localSettings: settingsOf("local"),
  trustedRoots: texts,
};

const sandbox = fields({
  enabled: flag,
  autoAllow: flag,
  autoAllowBashIfSandboxed: flag,
  allowUnsandboxedCommands: flag,
  failIfUnavailable: flag,
  excludedCommands: texts,
  enableWeakerNestedSandbox: flag,
  isolateReadOnlyCommands: flag,
  filesystem: fields({ allowWrite: texts, denyWrite: texts, denyRead: texts, allowRead: texts }),
  network: fields({
    allowedDomains: texts,
    deniedDomains: texts,
    allowUnixSockets: texts,
    allowAllUnixSockets: flag,
    allowLocalBinding: flag,
  }),
  allowWrite: texts,
  denyWrite: texts,
  denyRead: texts,
  allowRead: texts,
  allowedDomains: texts,
  deniedDomains: texts,
  available: flag,
  supported: flag,
  installed: flag,
  works: flag,
  unavailable: flag,
});

const call = {
  ...setup,
  preToolUseHook: hookAnswers,
  preToolUseHooks: hookAnswers,
  permissionRequestHook: hookAnswers,
  permissionRequestHooks: hookAnswers,
  mcp: fields({
    server: text,
    tool: text,
    definitionHash: text,
    approvedHash: text,
    // What a server says about its tool decides nothing.
    title: text,
    description: text,
    inputSchema: anything,
    readOnlyHint: flag,
    annotations: fields({
      title: text,
      readOnlyHint: flag,
      destructiveHint: flag,
      idempotentHint: flag,
      openWorldHint: flag,
    }),
  }),
  configured: texts,
  transcripts: recordOf(fields({ type: text })),
  mainAgent: agent,
  agents: listOf(either(text, agent)),
  hostAllowsBypass: flag,
  background: flag,
  hooks: hookAnswers,
  sandbox,
};

const childCall = {
  ...call,
  parentMode: mode,
  agent,
  spawnInput: fields({
    mode,
    run_in_background: flag,
    isolation: text,
    model: text,
    effort: either(text, number),
    max_turns: number,
    subagent_type: text,
    description: text,
    prompt: text,
    name: text,
    resume: text,
  }),
  parentTools: texts,
};

const words = Object.fromEntries(textFields.map((name) => [name, text] as const));
const shownNames = Object.fromEntries(shownFields.map((name) => [name, text] as const));

/** Whatever the fields are called: each holds what is done to files between the decision and the call. */
const swaps: Shape = (value, path) =>
  fields({
    ...setup,
    path: text,
    swapPath: text,
    target: text,
    swapTo: text,
    becomes: text,
    nowSymlinkTo: text,
    ...Object.fromEntries(
      Object.entries(fieldsOf(value))
        .filter(([, entry]) => oneOrMore(operation)(entry, "").length === 0)
        .map(([key]) => [key, anything] as const),
    ),
  })(value, path);

const commandWords = Object.fromEntries(
  ["args", "argv", "arguments", "command"].map((name) => [name, either(texts, text)] as const),
);

const contexts: ReadonlyMap<string, Shape> = new Map<string, Shape>([
  ["tool_call", fields(call)],
  ["subagent_tool_call", fields(childCall)],
  [
    "skill_grant",
    fields({
      ...call,
      scope: oneOf("managed", "user", "project", "plugin"),
      name: text,
      skill: text,
      allowedTools: either(texts, text),
      disallowedTools: either(texts, text),
    }),
  ],
  ["redirect", fields({ ...call, redirectTo: oneOrMore(text), redirects: texts })],
  ["resolve", fields({ ...call, resolvesTo: texts, thenResolvesTo: texts, dialledAddress: oneOrMore(text) })],
  [
    "agent_load",
    fields({
      ...setup,
      scope: agentScope,
      frontmatter: record,
      body: text,
      plugin: text,
      raw: text,
      existing: listOf(either(text, fields({ name: text, scope: agentScope }))),
    }),
  ],
  ["memory_load", fields({ ...setup, agent, sizeBytes: number, content: text, expectTruncation: text })],
  [
    "transcript_path",
    fields({
      ownSession: text,
      idBelongsTo: text,
      transcripts: recordOf(fields({ type: text })),
      known: texts,
      knownIds: texts,
      existing: texts,
    }),
  ],
  [
    "worktree",
    fields({
      ...setup,
      name: text,
      worktree: text,
      worktreeName: text,
      slug: text,
      agentName: text,
      branch: text,
      branchName: text,
      agentId: text,
      id: text,
      path: text,
      worktreePath: text,
      scope: oneOf(...scopeNames),
      settings: record,
      location: text,
      symlinkDirectories: texts,
      baseRef: text,
      key: text,
      value: anything,
    }),
  ],
  [
    "output_file",
    fields({
      ...setup,
      task_id: text,
      taskId: text,
      agentId: text,
      id: text,
      name: text,
      target: text,
      symlinkTo: text,
      linkTo: text,
      symlink: text,
      path: text,
      file: text,
      outputFile: text,
    }),
  ],
  [
    "skill_load",
    fields({
      ...setup,
      name: text,
      scope: oneOf("managed", "user", "project", "plugin"),
      plugin: text,
      registered: flag,
      from: oneOf(...skillCallers.keys()),
    }),
  ],
  ["include", fields({ ...setup, file: text, include: text, import: text })],
  ["mcp_register", fields({ name: text, existing: texts })],
  [
    "mcp_connect",
    fields({
      ...setup,
      name: text,
      scope: oneOf(
        "managed",
        "user",
        "project",
        "local",
        "plugin",
        "flag",
        "project-agent",
        "user-agent",
        "agent",
      ),
      server: record,
      approved: record,
      rejected: flag,
      oauth: recordOf(text),
      strict: flag,
    }),
  ],
  [
    "hook_exec",
    fields({
      ...setup,
      scope: oneOf(...scopeNames, "plugin", "project-agent", "user-agent", "plugin-agent", "managed-agent"),
      event: text,
      key: text,
      value: anything,
      command: text,
      args: texts,
      template: text,
      matcher: text,
      input: record,
      timeout: number,
    }),
  ],
  [
    "hook_match",
    fields({
      matcher: text,
      pattern: text,
      subject: text,
      toolName: text,
      tool: text,
      name: text,
      event: text,
    }),
  ],
  [
    "settings_load",
    fields({ ...setup, scope: oneOf(...scopeNames, "flags", "plugin"), key: text, value: anything }),
  ],
  [
    "trust_check",
    fields({
      repo: text,
      cwd: text,
      nowSymlinkTo: text,
      trustedRoots: texts,
      persist: flag,
      // A working tree that git has made, of this repository or of the trusted one; and one that only says so.
      worktreeOf: text,
      mainRepo: text,
      worktree: flag,
      realWorktree: flag,
      gitFile: text,
      forged: flag,
    }),
  ],
  ["startup_exec", fields({ ...setup, command: either(texts, text), repoFile: text })],
  ["cli_args", fields({ ...setup, ...commandWords })],
  ["rule_parse", fields({ list: oneOf("allow", "ask", "deny"), rule: anything })],
  [
    "mode_enter",
    fields({
      managed: setup.managed,
      requested: anything,
      by: oneOf(...modeAskers.keys()),
      from: oneOf(...modeAskers.keys()),
      source: oneOf(...modeAskers.keys()),
      scope: either(oneOf(...scopeNames), agentScope),
      hostAllowsBypass: flag,
    }),
  ],
  ["agent_output", fields(words)],
  ["agent_message", fields({ ...setup, ...words, from: text, to: text })],
  ["toctou", swaps],
  [
    "sandbox_fs",
    fields({
      ...setup,
      op: oneOf("write", "read", "delete", "remove", "mkdir", "append", "symlink", "rename"),
      path: text,
      target: text,
      sandbox,
    }),
  ],
  ["sandbox_net", fields({ host: text, port: number, allowedDomains: texts, deniedDomains: texts, sandbox })],
  [
    "exec_env",
    fields({
      env: either(recordOf(either(text, number)), text),
      variables: recordOf(either(text, number)),
      name: text,
      var: text,
      variable: text,
      key: text,
      value: either(text, number),
      scope: oneOf(...scopeNames, "flags", "process", "parent"),
      trustedRoots: texts,
    }),
  ],
  ["render", fields({ ...words, ...shownNames })],
  [
    "http_api",
    fields({
      bind: text,
      authorization: textOrNull,
      path: text,
      host: text,
      origin: textOrNull,
      method: text,
      referer: text,
      contentType: text,
      cookie: text,
      port: number,
      body: anything,
      headers: recordOf(text),
    }),
  ],
]);

export const knownSurfaces: readonly string[] = [...contexts.keys()];
