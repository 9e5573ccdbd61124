/** Whether English patterns say anything about this text: mostly Latin letters, and not plainly another language. */
export function isJudgeable(text: string): boolean {
  const latin = text.match(/\p{Script=Latin}/gu)?.length ?? 0;
  const others = text.match(/(?!\p{Script=Latin})\p{L}/gu)?.length ?? 0;
  if (others > latin * 0.25) return false;
  const words = new Set(text.toLowerCase().match(/\p{L}+/gu) ?? []);
  const foreign = countOf(foreignWords, words);
  return foreign < 2 || countOf(englishWords, words) >= foreign;
}

function countOf(wanted: readonly string[], words: ReadonlySet<string>): number {
  return wanted.filter((word) => words.has(word)).length;
}

const englishWords: readonly string[] =
  "a an the and or of to for with when in on from by that this is are be use used not it you after before".split(
    " ",
  );

/** Short words of German, French, Spanish, Portuguese, Italian, Dutch and Polish that English does not have. */
const foreignWords: readonly string[] = [
  "der das und für wenn oder nicht ist eine einen nach bei mit zur zum von den wird verwenden nur prüft",
  "le les des une pour quand lorsque avec dans est sur aux utiliser et pas seulement",
  "el los las una para cuando del usar por que y sobre después código",
  "uma quando não ao depois revisa il gli della dei dopo che",
  "het een voor wanneer niet van gebruik nie dla przy lub gdy oraz",
].flatMap((line) => line.split(" "));
