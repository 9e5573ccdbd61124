import { inspectingPrograms } from "./inspecting-programs.ts";
import type { ProgramSpec } from "./judgement.ts";
import { searchingPrograms } from "./searching-programs.ts";

const question = "help version";

const sums: ProgramSpec = {
  options: `b t z binary text tag zero ${question}`,
  operands: "read",
  readOnly: true,
};
const text = (options: string): ProgramSpec => ({ options, operands: "text", readOnly: true });

/** Programs that only read, with every option that is understood. What is missing here asks. */
export const readingPrograms: readonly (readonly [string, ProgramSpec])[] = [
  ...searchingPrograms,
  ...inspectingPrograms,
  [
    "ls",
    {
      options:
        "a A b B c C d D f F g G h H i I: k l L m n N o p q Q r R s S t T: u U v w: x X Z 1 all almost-all author escape " +
        "block-size: ignore-backups color? directory dired classify? file-type format: full-time " +
        "group-directories-first no-group human-readable si hide: hyperlink? indicator-style: inode ignore: kibibytes " +
        "dereference dereference-command-line dereference-command-line-symlink-to-dir numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style: " +
        `reverse recursive size sort: time: time-style: tabsize: width: context zero ${question}`,
      operands: "read",
      implicit: true,
      below: "L dereference",
      follows: "L dereference",
      readOnly: true,
    },
  ],
  [
    "cat",
    {
      options:
        "A b e E n s t T u v show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting help version",
      operands: "read",
      readOnly: true,
    },
  ],
  ["tac", { options: `b r s: before regex separator: ${question}`, operands: "read", readOnly: true }],
  ["rev", { options: "h help V version", operands: "read", readOnly: true }],
  [
    "nl",
    {
      options:
        "b: d: f: h: i: l: n: p s: v: w: body-numbering: section-delimiter: footer-numbering: header-numbering: line-increment: " +
        `join-blank-lines: number-format: no-renumber number-separator: starting-line-number: number-width: ${question}`,
      operands: "read",
      readOnly: true,
    },
  ],
  [
    "head",
    {
      options: `n: c: q v z lines: bytes: quiet silent verbose zero-terminated ${question}`,
      numeric: true,
      operands: "read",
      readOnly: true,
    },
  ],
  [
    "tail",
    {
      options:
        "n: c: f F q s: v z lines: bytes: follow? retry pid: max-unchanged-stats: quiet silent sleep-interval: verbose " +
        `zero-terminated ${question}`,
      numeric: true,
      operands: "read",
      readOnly: true,
    },
  ],
  [
    "wc",
    {
      options: `c m l L w bytes chars lines max-line-length words ${question}`,
      operands: "read",
      readOnly: true,
    },
  ],
  [
    "cut",
    {
      options:
        "b: c: d: f: n s z bytes: characters: delimiter: fields: complement only-delimited output-delimiter: zero-terminated help version",
      operands: "read",
      readOnly: true,
    },
  ],
  ["tr", text(`c C d s t complement delete squeeze-repeats truncate-set1 ${question}`)],
  [
    "paste",
    { options: `d: s z delimiters: serial zero-terminated ${question}`, operands: "read", readOnly: true },
  ],
  [
    "join",
    {
      options: `a: e: i j: o: t: v: 1: 2: z ignore-case check-order nocheck-order header zero-terminated ${question}`,
      operands: "read",
      readOnly: true,
    },
  ],
  [
    "comm",
    {
      options: `1 2 3 z check-order nocheck-order output-delimiter: total zero-terminated ${question}`,
      operands: "read",
      readOnly: true,
    },
  ],
  [
    "column",
    {
      options:
        "t s: o: c: x n: N: R: H: W: E: O: d e J table separator: output-separator: output-width: fillrows table-name: " +
        "table-columns: table-right: table-hide: table-wrap: table-noextreme: table-order: table-noheadings keep-empty-lines json l: " +
        "table-columns-limit: table-header-repeat T: table-truncate: L r: tree: i: tree-id: p: tree-parent: h help V version",
      operands: "read",
      readOnly: true,
    },
  ],
  ["fold", { options: `b s w: bytes spaces width: ${question}`, operands: "read", readOnly: true }],
  [
    "fmt",
    {
      options: `c p: s t u w: g: crown-margin prefix: split-only tagged-paragraph uniform-spacing width: goal: ${question}`,
      operands: "read",
      readOnly: true,
    },
  ],
  ["unexpand", { options: `a t: all first-only tabs: ${question}`, operands: "read", readOnly: true }],
  ["free", text("b k m g h l t w v si bytes kibi mebi gibi human lohi total wide help version")],
  ["expand", { options: `i t: initial tabs: ${question}`, operands: "read", readOnly: true }],
  [
    "stat",
    {
      options: `L f c: t dereference file-system format: printf: terse cached: ${question}`,
      operands: "read",
      readOnly: true,
    },
  ],
  [
    "du",
    {
      options:
        "0 a B: b c D d: h H k L l m P S s t: x null all apparent-size block-size: bytes total dereference-args max-depth: " +
        "human-readable inodes dereference count-links no-dereference separate-dirs si summarize threshold: time? " +
        `time-style: exclude: X:< exclude-from:< one-file-system ${question}`,
      operands: "read",
      implicit: true,
      below: "L dereference",
      follows: "L dereference",
      readOnly: true,
    },
  ],
  [
    "df",
    {
      options:
        "a B: h H i k l P t: T x: v all block-size: human-readable si inodes local no-sync output? portability total type: " +
        `print-type exclude-type: ${question}`,
      operands: "read",
      readOnly: true,
    },
  ],
  ["which", text("a s all")],
  [
    "file",
    {
      options:
        "b c E e: F: h i k l L n N 0 r brief mime mime-type mime-encoding extension keep-going dereference no-dereference " +
        "no-buffer no-pad print0 raw separator: exclude: exclude-quiet: list checking-printout apple P: parameter: help version v",
      operands: "read",
      readOnly: true,
    },
  ],
  ["basename", text(`a s: z multiple suffix: zero ${question}`)],
  ["dirname", text(`z zero ${question}`)],
  [
    "realpath",
    text(
      `e m L P q s z canonicalize-existing canonicalize-missing logical physical quiet relative-to: relative-base: strip no-symlinks zero ${question}`,
    ),
  ],
  [
    "readlink",
    text(
      `f e m n q s v z canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero ${question}`,
    ),
  ],
  ["seq", { ...text(`f: s: w format: separator: equal-width ${question}`), numeric: true }],
  ["expr", text(question)],
  ["sleep", text(question)],
  [
    "uname",
    text(
      "a s n r v m p i o all kernel-name nodename kernel-release kernel-version machine processor hardware-platform operating-system help version",
    ),
  ],
  ["arch", text(question)],
  ["whoami", text(question)],
  ["id", text(`a Z g G n r u z group groups name real user zero ${question}`)],
  ["groups", text(question)],
  ["nproc", text(`all ignore: ${question}`)],
  ["uptime", text("p s h V pretty since help version")],
  ["tty", text(`s quiet silent ${question}`)],
  ["md5sum", sums],
  ["sha1sum", sums],
  ["sha224sum", sums],
  ["sha256sum", sums],
  ["sha384sum", sums],
  ["sha512sum", sums],
  ["b2sum", { ...sums, options: `${sums.options} l: length:` }],
  [
    "cksum",
    {
      options: `a: l: z algorithm: length: tag untagged zero debug raw base64 ${question}`,
      operands: "read",
      readOnly: true,
    },
  ],
  ["base64", { options: `d i w: decode ignore-garbage wrap: ${question}`, operands: "read", readOnly: true }],
  [
    "strings",
    {
      options:
        "a d f n: t: e: o s: w U: all data print-file-name bytes: radix: encoding: output-separator: include-all-whitespace unicode: h v V help version",
      numeric: true,
      operands: "read",
      readOnly: true,
      caution: ({ operands, options }) =>
        [...operands, ...options.flatMap(({ value }) => value ?? [])].some(({ text: word }) =>
          word.startsWith("@"),
        )
          ? "strings takes more arguments from a file that is named with @"
          : undefined,
    },
  ],
  [
    "od",
    {
      options:
        "A: j: N: S: t: v w? a b c d f i l o s x address-radix: skip-bytes: read-bytes: strings? format: output-duplicates width? endian: help version",
      operands: "read",
      readOnly: true,
    },
  ],
  [
    "hexdump",
    {
      options:
        "b c C d e: n: o s: v x one-byte-octal one-byte-char canonical two-bytes-decimal two-bytes-octal two-bytes-hex format: length: skip: no-squeezing L? color? h V help version",
      operands: "read",
      readOnly: true,
    },
  ],
  [
    "xxd",
    {
      options: "a b c: C d e E g: i l: o: p s: u h v",
      letters: "none",
      optionsFirst: true,
      operands: "filter",
      maxOperands: 1,
      readOnly: true,
    },
  ],
  [
    "cmp",
    {
      options: `b i: l n: s v print-bytes ignore-initial: verbose bytes: quiet silent ${question}`,
      operands: "read",
      maxOperands: 2,
      readOnly: true,
    },
  ],
  [
    "sort",
    {
      options:
        "o:> output:> compress-program:! T:> temporary-directory:> b d f g i M h n R r V c C k: m s S: t: u z " +
        "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort " +
        "human-numeric-sort numeric-sort random-sort reverse sort: version-sort batch-size: check? debug key: merge " +
        `stable buffer-size: field-separator: parallel: unique zero-terminated files0-from:< random-source:< ${question}`,
      operands: "read",
      readOnly: true,
      caution: ({ options }) =>
        options.some(({ name }) => name === "files0-from")
          ? "sort takes the names of files from a file"
          : undefined,
    },
  ],
  [
    "uniq",
    {
      options:
        "c d D f: i s: u w: z count repeated all-repeated? skip-fields: group? ignore-case skip-chars: unique check-chars: zero-terminated help version",
      optionsFirst: true,
      operands: "filter",
      maxOperands: 1,
      readOnly: true,
    },
  ],
  [
    "date",
    {
      options:
        "s:! set:! d: date: r:< reference:< f:< file:< I? R u iso-8601? rfc-3339: rfc-email utc universal debug resolution help version",
      operands: "text",
      readOnly: true,
      caution: ({ operands }) =>
        operands.some(({ text: word, literal }) => !word.startsWith("+") || !literal)
          ? "date may set the clock"
          : undefined,
    },
  ],
  [
    "hostname",
    {
      options:
        "F:! file:! b! boot! h help V version a d f i I s alias domain fqdn ip-address all-ip-addresses short long",
      operands: "none",
      readOnly: true,
    },
  ],
];
