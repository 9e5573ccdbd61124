import { expect, test } from "vitest";
import { createFakeHost } from "./fake-host.ts";

const question = { question: "Which colour?", header: "Colour", options: [], multiSelect: false };
const signal = new AbortController().signal;

test("[MDL-5] the fake host answers as requested and notes what it was asked", async () => {
  const host = createFakeHost({ answers: { "Which colour?": "red" } });
  expect(await host.ask?.([question], { signal })).toEqual({ "Which colour?": "red" });
  expect(host.questions).toEqual([question]);
});

test("[MDL-5] a question that was not foreseen is an error, also when it is named like something every object has", async () => {
  const host = createFakeHost();
  await expect(host.ask?.([{ ...question, question: "constructor" }], { signal })).rejects.toThrow(
    "no answer",
  );
});

test("[MDL-5] the fake host keeps the last list of steps and knows the private hosts it was given", () => {
  const host = createFakeHost({ privateHosts: ["box"] });
  host.todosChanged?.([{ content: "a", status: "pending", activeForm: "b" }]);
  expect(host.todos).toHaveLength(1);
  expect([host.mayFetchPrivate?.("box"), host.mayFetchPrivate?.("other")]).toEqual([true, false]);
});
