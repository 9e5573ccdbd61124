import { describe, expect, it } from "vitest";
import { readWorkflowScript } from "./read-workflow-script.ts";

const meta = "export const meta = { name: 'n', description: 'd' }\n";
const problem = (text: string) => {
  const read = readWorkflowScript(text, "w.js");
  return read.type === "broken" ? read.problem : undefined;
};

describe("the first statement", () => {
  it("comments may come before it, and the body keeps its lines [WFL-1]", () => {
    const read = readWorkflowScript(
      `// a\n/* b */\nexport const meta = {\n name: 'n',\n description: \`d\`\n};\nreturn 1`,
    );
    expect(read).toMatchObject({ type: "script", meta: { name: "n", description: "d" } });
    expect(read.type === "script" && read.code.split("\n").indexOf("return 1")).toBe(6);
  });

  it.each([
    ["return 1", 1],
    ["'use strict'\nexport const meta = { name: 'n', description: 'd' }", 1],
    ["export let meta = { name: 'n', description: 'd' }", 1],
    ["export const meta = { name: 'n' }", 1],
    ["export const meta = {\n  name: '',\n description: 'd' }", 1],
    ["const x = 1\nexport const meta = { name: 'n', description: 'd' }", 1],
    ["export const meta = {\n  name: f(),\n  description: 'd' }", 2],
    ["export const meta = {\n  name: 'n', description: 'd',\n  ...other }", 3],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the script holds a template.
    ["export const meta = {\n  name: 'n', description: `${x}` }", 2],
    ["export const meta = { name: 'n',\n description: word }", 2],
    ["export const meta = { name: 'n', description: 'd' }\nexport const other = 1", 2],
    ["export const meta = { name: 'n', description: 'd' }\nimport x from 'y'", 2],
    ["export const meta = { name: 'n', description: 'd' }\nconst x: string = 'y'", 2],
  ])("is refused with its line: %j [WFL-1, WFL-2]", (text, line) => {
    expect(problem(text)).toMatchObject({ code: "workflow-broken", file: "w.js", line });
  });

  it("odd names, unknown keys and phases of a wrong type are taken [WFL-1]", () => {
    expect(
      readWorkflowScript("export const meta = { name: 'a b/../c', description: 'd', phases: 7, x: [1, -2] }"),
    ).toMatchObject({ type: "script", meta: { name: "a b/../c" } });
  });
});

describe("what makes runs differ", () => {
  it.each([
    "Date.now()",
    "Date . now ()",
    "Date['now']()",
    "new Date()",
    "new  Date",
    "Date()",
    "Math.random()",
    "Math\n.random()",
    "await import('fs')",
    "import.meta.url",
  ])("%s is refused with its line [WFL-2]", (code) => {
    expect(problem(`${meta}const a = 1\nlog(${code})`)).toMatchObject({ line: 3 });
  });

  it.each([
    "// Date.now()",
    "log('Math.random()')",
    "log(new Date(0), Date.parse('x'), Date.UTC(2020, 1))",
    "const D = Date, f = D['now']",
    "eval('1')",
  ])("%s may be written [WFL-2]", (code) => {
    expect(readWorkflowScript(`${meta}${code}`).type).toBe("script");
  });

  it("text that only a script takes for a comment hides nothing [WFL-2]", () => {
    const hidden = `${meta}let p = 1, q = 1; p = p <!--q + \`\n}); import('fs'); (async () => {\n\``;
    expect(readWorkflowScript(hidden).type).toBe("broken");
  });

  it("a script that is too long is refused [WFL-1]", () => {
    expect(problem(`${meta}//${"x".repeat(524_288)}`)?.message).toContain("524288");
  });
});
