import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { expandTransport, expandVariables, variablesIn } from "./expand-variables.ts";

const environment = new Map([
  ["HOME", "/home/me"],
  ["EMPTY", ""],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a value that looks like a variable
  ["TRICK", "${HOME}"],
]);
const lookup = (name: string) => environment.get(name);

describe("[MCP-1] variables in a server's configuration", () => {
  test.each([
    ["$" + "{HOME}/x", "/home/me/x", []],
    ["$" + "{NONE:-/tmp}/x", "/tmp/x", []],
    ["$" + "{HOME:-/tmp}", "/home/me", []],
    ["$" + "{EMPTY}", "", []],
    ["$" + "{NONE}", "$" + "{NONE}", ["NONE"]],
    ["$" + "{NONE:-}", "", []],
    ["$" + "{TRICK}", "$" + "{HOME}", []],
    ["$HOME and $" + "{}", "$HOME and $" + "{}", []],
    ["$" + "{user_config.key}", "$" + "{user_config.key}", ["user_config.key"]],
  ])("%s becomes %s", (text, value, missing) => {
    expect(expandVariables(text, lookup)).toEqual({ value, missing });
  });

  test("are expanded in command, arguments, folder and environment, and each missing one is reported once", () => {
    const variable = "$" + "{NONE}";
    const home = "$" + "{HOME}";
    expect(
      expandTransport(
        { type: "stdio", command: `${home}/bin/x`, args: [variable, home], env: { A: variable }, cwd: home },
        lookup,
      ),
    ).toEqual({
      value: {
        type: "stdio",
        command: "/home/me/bin/x",
        args: [variable, "/home/me"],
        env: { A: variable },
        cwd: "/home/me",
      },
      missing: ["NONE"],
    });
  });

  test("leave out a header that would be empty", () => {
    const { value } = expandTransport(
      { type: "http", url: "https://a.example", headers: { Authorization: "$" + "{NONE:-}", "X-A": "b" } },
      lookup,
    );
    expect(value).toMatchObject({ headers: { "X-A": "b" } });
    expect(value).not.toHaveProperty("headers.Authorization");
  });

  test("can be named without being read", () => {
    expect(variablesIn("$" + "{A}/$" + "{B:-c}")).toEqual(["A", "B"]);
  });

  test("never reach further than the text: without any, it stays as it is", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        fc.pre(!text.includes("$" + "{"));
        expect(expandVariables(text, () => "secret")).toEqual({ value: text, missing: [] });
      }),
    );
  });
});
