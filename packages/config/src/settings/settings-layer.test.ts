import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readSettings, type SettingsScope, settingsScopes } from "./settings.ts";
import { mergeSettings, type SettingsLayer } from "./settings-layer.ts";

function layer(scope: SettingsScope, value: unknown, anchor = `/${scope}`): SettingsLayer {
  return {
    source: { scope, file: `${anchor}/settings.json`, anchor },
    settings: readSettings(value, { scope }).settings,
  };
}
const trusted = { trusted: true } as const;
const untrusted = { trusted: false } as const;
const texts = (rules: readonly { readonly text: string }[]) => rules.map((rule) => rule.text);

describe("putting settings together [PRM-8]", () => {
  it("takes scalars by rank, however the layers are ordered, and knows where each came from", () => {
    const merged = mergeSettings(
      [
        layer("managed", { model: "m" }),
        layer("user", { model: "u", language: "de" }),
        layer("local", { model: "l", agent: "a" }),
      ],
      trusted,
    );
    expect(merged.plain).toEqual({ model: "m", language: "de", agent: "a" });
    expect(merged.sources.get("model")?.scope).toBe("managed");
    expect(merged.sources.get("language")?.file).toBe("/user/settings.json");
  });

  it("adds lists up from user to managed without repeats, with the file of each rule", () => {
    const allow = (...rules: string[]) => ({ permissions: { allow: rules } });
    const { permissions } = mergeSettings(
      [layer("flags", allow("D", "A")), layer("project", allow("B", "A")), layer("user", allow("A"))],
      trusted,
    );
    expect(texts(permissions.allow)).toEqual(["A", "B", "D"]);
    expect(permissions.allow.map((rule) => rule.source.scope)).toEqual(["user", "project", "flags"]);
  });

  it("takes two spellings of one rule for one, but not the same path under two anchors", () => {
    const { permissions } = mergeSettings(
      [
        layer("user", { permissions: { deny: ["Bash(rm:*)", "Edit(/x)"] } }),
        layer("project", { permissions: { deny: ["Bash(rm *)", "Edit(/x)"] } }),
      ],
      trusted,
    );
    expect(texts(permissions.deny)).toEqual(["Bash(rm:*)", "Edit(/x)", "Edit(/x)"]);
  });

  it("merges objects deeply, env by name, and takes fallback models whole", () => {
    const merged = mergeSettings(
      [
        layer("user", {
          enabledPlugins: { a: true, b: true },
          env: { A: "1", B: "1" },
          fallbackModel: ["x"],
          more: { k: [1] },
        }),
        layer("local", {
          enabledPlugins: { b: false },
          env: { B: "2" },
          fallbackModel: ["y"],
          more: { k: [1, 2] },
        }),
      ],
      trusted,
    );
    expect(merged.plain).toEqual({ enabledPlugins: { a: true, b: false }, fallbackModel: ["y"] });
    expect([...merged.env]).toEqual([
      ["A", "1"],
      ["B", "2"],
    ]);
    expect(merged.extra.get("more")).toEqual({ k: [1, 2] });
    expect(merged.sources.get("enabledPlugins.a")?.scope).toBe("user");
    expect(merged.sources.get("enabledPlugins.b")?.scope).toBe("local");
    expect(merged.sources.get("env.B")?.scope).toBe("local");
  });

  it("runs a hook that is in two files once [HKS-2]", () => {
    const hooks = { hooks: { Stop: [{ hooks: [{ type: "command", command: "x" }] }] } };
    expect(mergeSettings([layer("user", hooks), layer("project", hooks)], trusted).hooks).toHaveLength(1);
  });

  it("does not let other files lengthen an organisation's list of what is permitted", () => {
    const merged = mergeSettings(
      [
        layer("user", { availableModels: ["u"] }),
        layer("managed", { availableModels: ["m"] }),
        layer("managed", { availableModels: ["n"] }),
      ],
      trusted,
    );
    expect(merged.plain.availableModels).toEqual(["m", "n"]);
  });

  it("lets an organisation rule out other people's allow rules and hooks, never their restrictions", () => {
    const own = { permissions: { allow: ["A"], deny: ["B"] }, hooks: { Stop: [{ command: "x" }] } };
    const merged = mergeSettings(
      [
        layer("user", own),
        layer("managed", { allowManagedPermissionRulesOnly: true, allowManagedHooksOnly: true }),
      ],
      trusted,
    );
    expect(merged.permissions.allow).toEqual([]);
    expect(texts(merged.permissions.deny)).toEqual(["B"]);
    expect(merged.hooks).toEqual([]);
    expect(merged.heldBack.map((held) => held.reason)).toEqual(Array(2).fill("managed-settings-forbid"));
  });

  it("lets an organisation say that only its own hosts may be reached from the sandbox", () => {
    const reaching = (...allowedDomains: string[]) => ({
      sandbox: { enabled: true, network: { allowedDomains } },
    });
    const only = { sandbox: { network: { allowManagedDomainsOnly: true, allowedDomains: ["m.test"] } } };
    const layers = [layer("user", reaching("u.test")), layer("flags", reaching("f.test"))];
    const merged = mergeSettings([...layers, layer("managed", only)], trusted);
    expect(merged.plain.sandbox).toMatchObject({ enabled: true, network: { allowedDomains: ["m.test"] } });
    expect(merged.heldBack.map(({ key, source }) => [key, source.scope])).toEqual([
      ["sandbox.network.allowedDomains", "user"],
      ["sandbox.network.allowedDomains", "flags"],
    ]);
    const own = mergeSettings([...layers, layer("user", only)], trusted).plain.sandbox?.["network"];
    expect(own).toMatchObject({ allowedDomains: expect.arrayContaining(["u.test", "f.test"]) });
  });

  it("is not fooled by keys of the object prototype", () => {
    const evil = JSON.parse('{"more": {"__proto__": {"polluted": true}}, "env": {"__proto__": "x"}}');
    const merged = mergeSettings([layer("user", evil), layer("flags", evil)], trusted);
    expect(Object.keys(merged.extra.get("more") as object)).toEqual(["__proto__"]);
    expect(({} as Record<string, unknown>)["polluted"]).toBe(undefined);
  });
});

