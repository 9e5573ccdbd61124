import { expect, test } from "vitest";
import { droppedImages } from "./dropped-images.ts";

test.each([
  ["/home/me/shot.png", ["/home/me/shot.png"]],
  ["/home/me/Screen Shot 1.png ", ["/home/me/Screen Shot 1.png"]],
  ["/home/me/Screen\\ Shot\\ \\(1\\).PNG", ["/home/me/Screen Shot (1).PNG"]],
  ["'/home/me/it is.jpeg'", ["/home/me/it is.jpeg"]],
  ['"/home/me/a b.webp"', ["/home/me/a b.webp"]],
  ["file:///home/me/a%20b.gif", ["/home/me/a b.gif"]],
  ["/a/one.png /b/two.jpg", ["/a/one.png", "/b/two.jpg"]],
  ["'/a/one two.png' /b/three.jpg", ["/a/one two.png", "/b/three.jpg"]],
  ["/home/me/notes.txt", []],
  ["look at /home/me/shot.png", []],
  ["shot.png", []],
  ["'/home/me/open.png", []],
  ["/a/one.png\nand more text", []],
  ["", []],
])("a paste of %j is the images %j [CLI-4]", (pasted, images) => {
  expect(droppedImages(pasted)).toEqual(images);
});
