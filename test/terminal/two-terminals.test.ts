import { expect, test } from "vitest";
import { keys, openConversation, userTexts } from "./pty-stage.ts";

test("a second terminal on the same conversation watches it live, an answer while it is being said, forks it, or continues it when the first has left [CLI-1]", async () => {
  const parts = Array.from({ length: 4 }, (_, at) => `part ${at} of the long text\n`);
  const {
    pty: first,
    again,
    provider,
  } = await openConversation(
    [
      "First answer.",
      "Second answer.",
      // It never ends, so whatever is seen of it is seen while it is being said.
      { text: `${parts.join("")}and more that never comes\n`, failure: "stall", after: 10 },
      "Answer in the copy.",
      "Continued answer.",
    ],
    { words: ["first prompt"], provider: { deltaSize: 10 } },
  );
  await first.shows("First answer.");
  const second = again(["--continue"]);
  await second.shows("Another terminal has this conversation open", "1 watch", "2 fork");
  await second.takesAnswers();
  second.type("1");
  await second.shows("> first prompt", "First answer.", "watching");
  first.type(`second prompt${keys.enter}`);
  await second.shows("> second prompt", "Second answer.");
  first.type(`say it slowly${keys.enter}`);
  await second.shows("> say it slowly", "part 1 of", "part 3 of");
  expect(provider.requests.at(-1)?.status).toBe("open");
  first.type(keys.escape);
  await first.shows("Interrupted");
  const shown = (await second.all()).join("\n");
  expect(parts.map((_, at) => shown.split(`part ${at} of`).length - 1)).toEqual(parts.map(() => 1));
  second.type(`mine${keys.enter}`);
  await second.shows("so it is read-only here");
  second.type(`/fork${keys.enter}`);
  await second.isMissing("watching");
  second.type(`in the copy${keys.enter}`);
  await second.shows("Answer in the copy.");
  expect(userTexts(provider)).toContain("second prompt");
  expect((await first.screen()).join("\n")).not.toContain("in the copy");

  const third = again(["--resume", "first prompt"]);
  await third.shows("1 watch");
  await third.takesAnswers();
  third.type("1");
  await third.shows("Second answer.", "watching");
  first.type("\u0004");
  await first.exited;
  await third.shows("Write a message to continue it here");
  third.type(`third prompt${keys.enter}`);
  await third.shows("Continued answer.");
  expect(userTexts(provider)).toContain("second prompt");
  expect(userTexts(provider)).not.toContain("in the copy");
});

test("a second terminal continues a conversation that the first one does not work on, and the first one says so [CLI-1]", async () => {
  const {
    pty: first,
    again,
    provider,
  } = await openConversation(["First answer.", "Second answer."], {
    words: ["first prompt"],
  });
  await first.shows("First answer.");
  const second = again(["--continue"]);
  await second.shows("Another terminal has this conversation open", "3 continue");
  await second.takesAnswers();
  second.type("3");
  await second.shows("> first prompt");
  second.type(`second prompt${keys.enter}`);
  await second.shows("Second answer.");
  first.type(`third prompt${keys.enter}`);
  await first.shows("Another process has taken over");
  expect(provider.requests).toHaveLength(2);
});
