/** Whether a text holds a secret: plain, in other case, backwards, as hex, base64 or ROT13, spread by spaces or lines. */
export function holdsSecret(text: string, secret: string): boolean {
  const dense = text.replace(/\s+/g, "");
  const folded = [text, dense].map((each) => each.toLowerCase());
  const plain = [secret, [...secret].reverse().join(""), Buffer.from(secret).toString("hex"), rot13(secret)];
  if (plain.some((needle) => folded.some((each) => each.includes(needle.toLowerCase())))) return true;
  return base64Cores(secret).some((core) => dense.includes(core));
}

/** What base64 makes of the secret at each of the three places in a group, without the characters its surroundings change. */
function base64Cores(secret: string): readonly string[] {
  return [0, 1, 2].map((shift) => {
    const whole = Buffer.from("x".repeat(shift) + secret).toString("base64");
    const start = Math.ceil((shift * 8) / 6);
    const end = Math.floor(((shift + secret.length) * 8) / 6);
    return whole.slice(start, end);
  });
}

function rot13(text: string): string {
  return text.replace(/[a-z]/gi, (letter) => {
    const base = letter <= "Z" ? 65 : 97;
    return String.fromCharCode(((letter.charCodeAt(0) - base + 13) % 26) + base);
  });
}
