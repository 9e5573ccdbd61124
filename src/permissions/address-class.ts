/** Whether a host is this machine, a local network, a cloud's metadata service, or anything else that is not the open web. */
export function isPrivateHost(host: string): boolean {
  if (host.startsWith("[")) return isPrivateAddress(host.slice(1, -1));
  const bytes = readFourBytes(host);
  if (bytes !== undefined) return isPrivateFour(bytes);
  const labels = host.split(".");
  return (
    labels.length === 1 || localNames.has(labels.at(-1) ?? "") || localNames.has(labels.slice(-2).join("."))
  );
}

/** The same for an address that a name was resolved to; what cannot be read counts as private. */
export function isPrivateAddress(address: string): boolean {
  const bytes = readFourBytes(address);
  if (bytes !== undefined) return isPrivateFour(bytes);
  const words = readEightWords(address.split("%")[0] ?? "");
  return words === undefined || isPrivateEight(words);
}

/** Names of local networks, and public ones that are made to lead to them. */
const localNames: ReadonlySet<string> = new Set(
  `localhost local internal intranet lan home corp private localdomain home.arpa
  nip.io sslip.io xip.io localtest.me lvh.me vcap.me lacolhost.com`.split(/\s+/),
);

function readFourBytes(text: string): readonly number[] | undefined {
  if (!/^\d{1,3}(?:\.\d{1,3}){3}$/.test(text)) return undefined;
  const bytes = text.split(".").map(Number);
  return bytes.every((byte) => byte <= 255) ? bytes : undefined;
}

function isPrivateFour([a = 0, b = 0, c = 0]: readonly number[]): boolean {
  if (a === 0 || a === 10 || a === 127 || a >= 224) return true;
  if (a === 100) return b >= 64 && b <= 127;
  if (a === 169) return b === 254;
  if (a === 172) return b >= 16 && b <= 31;
  if (a === 192) return b === 168 || (b === 0 && (c === 0 || c === 2)) || (b === 88 && c === 99);
  if (a === 198) return b === 18 || b === 19 || (b === 51 && c === 100);
  return a === 203 && b === 0 && c === 113;
}

function readEightWords(text: string): readonly number[] | undefined {
  const mapped = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  const bytes = mapped?.[2] === undefined ? undefined : readFourBytes(mapped[2]);
  const plain = bytes === undefined ? text : `${mapped?.[1]}${joined(bytes, 0)}:${joined(bytes, 2)}`;
  if (!/^[\da-f:]+$/i.test(plain)) return undefined;
  const [head = "", tail, ...more] = plain.split("::");
  if (more.length > 0) return undefined;
  const before = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const gap = 8 - before.length - after.length;
  if (tail === undefined ? gap !== 0 : gap < 1) return undefined;
  const words = [...before, ...Array<string>(Math.max(gap, 0)).fill("0"), ...after].map((word) =>
    Number.parseInt(word, 16),
  );
  return words.every((word) => word >= 0 && word <= 0xffff) ? words : undefined;
}

function joined(bytes: readonly number[], at: number): string {
  return (((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)).toString(16);
}

function isPrivateEight(words: readonly number[]): boolean {
  const [first = 0, second = 0] = words;
  // Loopback, unspecified, and addresses that carry four bytes inside them.
  if (words.slice(0, 5).every((word) => word === 0)) return first === 0 && isPrivateLow(words);
  if (first === 0x64 && second === 0xff9b) return isPrivateFour(fourBytes(words, 6));
  if (first === 0x2002) return isPrivateFour(fourBytes(words, 1));
  if (first === 0x2001) return second === 0 || second === 0xdb8 || (second >= 0x10 && second <= 0x2f);
  return (
    (first & 0xfe00) === 0xfc00 ||
    (first & 0xff80) === 0xfe80 ||
    (first & 0xff00) === 0xff00 ||
    first === 0x100
  );
}

function isPrivateLow(words: readonly number[]): boolean {
  const isMapped = words[5] === 0xffff || words[5] === 0;
  return !isMapped || isPrivateFour(fourBytes(words, 6)) || (words[6] === 0 && (words[7] ?? 0) <= 1);
}

function fourBytes(words: readonly number[], at: number): readonly number[] {
  return [words[at] ?? 0, words[at + 1] ?? 0].flatMap((word) => [word >> 8, word & 0xff]);
}