describe("before trust [PRM-11]", () => {
  const everything = {
    permissions: {
      allow: ["Bash"],
      ask: ["Bash(git push *)"],
      deny: ["Read(./.env)"],
      additionalDirectories: ["/"],
      defaultMode: "acceptEdits",
    },
    hooks: { SessionStart: [{ hooks: [{ type: "command", command: "./evil" }] }] },
    env: { PATH: "./bin", CI: "1" },
    apiKeyHelper: "./evil",
    statusLine: { type: "command", command: "./evil" },
    enableAllProjectMcpServers: true,
    enabledMcpjsonServers: ["x"],
    model: "x/y",
    sandbox: {
      enabled: true,
      ripgrep: { command: "./evil" },
      network: { allowedDomains: ["*"], deniedDomains: ["e.com"] },
    },
    disabledMcpjsonServers: ["y"],
    unknownKey: 1,
  };

  it.each([
    "project",
    "local",
  ] as const)("%s settings restrict, and grant, run or redirect nothing", (scope) => {
    const merged = mergeSettings([layer(scope, everything)], untrusted);
    expect(texts(merged.permissions.deny)).toEqual(["Read(./.env)"]);
    expect(texts(merged.permissions.ask)).toEqual(["Bash(git push *)"]);
    expect(merged.permissions).toMatchObject({ allow: [], additionalDirectories: [] });
    expect(merged.permissions.defaultMode).toBe(undefined);
    expect(merged.hooks).toEqual([]);
    expect([...merged.env, ...merged.extra]).toEqual([]);
    expect(merged.plain).toEqual({
      disabledMcpjsonServers: ["y"],
      sandbox: { enabled: true, network: { deniedDomains: ["e.com"] } },
    });
  });

  it("lists each thing held back with its file and what it is about", () => {
    const { heldBack } = mergeSettings([layer("project", everything)], untrusted);
    expect(
      heldBack.every(
        (held) => held.reason === "folder-not-trusted" && held.source.file === "/project/settings.json",
      ),
    ).toBe(true);
    expect(heldBack.map((held) => held.key).sort()).toEqual([
      "apiKeyHelper",
      "enableAllProjectMcpServers",
      "enabledMcpjsonServers",
      "env.CI",
      "env.PATH",
      "hooks.SessionStart",
      "model",
      "permissions.additionalDirectories",
      "permissions.allow",
      "permissions.defaultMode",
      "sandbox.network.allowedDomains",
      "sandbox.ripgrep",
      "statusLine",
      "unknownKey",
    ]);
    expect(heldBack.find((held) => held.key === "hooks.SessionStart")?.detail).toBe("./evil");
  });

  it("leaves the user's, the flags' and the organisation's settings as they are", () => {
    const merged = mergeSettings([layer("user", everything)], untrusted);
    expect(merged.heldBack).toEqual([]);
    expect(merged.hooks).toHaveLength(1);
  });

  it.each([
    ["acceptEdits", "plan", "plan"],
    ["plan", "default", "plan"],
    ["default", "dontAsk", "dontAsk"],
    ["dontAsk", "acceptEdits", "dontAsk"],
  ])("with the mode %s of the user, the folder's %s gives %s", (user, project, expected) => {
    const layers = [
      layer("user", { permissions: { defaultMode: user } }),
      layer("project", { permissions: { defaultMode: project } }),
    ];
    expect(mergeSettings(layers, untrusted).permissions.defaultMode).toBe(expected);
  });
});

