import type { Redirection } from "unbash";
import { visitParts, visitWord } from "./shell-expansions.ts";
import { toOperands } from "./shell-unit.ts";
import { markOpaque, type Scene, type Walk } from "./shell-walk-state.ts";
import { readWord, type Word } from "./shell-word.ts";

/** Notes the files that redirections open; returns the text that comes from here-documents, if it is certain. */
export function walkRedirections(walk: Walk, redirections: readonly Redirection[], scene: Scene): string[] {
  return redirections.flatMap((redirection) => {
    if (redirection.descriptor?.type === "FileDescriptorVariable")
      markOpaque(walk, "a redirection sets a variable");
    switch (redirection.type) {
      case "HereDoc":
        if (redirection.closing === undefined) markOpaque(walk, "a here-document has no end");
        visitParts(walk, redirection.body, scene);
        return redirection.delimiter?.quoted === true ? [redirection.body.text] : [];
      case "HereString": {
        if (scene.dialect === "sh") markOpaque(walk, "sh may read this syntax of bash differently");
        visitWord(walk, redirection.target, scene);
        const word = redirection.target === undefined ? undefined : readWord(redirection.target);
        return word?.literal === true ? [word.text] : [];
      }
      case "Redirect":
        visitWord(walk, redirection.target, scene);
        if (redirection.target === undefined) markOpaque(walk, "a redirection has no target");
        else noteTarget(walk, redirection.operator, readWord(redirection.target), scene);
        return [];
      default:
        markOpaque(walk, "a redirection is not understood");
        return [];
    }
  });
}

function noteTarget(walk: Walk, operator: string, word: Word, { directories }: Scene): void {
  const copies = operator === ">&" || operator === "<&";
  if (copies && word.literal && /^(?:\d+-?|-)$/.test(word.text)) return;
  if (/^\/dev\/(?:tcp|udp)\//.test(word.text) || (!word.literal && /\/dev\/(?:tcp|udp)/.test(word.text)))
    markOpaque(walk, "a redirection opens a network connection");
  const target = { ...word, pathKnown: word.pathKnown && !word.glob && !word.loose };
  if (operator.startsWith("<"))
    walk.redirects.push(...toOperands([{ word: target, use: "read" }], directories));
  if (operator !== "<" && operator !== "<&")
    walk.redirects.push(...toOperands([{ word: target, use: "write" }], directories));
}
