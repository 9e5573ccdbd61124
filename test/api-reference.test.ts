import { describe, expect, test } from "vitest";
import { apiReference } from "../scripts/api-reference.ts";
import { readProjectFile, readProjectFiles } from "./project-files.ts";

describe("the API reference", () => {
  test("is what the types say now", () => {
    const written = readProjectFiles("docs/api").map(({ path, text }) => [path, text] as const);
    expect(Object.fromEntries(written), "Run npm run docs:api.").toEqual(
      Object.fromEntries(apiReference(readProjectFile)),
    );
  });

  test("has a page for every subpath that the package exports", () => {
    const { exports } = JSON.parse(readProjectFile("package.json"));
    const subpaths = Object.keys(exports).filter((name) => !name.endsWith(".json"));
    const index = readProjectFile("docs/api/README.md");
    expect(subpaths.filter((name) => !index.includes(`\`${name.replace(".", "retinue")}\``))).toEqual([]);
  });

  test("shows a union whole, also where its comments have semicolons", () => {
    const page = readProjectFile("docs/api/retinue.md");
    const union = /### RunEvent\n[\s\S]*?```typescript\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
    expect(union).toMatch(/\{ readonly type: "run-ended"; readonly ending: RunEnding \};\n$/);
  });

  test("shows signatures without bodies, with their comments", () => {
    const page = readProjectFile("docs/api/retinue.md");
    expect(page).toMatch(/### createRuntime\n\n[^#]*```typescript\nfunction createRuntime\(.*\): \w+;\n```/);
    expect(page).toMatch(/class RetinueError extends Error \{[\s\S]*?constructor\(code: string, /);
  });
});