describe("what a repository never sets, trusted or not [PRM-11]", () => {
  it.each(["bypassPermissions", "auto"])("the mode %s", (defaultMode) => {
    for (const scope of ["project", "local"] as const) {
      const merged = mergeSettings([layer(scope, { permissions: { defaultMode } })], trusted);
      expect(merged.permissions.defaultMode).toBe(undefined);
      expect(merged.heldBack).toMatchObject([
        { key: "permissions.defaultMode", reason: "never-from-a-repository" },
      ]);
    }
    expect(
      mergeSettings([layer("user", { permissions: { defaultMode } })], trusted).permissions.defaultMode,
    ).toBe(defaultMode);
  });

  it.each([
    "CLAUDE_CONFIG_DIR",
    "NODE_OPTIONS",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "PATH",
    "Path",
    "BASH_ENV",
    "ENV",
    "PYTHONPATH",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_COUNT",
    "npm_config_script_shell",
    "BASH_FUNC_ls%%",
  ])("the variable %s", (name) => {
    const merged = mergeSettings(
      [layer("project", { env: { [name]: "x", CI: "1", GIT_AUTHOR_NAME: "a" } })],
      trusted,
    );
    expect([...merged.env.keys()]).toEqual(["CI", "GIT_AUTHOR_NAME"]);
    expect(merged.heldBack.map((held) => held.key)).toEqual([`env.${name}`]);
  });

  it.each([
    [{ sandbox: { ripgrep: { command: "./evil" } } }, "sandbox.ripgrep"],
    [{ sandbox: { ripgrep: "./evil" } }, "sandbox.ripgrep"],
    [{ sandbox: { enabled: false } }, "sandbox.enabled"],
    [{ sandbox: { excludedCommands: ["docker"] } }, "sandbox.excludedCommands"],
    [{ sandbox: { bwrapPath: "./evil" } }, "sandbox.bwrapPath"],
    [{ sandbox: { network: { httpProxyPort: 1 } } }, "sandbox.network.httpProxyPort"],
    [{ autoMemoryDirectory: "/" }, "autoMemoryDirectory"],
    [
      { permissions: { blockReadsOutsideWorkingDirectories: false } },
      "permissions.blockReadsOutsideWorkingDirectories",
    ],
    [{ disableAllHooks: true }, "disableAllHooks"],
  ])("%j", (value, key) => {
    expect(mergeSettings([layer("project", value)], trusted).heldBack.map((held) => held.key)).toEqual([key]);
  });

  it("but it grants rules, hooks and ordinary variables in a trusted folder", () => {
    const merged = mergeSettings(
      [
        layer("project", {
          permissions: { allow: ["Bash(npm test)"], defaultMode: "acceptEdits" },
          hooks: { PreToolUse: [{ command: "./check.sh" }] },
          env: { ANTHROPIC_BASE_URL: "https://gateway" },
          sandbox: { enabled: true, network: { allowedDomains: ["e.com"] } },
        }),
      ],
      trusted,
    );
    expect(merged.heldBack).toEqual([]);
    expect(merged.permissions).toMatchObject({ defaultMode: "acceptEdits" });
    expect([merged.permissions.allow, merged.hooks, [...merged.env]].map((list) => list.length)).toEqual([
      1, 1, 1,
    ]);
  });
});

