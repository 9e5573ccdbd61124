import { readFile } from "node:fs/promises";
import { createWorkspace, type Workspace } from "@retinue/testing/sample-runtime.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { notebookEditTool } from "./edit-tool.ts";
import { readTool } from "./read-tool.ts";

let space: Workspace;
beforeEach(async () => {
  space = await createWorkspace();
});
afterEach(() => space[Symbol.asyncDispose]());

const tool = notebookEditTool;
const notebook = `{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {"odd": 1.0},
   "source": [
    "# Title"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "sum",
   "metadata": {},
   "outputs": [
    {"output_type": "stream", "text": ["6\\n"]}
   ],
   "source": [
    "a = 1\\n",
    "a + 5"
   ]
  }
 ],
 "metadata": {"unknown": {"kept": 12345678901234567890}},
 "nbformat": 4,
 "nbformat_minor": 5
}
`;

async function given(content = notebook): Promise<void> {
  await space.write("n.ipynb", content);
  await space.call(readTool, { file_path: "n.ipynb" });
}
const edit = (input: object) => space.call(tool, { notebook_path: "n.ipynb", new_source: "", ...input });
const text = () => readFile(space.path("n.ipynb"), "utf8");

describe("NotebookEdit", () => {
  test("replaces the source of a cell, drops its outputs and leaves every other byte", async () => {
    await given();
    expect((await edit({ cell_id: "sum", new_source: "b = 2\nb" })).text).toContain(
      "Replaced cell sum (code)",
    );
    expect(await text()).toBe(
      notebook
        .replace('"a = 1\\n",\n    "a + 5"', '"b = 2\\n",\n    "b"')
        .replace('"execution_count": 3', '"execution_count": null')
        .replace(/"outputs": \[[^\]]*\]\}\n {3}\]/, '"outputs": []'),
    );
  });

  test("takes the place of a cell for its id", async () => {
    await given();
    await edit({ cell_id: "cell-0", new_source: "# New", edit_mode: "replace" });
    expect(await text()).toBe(notebook.replace("# Title", "# New"));
  });

  test("inserts after a cell or at the top, with an id of its own and the indent of the file", async () => {
    await given();
    const { outcome } = await edit({
      cell_id: "intro",
      new_source: "x\ny",
      cell_type: "code",
      edit_mode: "insert",
    });
    const { cells } = JSON.parse(await text());
    expect(cells.map((cell: { id: string }) => cell.id)).toEqual([
      "intro",
      expect.stringMatching(/^[0-9a-f]{8}$/),
      "sum",
    ]);
    expect(cells[1]).toMatchObject({
      cell_type: "code",
      source: ["x\n", "y"],
      outputs: [],
      execution_count: null,
    });
    expect(await text()).toContain('\n  {\n   "cell_type": "code",\n   "execution_count": null,');
    expect(await text()).toContain("12345678901234567890");
    expect(outcome.data).toMatchObject({ cell_id: cells[1].id, edit_mode: "insert", language: "python" });
    await edit({ new_source: "top", cell_type: "markdown", edit_mode: "insert" });
    expect(JSON.parse(await text()).cells[0]).toMatchObject({ cell_type: "markdown", source: ["top"] });
  });

  test("deletes a cell", async () => {
    await given();
    await edit({ cell_id: "intro", edit_mode: "delete" });
    expect(JSON.parse(await text()).cells).toMatchObject([{ id: "sum" }]);
    expect(await text()).toContain('"metadata": {"unknown"');
  });

  test("changes the kind of a cell, and keeps a source that is one string", async () => {
    await given(notebook.replace('[\n    "a = 1\\n",\n    "a + 5"\n   ]', '"a"'));
    await edit({ cell_id: "sum", new_source: "text", cell_type: "markdown" });
    const cell = JSON.parse(await text()).cells[1];
    expect(cell).toEqual({ cell_type: "markdown", id: "sum", metadata: {}, source: "text" });
  });

  test("an old notebook gets no ids", async () => {
    await given(notebook.replace('"nbformat_minor": 5', '"nbformat_minor": 4'));
    await edit({ new_source: "x", cell_type: "code", edit_mode: "insert" });
    expect(JSON.parse(await text()).cells[0]).not.toHaveProperty("id");
  });

  test.each([
    [{ cell_id: "nope" }, "it has intro, sum"],
    [{ cell_id: "cell-9" }, "there is no cell cell-9"],
    [{}, "cell_id must say which"],
    [{ edit_mode: "insert" }, "cell_type"],
  ])("%j is refused with a reason", async (input, reason) => {
    await given();
    expect(await edit(input)).toMatchObject({ isError: true, text: expect.stringContaining(reason) });
    expect(await text()).toBe(notebook);
  });

  test("an unread, a missing and a broken notebook are refused", async () => {
    expect((await edit({ cell_id: "x" })).text).toContain("does not exist");
    await space.write("n.ipynb", notebook);
    expect((await edit({ cell_id: "intro" })).text).toContain("not read");
    await given("{}");
    expect((await edit({ cell_id: "intro" })).text).toContain("list of cells");
  });
});
