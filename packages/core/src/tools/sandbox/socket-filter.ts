/**
 * A seccomp filter (classic BPF) that leaves a process no way to sockets outside its network namespace. Sockets that
 * have a path in the file system are not part of that namespace, so a process that can reach the one of a container
 * daemon, a session bus or a terminal multiplexer could have them act for it. Undefined for a machine it is not known for.
 */
export function socketFilter(architecture: string): Uint8Array | undefined {
  const machine = machines.get(architecture);
  return machine === undefined ? undefined : assemble(program(machine));
}

interface Machine {
  /** What the kernel calls the machine's own system calls; those of other kinds are refused altogether. */
  readonly audit: number;
  readonly socket: number;
  readonly socketpair: number;
}

/** Both store the low half of a number first, which the offsets below rely on. */
const machines: ReadonlyMap<string, Machine> = new Map([
  ["x64", { audit: 0xc000003e, socket: 41, socketpair: 53 }],
  ["arm64", { audit: 0xc00000b7, socket: 198, socketpair: 199 }],
]);

type Label = "family" | "pair" | "allow" | "refuse" | "absent";

type Line =
  | { readonly label: Label }
  | { readonly load: number }
  | { readonly mask: number }
  | { readonly equals: number; readonly jump: Label }
  | { readonly differs: number; readonly jump: Label }
  | { readonly atLeast: number; readonly jump: Label }
  | { readonly return: number };

const offsets = { call: 0, machine: 4, firstArgument: 16, secondArgument: 24 };
const [permitted, error] = [0x7fff0000, 0x00050000];
const [notPermitted, notImplemented] = [1, 38];
const [inet, inet6, netlink] = [2, 10, 16];
const stream = 1;
/** Works on sockets without the calls that are looked at here. */
const ringSetup = 425;
/** On x86, numbers from here on are a second set of the same calls. */
const secondSet = 0x40000000;

function program({ audit, socket, socketpair }: Machine): readonly Line[] {
  return [
    { load: offsets.machine },
    { differs: audit, jump: "refuse" },
    { load: offsets.call },
    { atLeast: secondSet, jump: "refuse" },
    { equals: ringSetup, jump: "absent" },
    { equals: socket, jump: "family" },
    { equals: socketpair, jump: "pair" },
    { return: permitted },
    { label: "family" },
    { load: offsets.firstArgument },
    { equals: inet, jump: "allow" },
    { equals: inet6, jump: "allow" },
    { equals: netlink, jump: "allow" },
    { return: error | notPermitted },
    // One end of a pair is connected for good, unless it is one of those that can send to any path.
    { label: "pair" },
    { load: offsets.secondArgument },
    { mask: 0xf },
    { differs: stream, jump: "refuse" },
    { label: "allow" },
    { return: permitted },
    { label: "refuse" },
    { return: error | notPermitted },
    { label: "absent" },
    { return: error | notImplemented },
  ];
}

function assemble(lines: readonly Line[]): Uint8Array {
  const labels = new Map<Label, number>();
  const instructions = lines.filter((line) => {
    if (!("label" in line)) return true;
    const before = lines.slice(0, lines.indexOf(line)).filter((other) => !("label" in other));
    labels.set(line.label, before.length);
    return false;
  });
  const bytes = new DataView(new ArrayBuffer(instructions.length * 8));
  for (const [at, line] of instructions.entries()) {
    const {
      code,
      value,
      whenTrue = 0,
      whenFalse = 0,
    } = encode(line, (label) => (labels.get(label) ?? 0) - at - 1);
    bytes.setUint16(at * 8, code, true);
    bytes.setUint8(at * 8 + 2, whenTrue);
    bytes.setUint8(at * 8 + 3, whenFalse);
    bytes.setUint32(at * 8 + 4, value, true);
  }
  return new Uint8Array(bytes.buffer);
}

interface Instruction {
  readonly code: number;
  readonly value: number;
  readonly whenTrue?: number;
  readonly whenFalse?: number;
}

function encode(line: Line, distance: (label: Label) => number): Instruction {
  if ("load" in line) return { code: 0x20, value: line.load };
  if ("mask" in line) return { code: 0x54, value: line.mask };
  if ("equals" in line) return { code: 0x15, value: line.equals, whenTrue: distance(line.jump) };
  if ("differs" in line) return { code: 0x15, value: line.differs, whenFalse: distance(line.jump) };
  if ("atLeast" in line) return { code: 0x35, value: line.atLeast, whenTrue: distance(line.jump) };
  if ("return" in line) return { code: 0x06, value: line.return >>> 0 };
  throw new TypeError("A label is not an instruction.");
}
