import { describe, expect, test } from "vitest";
import { isTest, readProjectFiles } from "./project-files.ts";
import { readCitations } from "./read-citations.ts";
import { type Requirement, requirements } from "./requirements.ts";

interface Cited {
  readonly id: string;
  readonly where: string;
}

const citations = ["packages", "test"]
  .flatMap((folder) => readProjectFiles(folder))
  .filter(isTest)
  .flatMap(({ path, text }) =>
    readCitations(text).map((citation) => ({ ...citation, where: `${path}:${citation.line}` })),
  );
const cited = citations.flatMap(({ ids, where }) => ids.map((id) => ({ id, where })));

describe("the promises and the tests keep in step", () => {
  test("every promise that is built or partly built is cited by a test", () => {
    expect(
      uncited(requirements, cited),
      "No test proves these promises. Cite each as [ID] in the title of a test that would fail without it.",
    ).toEqual([]);
  });

  test("every citation names a promise", () => {
    expect(
      unknown(requirements, cited),
      "These ids are in no promise. Fix the id in the title, or add the promise to test/requirements.ts.",
    ).toEqual([]);
  });

  test("no citation names a promise that is still to be built", () => {
    expect(
      early(requirements, cited),
      "These promises are marked not-yet. If the test proves them, mark them built or partly in test/requirements.ts.",
    ).toEqual([]);
  });

  test("a bracket with ids holds nothing but ids and commas", () => {
    expect(
      citations.filter(({ isGarbled }) => isGarbled).map(({ title, where }) => `${where} ${title}`),
      "Write every id out: [DEF-3, DEF-4].",
    ).toEqual([]);
  });
});

describe("the list of promises", () => {
  test("numbers each section from 1 without gaps or repeats", () => {
    const sections = Map.groupBy(requirements, ({ id }) => id.slice(0, 3));
    for (const [section, entries] of sections) {
      expect(entries.map(({ id }) => id)).toEqual(entries.map((_, index) => `${section}-${index + 1}`));
    }
    expect([...sections.keys()].join(" ")).toBe(
      "DEF SCP BLT TLS MDL PRM HKS SKL MEM SPN AGT TSK BGR TRN CMP LIM MCP TEA CLI SDK DRP CLU APR RPL OTL STU " +
        "VRF BIL WFL PRT FRN NST MRG PUB",
    );
  });

  test("says what is missing wherever a promise is only partly built", () => {
    const partly = requirements.filter(({ state }) => state === "partly");
    expect(partly.filter(({ note }) => note === undefined || note === "")).toEqual([]);
  });
});

describe("the comparison itself", () => {
  const promises: Requirement[] = [
    { id: "DEF-1", title: "", state: "built" },
    { id: "DEF-2", title: "", state: "partly", note: "" },
    { id: "DEF-3", title: "", state: "not-yet" },
  ];

  test("misses what no test cites", () => {
    expect(uncited(promises, [{ id: "DEF-2", where: "a" }])).toEqual(["DEF-1"]);
  });

  test("sees ids that no promise has", () => {
    expect(unknown(promises, [{ id: "DEF-9", where: "a:1" }])).toEqual(["DEF-9 at a:1"]);
  });

  test("sees citations that come too early", () => {
    expect(early(promises, [{ id: "DEF-3", where: "a:1" }])).toEqual(["DEF-3 at a:1"]);
  });
});

function uncited(promises: readonly Requirement[], found: readonly Cited[]): string[] {
  const ids = new Set(found.map(({ id }) => id));
  return promises.filter(({ id, state }) => state !== "not-yet" && !ids.has(id)).map(({ id }) => id);
}

function unknown(promises: readonly Requirement[], found: readonly Cited[]): string[] {
  const ids = new Set(promises.map(({ id }) => id));
  return found.filter(({ id }) => !ids.has(id)).map(({ id, where }) => `${id} at ${where}`);
}

function early(promises: readonly Requirement[], found: readonly Cited[]): string[] {
  const ids = new Set(promises.filter(({ state }) => state === "not-yet").map(({ id }) => id));
  return found.filter(({ id }) => ids.has(id)).map(({ id, where }) => `${id} at ${where}`);
}
