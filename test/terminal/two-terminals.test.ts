import { expect, test } from "vitest";
import { afterGuard, keys, openConversation, userTexts } from "./pty-stage.ts";

test("a second terminal on the same conversation watches it live, forks it, or continues it when the first has left [CLI-1]", async () => {
  const {
    pty: first,
    again,
    provider,
  } = await openConversation(
    ["First answer.", "Second answer.", "Answer in the copy.", "Continued answer."],
    { words: ["first prompt"] },
  );
  await first.shows("First answer.");
  const second = again(["--continue"]);
  await second.shows("Another terminal has this conversation open", "1 watch", "2 fork");
  await afterGuard();
  second.type("1");
  await second.shows("> first prompt", "First answer.", "watching");
  first.type(`second prompt${keys.enter}`);
  await second.shows("> second prompt", "Second answer.");
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
  await afterGuard();
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