describe("for any settings", () => {
  const rule = fc.constantFrom(
    "Bash",
    "Bash(ls *)",
    "Read(/x)",
    "Edit(./y)",
    "mcp__a",
    "Agent(b)",
    "Bash(rm *",
    "WebFetch(x)",
  );
  const mode = fc.constantFrom(
    "default",
    "plan",
    "acceptEdits",
    "bypassPermissions",
    "dontAsk",
    "auto",
    "delegate",
  );
  const value = fc.record(
    {
      permissions: fc.record(
        {
          allow: fc.array(rule),
          ask: fc.array(rule),
          deny: fc.array(rule),
          defaultMode: mode,
          additionalDirectories: fc.array(fc.string()),
        },
        { requiredKeys: [] },
      ),
      hooks: fc.record({ Stop: fc.array(fc.record({ command: fc.constantFrom("a", "b") })) }),
      env: fc.dictionary(fc.constantFrom("PATH", "CI", "__proto__"), fc.string()),
      model: fc.string(),
      other: fc.jsonValue(),
    },
    { requiredKeys: [] },
  );
  const scope = fc.constantFrom(...settingsScopes);
  const layers = fc.array(
    fc.tuple(scope, value).map(([where, what]) => layer(where, what)),
    { maxLength: 6 },
  );
  const order = ["plan", "dontAsk", "default", "delegate", "acceptEdits", "auto", "bypassPermissions"];

  it("adding a deny rule to any layer removes no deny rule", () => {
    fc.assert(
      fc.property(layers, scope, rule, fc.boolean(), (some, where, added, isTrusted) => {
        const before = texts(mergeSettings(some, { trusted: isTrusted }).permissions.deny);
        const more = [...some, layer(where, { permissions: { deny: [added] } })];
        expect(texts(mergeSettings(more, { trusted: isTrusted }).permissions.deny)).toEqual(
          expect.arrayContaining(before),
        );
      }),
    );
  });

  it("an untrusted folder gives no right, hook or variable that the trusted one does not give", () => {
    fc.assert(
      fc.property(layers, (some) => {
        const [wide, narrow] = [mergeSettings(some, trusted), mergeSettings(some, untrusted)];
        expect(texts(wide.permissions.allow)).toEqual(
          expect.arrayContaining(texts(narrow.permissions.allow)),
        );
        expect(wide.hooks.map((each) => each.hook)).toEqual(
          expect.arrayContaining(narrow.hooks.map((each) => each.hook)),
        );
        expect([...wide.env.keys()]).toEqual(expect.arrayContaining([...narrow.env.keys()]));
        expect(texts(narrow.permissions.deny)).toEqual(texts(wide.permissions.deny));
        expect(texts(narrow.permissions.ask)).toEqual(texts(wide.permissions.ask));
        const rank = (each: typeof wide) => order.indexOf(each.permissions.defaultMode ?? "default");
        expect(rank(narrow)).toBeLessThanOrEqual(rank(wide));
      }),
    );
  });

  it("every allow rule that is not in the result is in heldBack", () => {
    fc.assert(
      fc.property(layers, fc.boolean(), (some, isTrusted) => {
        const merged = mergeSettings(some, { trusted: isTrusted });
        const known = [
          ...texts(merged.permissions.allow),
          ...merged.heldBack.map((held) => held.detail ?? ""),
        ];
        for (const each of some)
          for (const { text } of each.settings.permissions.allow) expect(known).toContain(text);
      }),
    );
  });
});
