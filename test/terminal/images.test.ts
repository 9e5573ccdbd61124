import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keys, openConversation, pasted } from "./pty-stage.ts";

/** A picture of one pixel. */
const pixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const imageOf = (bytes: Buffer) => ({
  type: "image",
  source: { type: "base64", media_type: "image/png", data: bytes.toString("base64") },
});

test("an image file that is dropped on the terminal is sent with the message, also when it was queued; other paths stay text [CLI-4]", async () => {
  const held = Promise.withResolvers<void>();
  const { pty, place, provider } = await openConversation([
    async () => {
      await held.promise;
      return "First.";
    },
    "I see it.",
  ]);
  const file = join(place.cwd, "a shot.png");
  writeFileSync(file, pixel);
  await pty.shows("default");
  pty.type(`begin${keys.enter}`);
  await pty.shows("esc to interrupt");
  pty.type("look at");
  await pty.shows("> look at");
  pty.type(pasted(file.replaceAll(" ", "\\ ")));
  await pty.shows("> look at [image #1: a shot.png]");
  pty.type(`what is it?${keys.enter}`);
  await pty.shows("look at [image #1: a shot.png] what is it?  (queued");
  // Taken back and sent again, it is the same image.
  pty.type(keys.up);
  await pty.isMissing("(queued");
  pty.type(keys.enter);
  await pty.shows("(queued");
  held.resolve();
  await pty.shows("I see it.");
  const sent = provider.requests.at(-1)?.request.messages.at(-1)?.content;
  expect(sent).toContainEqual(imageOf(pixel));
  expect(JSON.stringify(sent)).toContain("look at [image #1: a shot.png] what is it?");
  await pty.isMissing("esc to interrupt");
  writeFileSync(join(place.cwd, "broken.png"), "no image");
  pty.type(pasted(join(place.cwd, "broken.png")));
  await pty.shows("broken.png is not a PNG, JPEG, GIF or WebP image.", "/broken.png");
});

test("ctrl+v takes the image of the clipboard, and says where there is none [CLI-4]", async () => {
  const { pty, place, provider, again } = await openConversation(["I see it."], {
    environment: { WAYLAND_DISPLAY: "", DISPLAY: "" },
  });
  const ctrlV = "\u0016";
  await pty.shows("default");
  pty.type(ctrlV);
  await pty.shows("there is no image in the clipboard that can be read here");
  pty.type(keys.ctrlD);
  await pty.exited;
  const programs = join(place.home, "bin");
  mkdirSync(programs);
  writeFileSync(join(programs, "wl-paste"), `#!/bin/sh\nexec cat '${join(place.cwd, "clip.png")}'\n`);
  chmodSync(join(programs, "wl-paste"), 0o755);
  writeFileSync(join(place.cwd, "clip.png"), pixel);
  const next = again([], {
    environment: { WAYLAND_DISPLAY: "wayland-0", PATH: `${programs}:${process.env["PATH"]}` },
  });
  await next.shows("default");
  next.type(ctrlV);
  await next.shows("> [image #1: clipboard]");
  next.type(`what is it?${keys.enter}`);
  await next.shows("I see it.");
  expect(provider.requests.at(-1)?.request.messages.at(-1)?.content).toContainEqual(imageOf(pixel));
});
