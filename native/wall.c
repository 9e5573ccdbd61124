/*
 * Starts a program where it can read a part of the file system, change nothing, reach no network and see no other
 * process. It needs no C library, no rights and no daemon: either namespaces of its own, or Landlock with seccomp.
 *
 *   wall --mode namespaces|landlock [--shared-proc] [--cover DIR]... [--scratch DIR]... [--show PATH]...
 *        [--hide PATTERN]... [--search DIR]... [--set NAME=VALUE]... [--keep N] [--chdir DIR] -- /absolute/program [argument]...
 *
 *   --cover     is an empty folder for the program
 *   --scratch   is an empty folder that it may write to; with Landlock, a folder of the caller's that it may write to
 *   --show      can be read although it is inside a folder that is covered
 *   --hide      can neither be read nor listed; `**` is any number of folders, * ? [a-z] stay in one name
 *   --search    here the other names of hidden files are looked for, where they have some
 *
 * If anything at all cannot be set up, the program does not run: one line on stderr that begins with "retinue-wall: ", and
 * exit code 125. Otherwise the exit code, or the signal, is the program's.
 */
#include <asm/unistd.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/stat.h>
#include <linux/types.h>
#include <stddef.h>

typedef unsigned long word;
typedef __u64 u64;
typedef __u32 u32;

/* ---- system calls ---------------------------------------------------------------------------------------------- */

static inline long call6(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
#else
#error "There is no wall for this machine."
#endif
}

#define SYS1(n, a) call6(n, (long)(a), 0, 0, 0, 0, 0)
#define SYS2(n, a, b) call6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define SYS3(n, a, b, c) call6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define SYS4(n, a, b, c, d) call6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define SYS5(n, a, b, c, d, e) call6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
__asm__(".globl _start\n_start:\n  xor %ebp, %ebp\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call start\n  hlt\n");
#else
#define MACHINE AUDIT_ARCH_AARCH64
__asm__(".globl _start\n_start:\n  mov x29, #0\n  mov x30, #0\n  mov x0, sp\n  bl start\n  brk #1\n");
#endif

/* What older headers do not have. */
#ifndef __NR_mount_setattr
#define __NR_mount_setattr 442
#endif
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif
#define LAST_KNOWN_CALL 462 /* mseal; what came later is refused as if the system did not have it */
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif

enum {
  AT_CWD = -100,
  AT_NOFOLLOW = 0x100,
  AT_EMPTY = 0x1000,
  AT_ALL = 0x8000,
  RDONLY = 0,
  WRONLY = 1,
  SIG_HUP = 1,
  SIG_INT = 2,
  SIG_QUIT = 3,
  SIG_KILL = 9,
  SIG_USR1 = 10,
  SIG_USR2 = 12,
  SIG_TERM = 15,
  SIG_CHLD = 17,
  SIG_CONT = 18,
  MOUNT_RDONLY = 1,
  MOUNT_NOSUID = 2,
  MOUNT_NODEV = 4,
  MOUNT_NOEXEC = 8,
  MOUNT_REC = 16384,
  MOUNT_PRIVATE = 1 << 18,
};

/* The compiler may call these by itself. */
void *memset(void *to, int value, size_t length) {
  unsigned char *at = to;
  while (length--) *at++ = (unsigned char)value;
  return to;
}
void *memcpy(void *to, const void *from, size_t length) {
  unsigned char *at = to;
  const unsigned char *source = from;
  while (length--) *at++ = *source++;
  return to;
}

static size_t length_of(const char *text) {
  size_t length = 0;
  while (text[length]) length++;
  return length;
}
static int same(const char *one, const char *other) {
  while (*one && *one == *other) one++, other++;
  return *one == *other;
}
/* Whether a path is a folder or below it. */
static int is_in(const char *path, const char *folder) {
  size_t length = length_of(folder);
  for (size_t at = 0; at < length; at++)
    if (path[at] != folder[at]) return 0;
  return path[length] == 0 || path[length] == '/' || (length == 1 && folder[0] == '/');
}

/* ---- saying why, and giving up --------------------------------------------------------------------------------- */

static void put(const char *text) { SYS3(__NR_write, 2, text, length_of(text)); }

static void put_number(long value) {
  char digits[24], *at = digits + sizeof digits;
  *--at = 0;
  if (value == 0) *--at = '0';
  for (; value > 0; value /= 10) *--at = (char)('0' + value % 10);
  put(at);
}

__attribute__((noreturn)) static void end(int code) {
  for (;;) SYS1(__NR_exit_group, code);
}

__attribute__((noreturn)) static void fail(const char *what, const char *path, long error) {
  put("retinue-wall: ");
  put(what);
  if (path) put(" "), put(path);
  if (error < 0) put(": error "), put_number(-error);
  put("\n");
  end(125);
}

static long must(long result, const char *what, const char *path) {
  if (result < 0) fail(what, path, result);
  return result;
}

/* ---- what was asked for ---------------------------------------------------------------------------------------- */

#define MAX_LIST 4096
struct list {
  int count;
  const char *items[MAX_LIST];
};
static struct list covers, scratches, shows, hides, searches;
static int is_landlock, has_shared_proc, kept = -1;
static const char *directory = "/";
static int set_count;
static const char *settings[16];

static void add(struct list *list, const char *item) {
  if (list->count == MAX_LIST) fail("too many places are named", 0, 0);
  if (item[0] != '/') fail("this is no absolute path:", item, 0);
  list->items[list->count++] = item;
}

static char **read_options(char **at) {
  int has_mode = 0;
  for (; *at; at++) {
    if (same(*at, "--")) {
      if (!has_mode) fail("no --mode is given", 0, 0);
      if (!at[1] || at[1][0] != '/') fail("the program must be given by its absolute path", 0, 0);
      return at + 1;
    }
    if (same(*at, "--shared-proc")) {
      has_shared_proc = 1;
      continue;
    }
    const char *name = *at, *value = at[1];
    if (!value) fail("a value is missing for", name, 0);
    at++;
    if (same(name, "--mode")) {
      has_mode = 1;
      is_landlock = same(value, "landlock");
      if (!is_landlock && !same(value, "namespaces")) fail("this mode is not known:", value, 0);
    } else if (same(name, "--cover")) add(&covers, value);
    else if (same(name, "--scratch")) add(&scratches, value);
    else if (same(name, "--show")) add(&shows, value);
    else if (same(name, "--hide")) add(&hides, value);
    else if (same(name, "--search")) add(&searches, value);
    else if (same(name, "--chdir")) directory = value;
    else if (same(name, "--set") && set_count < 16) settings[set_count++] = value;
    else if (same(name, "--keep") && value[0] >= '3' && value[0] <= '9' && !value[1]) kept = value[0] - '0';
    else fail("this option is not known:", name, 0);
  }
  fail("no program is given", 0, 0);
}

/* ---- paths ------------------------------------------------------------------------------------------------------ */

/* Opens a path of which no part is a link; what was swapped for one since the caller looked is refused. */
static long open_plain(const char *path, u64 flags) {
  struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  return SYS4(__NR_openat2, AT_CWD, path, &how, sizeof how);
}

static int is_missing(long error) { return error == -ENOENT || error == -ENOTDIR; }

static int is_folder(long descriptor) {
  struct statx facts;
  must(SYS5(__NR_statx, descriptor, "", AT_EMPTY, STATX_TYPE, &facts), "a file cannot be looked at", 0);
  return (facts.stx_mode & 0170000) == 0040000;
}

static int is_covered(const char *path) {
  for (int at = 0; at < covers.count; at++)
    if (is_in(path, covers.items[at])) return 1;
  for (int at = 0; at < scratches.count; at++)
    if (is_in(path, scratches.items[at])) return 1;
  return is_in(path, "/dev");
}

static int is_shown(const char *path) {
  for (int at = 0; at < shows.count; at++)
    if (is_in(path, shows.items[at])) return 1;
  return 0;
}

#define MAX_PATH 4096

static void make_parents(const char *path, const char *below) {
  char part[MAX_PATH];
  size_t from = length_of(below), length = length_of(path);
  if (length >= MAX_PATH) fail("this path is too long:", path, 0);
  for (size_t at = 0; at <= length; at++) {
    part[at] = path[at];
    if (at <= from || path[at] != '/') continue;
    part[at] = 0;
    long made = SYS3(__NR_mkdirat, AT_CWD, part, 0755);
    if (made < 0 && made != -EEXIST) fail("a folder cannot be made:", part, made);
    part[at] = '/';
  }
}

/* ---- patterns: `**` is any number of folders, `*` and `?` stay in one name -------------------------------------- */

static const char *next_character(const char *text, u32 *value) {
  unsigned char first = (unsigned char)*text;
  int more = first < 0x80 ? 0 : first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
  u32 result = more == 0 ? first : first & (0x3fu >> more);
  const char *at = text + 1;
  for (; more > 0 && ((unsigned char)*at & 0xc0) == 0x80; more--, at++) result = result << 6 | ((unsigned char)*at & 0x3f);
  *value = result;
  return at;
}

/* `[a-z]` or `[!a]` at `pattern`; returns what follows it, or 0 where it is not closed and means itself. */
static const char *match_class(const char *pattern, const char *limit, u32 character, int *matches) {
  const char *at = pattern + 1, *close = at + 1;
  while (close < limit && *close != ']') close++;
  if (at >= limit || close >= limit) return 0;
  int negated = *at == '!' || *at == '^', found = 0;
  if (negated) at++;
  u32 before = 0;
  for (int is_first = 1; at < close; is_first = 0) {
    u32 member;
    const char *next = next_character(at, &member);
    if (member == '-' && !is_first && next < close) {
      u32 last;
      next_character(next, &last);
      found |= before <= character && character <= last;
    } else found |= member == character;
    before = member;
    at = next;
  }
  *matches = found != negated;
  return close + 1;
}

static int match_name(const char *pattern, const char *limit, const char *name) {
  const char *star = 0, *mark = 0;
  for (;;) {
    if (pattern < limit && *pattern == '*') {
      star = ++pattern;
      mark = name;
      continue;
    }
    if (!*name) {
      return pattern == limit;
    }
    u32 character, expected;
    const char *next = next_character(name, &character);
    if (pattern < limit) {
      int matches = 0;
      const char *after = *pattern == '[' ? match_class(pattern, limit, character, &matches) : 0;
      if (!after && *pattern == '?') after = pattern + 1, matches = 1;
      if (!after) {
        const char *literal = *pattern == '\\' && pattern + 1 < limit ? pattern + 1 : pattern;
        after = next_character(literal, &expected);
        matches = expected == character;
      }
      if (matches) {
        pattern = after;
        name = next;
        continue;
      }
    }
    if (!star) return 0;
    pattern = star;
    mark = next_character(mark, &character);
    name = mark;
  }
}

static int has_signs(const char *text) {
  for (; *text; text++)
    if (*text == '*' || *text == '?' || *text == '[' || *text == '\\') return 1;
  return 0;
}

/* A pattern is split into its parts; the positions that are possible in it are the bits of a word. */
#define MAX_PARTS 60
struct pattern {
  int count;
  const char *parts[MAX_PARTS + 1];
};

static const char *part_end(const char *part) {
  while (*part && *part != '/') part++;
  return part;
}
static int is_any_depth(const char *part) { return part[0] == '*' && part[1] == '*' && part_end(part) == part + 2; }

static u64 closure(const struct pattern *pattern, u64 positions) {
  for (int at = 0; at < pattern->count; at++)
    if ((positions >> at & 1) && is_any_depth(pattern->parts[at])) positions |= 1ULL << (at + 1);
  return positions;
}

static u64 step(const struct pattern *pattern, u64 positions, const char *name) {
  u64 next = 0;
  for (int at = 0; at < pattern->count; at++) {
    if (!(positions >> at & 1)) continue;
    const char *part = pattern->parts[at];
    if (is_any_depth(part)) next |= 1ULL << at;
    else if (match_name(part, part_end(part), name)) next |= 1ULL << (at + 1);
  }
  return closure(pattern, next);
}

/* ---- what is hidden: found before anything of the program runs -------------------------------------------------- */

struct hidden {
  u64 inode;
  u32 major, minor;
};
#define MAX_HIDDEN 8192
/* Of what is hidden, the files that have other names too. */
static struct hidden hidden_files[MAX_HIDDEN];
static int hidden_count;
/* With Landlock: the paths. With namespaces they are covered at once. */
static char hidden_paths[1 << 20];
static size_t hidden_used;
static const char *hidden_names[MAX_HIDDEN];
static int hidden_names_count;
static long empty_file = -1, empty_folder = -1;

static void place(long tree, long target, const char *path) {
  must(SYS5(__NR_move_mount, tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH),
       "this cannot be hidden:", path);
}

static void remember(const struct statx *facts) {
  if (facts->stx_nlink < 2) return;
  if (hidden_count == MAX_HIDDEN) fail("too many files are to be hidden", 0, 0);
  hidden_files[hidden_count++] =
      (struct hidden){.inode = facts->stx_ino, .major = facts->stx_dev_major, .minor = facts->stx_dev_minor};
}

static void remember_all(long folder, int depth);

/* Takes one file or folder away, whatever it was found as. */
static void hide(long target, const char *path) {
  struct statx facts;
  must(SYS5(__NR_statx, target, "", AT_EMPTY, STATX_TYPE | STATX_INO | STATX_NLINK, &facts), "this cannot be looked at:", path);
  int folder = (facts.stx_mode & 0170000) == 0040000;
  if (!folder) remember(&facts);
  else {
    long listing = SYS4(__NR_openat, target, ".", RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (listing >= 0) remember_all(listing, 0), SYS1(__NR_close, listing);
  }
  if (is_landlock) {
    size_t length = length_of(path) + 1;
    if (hidden_used + length > sizeof hidden_paths || hidden_names_count == MAX_HIDDEN)
      fail("too many files are to be hidden", 0, 0);
    memcpy(hidden_paths + hidden_used, path, length);
    hidden_names[hidden_names_count++] = hidden_paths + hidden_used;
    hidden_used += length;
    return;
  }
  long tree = must(SYS3(__NR_open_tree, folder ? empty_folder : empty_file, "", AT_EMPTY | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC),
                   "nothing can be put over", path);
  place(tree, target, path);
  SYS1(__NR_close, tree);
}

static void hide_path(const char *path, long parent, const char *name) {
  /* A link is not hidden itself, but what it leads to. */
  long target = SYS4(__NR_openat, parent, name, O_PATH | O_CLOEXEC, 0);
  if (target == -ENOENT || target == -ELOOP || target == -ENOTDIR || target == -EACCES) return;
  must(target, "this cannot be hidden:", path);
  if (is_landlock) {
    char link[40] = "/proc/self/fd/", real[MAX_PATH];
    char *at = link + 14, digits[12];
    int count = 0;
    for (long rest = target; rest > 0 || count == 0; rest /= 10) digits[count++] = (char)('0' + rest % 10);
    while (count > 0) *at++ = digits[--count];
    *at = 0;
    long length = SYS4(__NR_readlinkat, AT_CWD, link, real, MAX_PATH - 1);
    must(length, "this cannot be hidden:", path);
    real[length] = 0;
    hide(target, real);
  } else hide(target, path);
  SYS1(__NR_close, target);
}

struct entry {
  u64 inode;
  __s64 offset;
  unsigned short length;
  unsigned char type;
  char name[];
};
enum { TYPE_UNKNOWN = 0, TYPE_FOLDER = 4, TYPE_LINK = 10, MAX_DEPTH = 200 };

static long entries_left = 3000000;
static char walked[MAX_PATH];

/* The files of a hidden folder may have names outside it. */
static void remember_all(long folder, int depth) {
  char buffer[8192] __attribute__((aligned(8)));
  if (depth == MAX_DEPTH) fail("the folders are too deep to look for hidden files in", 0, 0);
  for (;;) {
    long size = SYS3(__NR_getdents64, folder, buffer, sizeof buffer);
    if (size <= 0) return;
    for (long at = 0; at < size;) {
      struct entry *entry = (struct entry *)(buffer + at);
      at += entry->length;
      const char *name = entry->name;
      if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]))) continue;
      if (--entries_left < 0) fail("there are too many files to look for hidden ones among", 0, 0);
      struct statx facts;
      if (entry->type == TYPE_LINK) continue;
      if (SYS5(__NR_statx, folder, name, AT_NOFOLLOW, STATX_TYPE | STATX_INO | STATX_NLINK, &facts) < 0) continue;
      if ((facts.stx_mode & 0170000) != 0040000) {
        remember(&facts);
        continue;
      }
      long inner = SYS4(__NR_openat, folder, name, RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
      if (inner >= 0) remember_all(inner, depth + 1), SYS1(__NR_close, inner);
    }
  }
}

/* Visits a folder; with a pattern hides what matches, without one the other names of what is hidden. */
static void walk(long folder, size_t length, const struct pattern *pattern, u64 positions, int depth) {
  char buffer[8192] __attribute__((aligned(8)));
  if (depth == MAX_DEPTH) fail("the folders are too deep to look for hidden files in", 0, 0);
  for (;;) {
    long size = SYS3(__NR_getdents64, folder, buffer, sizeof buffer);
    if (size == -ENOENT || size == 0) return;
    must(size, "this cannot be listed:", walked);
    for (long at = 0; at < size;) {
      struct entry *entry = (struct entry *)(buffer + at);
      at += entry->length;
      const char *name = entry->name;
      if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]))) continue;
      if (--entries_left < 0) fail("there are too many files to look for hidden ones among", 0, 0);
      size_t extra = length_of(name);
      if (length + extra + 2 > MAX_PATH) fail("a path is too long in", walked, 0);
      walked[length] = '/';
      memcpy(walked + length + 1, name, extra + 1);
      u64 next = 0;
      int is_match = 0;
      if (pattern) {
        next = step(pattern, positions, name);
        is_match = next >> pattern->count & 1;
      } else if (entry->type != TYPE_FOLDER) {
        for (int one = 0; one < hidden_count && !is_match; one++) is_match = hidden_files[one].inode == entry->inode;
        if (is_match) {
          struct statx facts;
          is_match = SYS5(__NR_statx, folder, name, AT_NOFOLLOW, STATX_INO, &facts) == 0;
          for (int one = 0; is_match && one < hidden_count; one++)
            if (hidden_files[one].inode == facts.stx_ino && hidden_files[one].major == facts.stx_dev_major &&
                hidden_files[one].minor == facts.stx_dev_minor)
              goto found;
          is_match = 0;
        found:;
        }
      }
      if (is_match) {
        hide_path(walked, folder, name);
      } else if ((entry->type == TYPE_FOLDER || entry->type == TYPE_UNKNOWN) && (!pattern || next)) {
        long inner = SYS4(__NR_openat, folder, name, RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (inner >= 0) {
          walk(inner, length + 1 + extra, pattern, next, depth + 1);
          SYS1(__NR_close, inner);
        } else if (inner != -ENOENT && inner != -ENOTDIR && inner != -EACCES && inner != -ELOOP)
          fail("this cannot be opened:", walked, inner);
      }
      walked[length] = 0;
    }
  }
}

static void walk_from(const char *root, const struct pattern *pattern) {
  size_t length = length_of(root);
  while (length > 0 && root[length - 1] == '/') length--;
  if (length + 2 > MAX_PATH) fail("this path is too long:", root, 0);
  memcpy(walked, root, length);
  walked[length] = 0;
  long folder = open_plain(length == 0 ? "/" : walked, RDONLY | O_DIRECTORY);
  if (is_missing(folder) || folder == -EACCES) return;
  must(folder, "this cannot be opened:", walked);
  walk(folder, length, pattern, pattern ? closure(pattern, 1) : 0, 0);
  SYS1(__NR_close, folder);
}

static void hide_pattern(const char *text) {
  static char base[MAX_PATH];
  static struct pattern pattern;
  size_t length = length_of(text), fixed = 0;
  if (length >= MAX_PATH) fail("this pattern is too long:", text, 0);
  if (!has_signs(text)) {
    long target = open_plain(text, O_PATH);
    if (is_missing(target) || target == -EACCES) return;
    must(target, "this cannot be hidden:", text);
    hide(target, text);
    SYS1(__NR_close, target);
    return;
  }
  pattern.count = 0;
  for (const char *part = text + 1; *part;) {
    const char *stop = part_end(part);
    int is_sign = 0;
    for (const char *at = part; at < stop; at++)
      is_sign |= *at == '*' || *at == '?' || *at == '[' || *at == '\\';
    if (pattern.count > 0 || is_sign) {
      if (pattern.count == MAX_PARTS) fail("this pattern has too many parts:", text, 0);
      pattern.parts[pattern.count++] = part;
    } else fixed = (size_t)(stop - text);
    part = *stop ? stop + 1 : stop;
  }
  memcpy(base, text, fixed);
  base[fixed] = 0;
  walk_from(base, &pattern);
}

static void hide_all(void) {
  for (int at = 0; at < hides.count; at++) hide_pattern(hides.items[at]);
  if (hidden_count == 0) return;
  for (int at = 0; at < searches.count; at++) walk_from(searches.items[at], 0);
}

/* ---- the second line: which system calls there are -------------------------------------------------------------- */

static struct sock_filter filter[400];
static int filter_length;

static void emit(unsigned short code, unsigned char yes, unsigned char no, u32 value) {
  if (filter_length == sizeof filter / sizeof *filter) fail("the filter is too long", 0, 0);
  filter[filter_length++] = (struct sock_filter){code, yes, no, value};
}
enum { LOAD = BPF_LD | BPF_W | BPF_ABS, EQUAL = BPF_JMP | BPF_JEQ | BPF_K, BITS = BPF_JMP | BPF_JSET | BPF_K };
enum { ABOVE = BPF_JMP | BPF_JGT | BPF_K, AND = BPF_ALU | BPF_AND | BPF_K, GIVE = BPF_RET | BPF_K };
#define ARGUMENT(n) (u32)(offsetof(struct seccomp_data, args) + 8 * (n))
#define REFUSED (SECCOMP_RET_ERRNO | EPERM)
#define ABSENT (SECCOMP_RET_ERRNO | ENOSYS)
#define FINE SECCOMP_RET_ALLOW

static void refuse(const short *calls, size_t count, u32 answer) {
  for (size_t at = 0; at < count; at++) {
    emit(EQUAL, 0, 1, (u32)calls[at]);
    emit(GIVE, 0, 0, answer);
  }
}
#define REFUSE(list, answer) refuse(list, sizeof list / sizeof *list, answer)

static const short absent_calls[] = {
    __NR_io_uring_setup, __NR_io_uring_enter, __NR_io_uring_register,
    __NR_clone3, /* Its flags are in memory, where no filter can look; C libraries then use clone. */
};
static const short refused_calls[] = {
    __NR_ptrace, __NR_process_vm_readv, __NR_process_vm_writev, __NR_pidfd_getfd, __NR_kcmp, __NR_process_madvise,
    __NR_mount, __NR_umount2, __NR_pivot_root, __NR_chroot, __NR_open_tree, __NR_move_mount, __NR_fsopen, __NR_fsconfig,
    __NR_fsmount, __NR_fspick, __NR_mount_setattr, __NR_unshare, __NR_setns, __NR_name_to_handle_at,
    __NR_open_by_handle_at, __NR_add_key, __NR_request_key, __NR_keyctl, __NR_bpf, __NR_perf_event_open,
    __NR_userfaultfd, __NR_fanotify_init, __NR_init_module, __NR_finit_module, __NR_delete_module, __NR_kexec_load,
    __NR_reboot, __NR_swapon, __NR_swapoff, __NR_acct, __NR_syslog, __NR_quotactl, __NR_lookup_dcookie,
    __NR_settimeofday, __NR_clock_settime, __NR_clock_adjtime, __NR_adjtimex, __NR_sethostname, __NR_setdomainname,
    __NR_move_pages, __NR_migrate_pages, __NR_vhangup,
#ifdef __NR_kexec_file_load
    __NR_kexec_file_load,
#endif
#ifdef __NR_quotactl_fd
    __NR_quotactl_fd,
#endif
#ifdef __x86_64__
    __NR_iopl, __NR_ioperm, __NR_modify_ldt, __NR_uselib, __NR__sysctl, __NR_ustat,
#endif
};
/* What namespaces and mounts that cannot be written to would have kept from. */
static const short landlock_calls[] = {
    __NR_fchmod, __NR_fchmodat, __NR_fchmodat2, __NR_fchown, __NR_fchownat, __NR_setxattr, __NR_lsetxattr, __NR_fsetxattr,
    __NR_removexattr, __NR_lremovexattr, __NR_fremovexattr, __NR_utimensat, __NR_setsid, __NR_mq_open, __NR_mq_unlink,
    __NR_shmget, __NR_shmat, __NR_shmctl, __NR_semget, __NR_semctl, __NR_semop, __NR_msgget, __NR_msgsnd, __NR_msgrcv,
    __NR_msgctl, __NR_setpriority, __NR_ioprio_set, __NR_sched_setscheduler, __NR_sched_setparam, __NR_sched_setattr,
    __NR_pidfd_send_signal,
#ifdef __x86_64__
    __NR_chmod, __NR_chown, __NR_lchown, __NR_utime, __NR_utimes, __NR_futimesat,
#endif
};
/* Where Landlock does not know signals, no process may send one by another's number. */
static const short signal_calls[] = {__NR_kill, __NR_tkill, __NR_rt_sigqueueinfo, __NR_rt_tgsigqueueinfo};

static void install_filter(int refuses_signals) {
  emit(LOAD, 0, 0, offsetof(struct seccomp_data, arch));
  emit(EQUAL, 1, 0, MACHINE);
  emit(GIVE, 0, 0, SECCOMP_RET_KILL_PROCESS);
  emit(LOAD, 0, 0, offsetof(struct seccomp_data, nr));
  emit(ABOVE, 0, 1, LAST_KNOWN_CALL); /* Also the second set of numbers on x86. */
  emit(GIVE, 0, 0, ABSENT);
  REFUSE(absent_calls, ABSENT);
  REFUSE(refused_calls, REFUSED);
  if (is_landlock) REFUSE(landlock_calls, REFUSED);
  if (refuses_signals) REFUSE(signal_calls, REFUSED);
  /* Namespaces of one's own would bring rights inside them. */
  emit(EQUAL, 0, 4, __NR_clone);
  emit(LOAD, 0, 0, ARGUMENT(0));
  emit(BITS, 0, 1, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP);
  emit(GIVE, 0, 0, REFUSED);
  emit(GIVE, 0, 0, FINE);
  /* A terminal can be asked and set, but nothing typed into it; file systems and devices are not spoken to at all. */
  emit(EQUAL, 0, 8, __NR_ioctl);
  emit(LOAD, 0, 0, ARGUMENT(1));
  emit(EQUAL, 4, 0, 0x5412); /* TIOCSTI */
  emit(EQUAL, 3, 0, 0x541c); /* TIOCLINUX */
  emit(EQUAL, 2, 0, 0x540e); /* TIOCSCTTY */
  emit(AND, 0, 0, 0xffffff00);
  emit(EQUAL, 1, 0, 0x5400);
  emit(GIVE, 0, 0, SECCOMP_RET_ERRNO | ENOTTY);
  emit(GIVE, 0, 0, FINE);
  /* Limits of others. */
  emit(EQUAL, 0, 4, __NR_prlimit64);
  emit(LOAD, 0, 0, ARGUMENT(0));
  emit(EQUAL, 1, 0, 0);
  emit(GIVE, 0, 0, REFUSED);
  emit(GIVE, 0, 0, FINE);
  /* In a network of its own a program may have the internet's sockets, which lead nowhere; never those with a path. */
  emit(EQUAL, 0, is_landlock ? 1 : 6, __NR_socket);
  if (is_landlock) emit(GIVE, 0, 0, REFUSED);
  else {
    emit(LOAD, 0, 0, ARGUMENT(0));
    emit(EQUAL, 3, 0, 2);  /* AF_INET */
    emit(EQUAL, 2, 0, 10); /* AF_INET6 */
    emit(EQUAL, 1, 0, 16); /* AF_NETLINK */
    emit(GIVE, 0, 0, REFUSED);
    emit(GIVE, 0, 0, FINE);
  }
  /* One end of a pair is connected for good, unless it is one of those that can send to any path. */
  emit(EQUAL, 0, 5, __NR_socketpair);
  emit(LOAD, 0, 0, ARGUMENT(1));
  emit(AND, 0, 0, 0xf);
  emit(EQUAL, 1, 0, 1); /* SOCK_STREAM */
  emit(GIVE, 0, 0, REFUSED);
  emit(GIVE, 0, 0, FINE);
  emit(GIVE, 0, 0, FINE);
  struct sock_fprog program = {(unsigned short)filter_length, filter};
  must(SYS5(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "rights cannot be given up", 0);
  must(SYS3(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), "system calls cannot be filtered", 0);
}

/* ---- rights ------------------------------------------------------------------------------------------------------ */

/* The superuser may go on reading what belongs to others; nobody keeps anything else. */
static void drop_rights(int is_root) {
  for (int right = 0; right <= 63; right++) {
    if (is_root && right == CAP_DAC_READ_SEARCH) continue;
    long dropped = SYS5(__NR_prctl, PR_CAPBSET_DROP, right, 0, 0, 0);
    if (dropped == -EINVAL) break;
    /* Who has no rights cannot drop them, and no program can gain any. */
    if (dropped < 0 && dropped != -EPERM) fail("rights cannot be given up", 0, dropped);
  }
  SYS5(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct had[2], data[2];
  must(SYS2(__NR_capget, &header, had), "rights cannot be looked at", 0);
  memset(data, 0, sizeof data);
  if (is_root) data[0].permitted = data[0].effective = had[0].permitted & (1u << CAP_DAC_READ_SEARCH);
  must(SYS2(__NR_capset, &header, data), "rights cannot be given up", 0);
  u64 none[2] = {0, 0};
  SYS4(__NR_prlimit64, 0, 4 /* RLIMIT_CORE */, none, 0);
}

static void close_others(void) {
  if (kept < 0) {
    must(SYS3(__NR_close_range, 3, ~0u, 0), "descriptors cannot be closed", 0);
    return;
  }
  if (kept > 3) must(SYS3(__NR_close_range, 3, kept - 1, 0), "descriptors cannot be closed", 0);
  must(SYS3(__NR_close_range, kept + 1, ~0u, 0), "descriptors cannot be closed", 0);
}

static int has_name(const char *entry, const char *setting) {
  while (*entry && *entry != '=' && *entry == *setting) entry++, setting++;
  return *entry == '=' && *setting == '=';
}

/* The caller's variables, with those that the options set. */
static char **with_settings(char **environment) {
  static char *variables[32768];
  int count = 0;
  for (; *environment; environment++) {
    int is_set = 0;
    for (int at = 0; at < set_count; at++) is_set |= has_name(*environment, settings[at]);
    if (is_set) continue;
    if (count + set_count + 1 >= 32768) fail("there are too many variables", 0, 0);
    variables[count++] = *environment;
  }
  for (int at = 0; at < set_count; at++) variables[count++] = (char *)settings[at];
  variables[count] = 0;
  return variables;
}

__attribute__((noreturn)) static void run(char **program, char **environment) {
  u64 no_signals = 0;
  must(SYS4(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &no_signals, 0, 8), "signals cannot be set", 0);
  close_others();
  long error = SYS3(__NR_execve, program[0], program, with_settings(environment));
  fail("the program cannot be started:", program[0], error);
}

/* ---- namespaces -------------------------------------------------------------------------------------------------- */

static void set_flags(long descriptor, const char *path, unsigned flags, u64 set, u64 clear) {
  struct mount_attr attributes = {.attr_set = set, .attr_clr = clear};
  must(SYS5(__NR_mount_setattr, descriptor, path, flags, &attributes, sizeof attributes), "this cannot be protected:", path);
}

static void mount_memory(const char *path, const char *options) {
  must(SYS5(__NR_mount, "tmpfs", path, "tmpfs", MOUNT_NOSUID | MOUNT_NODEV, options), "this cannot be covered:", path);
}

static void go_to(const char *path) {
  long folder = must(open_plain(path, O_PATH | O_DIRECTORY), "the program cannot start in", path);
  must(SYS1(__NR_fchdir, folder), "the program cannot start in", path);
  SYS1(__NR_close, folder);
}

static int is_there(const char *path) {
  long descriptor = open_plain(path, O_PATH | O_DIRECTORY);
  if (is_missing(descriptor) || descriptor == -ELOOP || descriptor == -EACCES) return 0;
  must(descriptor, "this cannot be covered:", path);
  SYS1(__NR_close, descriptor);
  return 1;
}

static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
enum { DEVICES = sizeof devices / sizeof *devices };

static void show_again(const char *path, long tree, const char *cover) {
  make_parents(path, cover);
  if (is_folder(tree)) {
    long made = SYS3(__NR_mkdirat, AT_CWD, path, 0755);
    if (made < 0 && made != -EEXIST) fail("a folder cannot be made:", path, made);
  } else {
    long made = SYS4(__NR_openat, AT_CWD, path, WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    must(made, "a file cannot be made:", path);
    SYS1(__NR_close, made);
  }
  must(SYS5(__NR_move_mount, tree, "", AT_CWD, path, MOVE_MOUNT_F_EMPTY_PATH), "this cannot be shown:", path);
  SYS1(__NR_close, tree);
}

/* The cover, made here, that a path lies in; `/dev` is always one. */
static const char *cover_of(const char *path) {
  for (int at = 0; at < covers.count; at++)
    if (is_in(path, covers.items[at])) return covers.items[at];
  for (int at = 0; at < scratches.count; at++)
    if (is_in(path, scratches.items[at])) return scratches.items[at];
  return "/dev";
}

/* What lies in another covered folder is covered with it. */
static void drop_inner(struct list *list) {
  for (int at = 0; at < list->count; at++) {
    const char *path = list->items[at];
    int is_inner = 0;
    for (int other = 0; other < covers.count; other++)
      is_inner |= is_in(path, covers.items[other]) && !same(path, covers.items[other]);
    for (int other = 0; other < scratches.count; other++)
      is_inner |= is_in(path, scratches.items[other]) && !same(path, scratches.items[other]);
    if (is_inner) list->items[at] = "/nowhere";
  }
}

static void build_view(void) {
  static long trees[MAX_LIST], device_trees[DEVICES];
  const char *writable = "mode=0755,size=256m,nr_inodes=65536";
  must(SYS5(__NR_mount, 0, "/", 0, MOUNT_REC | MOUNT_PRIVATE, 0), "mounts cannot be kept apart", 0);
  for (int at = 0; at < DEVICES; at++)
    device_trees[at] = SYS3(__NR_open_tree, AT_CWD, devices[at], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  for (int at = 0; at < shows.count; at++) {
    trees[at] = -1;
    if (!is_covered(shows.items[at])) continue;
    long place = open_plain(shows.items[at], O_PATH);
    if (is_missing(place) || place == -EACCES) continue;
    must(place, "this cannot be shown:", shows.items[at]);
    trees[at] = must(SYS3(__NR_open_tree, place, "", AT_EMPTY | AT_ALL | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC),
                     "this cannot be shown:", shows.items[at]);
    SYS1(__NR_close, place);
  }
  drop_inner(&covers);
  drop_inner(&scratches);
  for (int at = 0; at < covers.count; at++)
    if (is_there(covers.items[at])) mount_memory(covers.items[at], writable);
    else covers.items[at] = "/nowhere";
  for (int at = 0; at < scratches.count; at++)
    if (is_there(scratches.items[at])) mount_memory(scratches.items[at], writable);
    else scratches.items[at] = "/nowhere";
  for (int at = 0; at < shows.count; at++)
    if (trees[at] >= 0 && !is_in(shows.items[at], "/dev"))
      show_again(shows.items[at], trees[at], cover_of(shows.items[at]));
  /* From here on nothing that was there before can be written to, and no bit or device node brings rights. */
  set_flags(AT_CWD, "/", AT_ALL, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0);
  for (int at = 0; at < scratches.count; at++)
    if (!same(scratches.items[at], "/nowhere") && !is_shown(scratches.items[at]))
      set_flags(AT_CWD, scratches.items[at], 0, 0, MOUNT_ATTR_RDONLY);
  mount_memory("/dev", "mode=0755,size=1m");
  for (int at = 0; at < DEVICES; at++) {
    if (device_trees[at] < 0) continue;
    set_flags(device_trees[at], "", AT_EMPTY, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0);
    show_again(devices[at], device_trees[at], "/dev");
  }
  SYS3(__NR_symlinkat, "/proc/self/fd", AT_CWD, "/dev/fd");
  SYS3(__NR_symlinkat, "/proc/self/fd/0", AT_CWD, "/dev/stdin");
  SYS3(__NR_symlinkat, "/proc/self/fd/1", AT_CWD, "/dev/stdout");
  SYS3(__NR_symlinkat, "/proc/self/fd/2", AT_CWD, "/dev/stderr");
  must(SYS3(__NR_mkdirat, AT_CWD, "/dev/shm", 0755), "a folder cannot be made:", "/dev/shm");
  /* What is put over hidden files is kept beside the devices. */
  long made = must(SYS4(__NR_openat, AT_CWD, "/dev/.hidden", WRONLY | O_CREAT | O_CLOEXEC, 0), "a file cannot be made", 0);
  SYS1(__NR_close, made);
  must(SYS3(__NR_mkdirat, AT_CWD, "/dev/.hidden-folder", 0), "a folder cannot be made", 0);
  empty_file = must(SYS4(__NR_openat, AT_CWD, "/dev/.hidden", O_PATH | O_CLOEXEC, 0), "a file cannot be opened", 0);
  empty_folder = must(SYS4(__NR_openat, AT_CWD, "/dev/.hidden-folder", O_PATH | O_CLOEXEC, 0), "a folder cannot be opened", 0);
  mount_memory("/dev/shm", writable);
  for (int at = 0; at < shows.count; at++) {
    if (trees[at] < 0 || !is_in(shows.items[at], "/dev")) continue;
    set_flags(trees[at], "", AT_EMPTY | AT_ALL, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0);
    show_again(shows.items[at], trees[at], "/dev");
  }
  set_flags(AT_CWD, "/dev", 0, MOUNT_ATTR_RDONLY, 0);
  if (!has_shared_proc)
    must(SYS5(__NR_mount, "proc", "/proc", "proc", MOUNT_RDONLY | MOUNT_NOSUID | MOUNT_NODEV | MOUNT_NOEXEC, 0),
         "this cannot be covered:", "/proc");
  hide_all();
  go_to(directory);
}

static const u64 watched_signals = 1ULL << (SIG_TERM - 1) | 1ULL << (SIG_INT - 1) | 1ULL << (SIG_HUP - 1) |
                                   1ULL << (SIG_QUIT - 1) | 1ULL << (SIG_USR1 - 1) | 1ULL << (SIG_USR2 - 1) |
                                   1ULL << (SIG_CHLD - 1);

/* Waits for a child and passes signals on to what it stands for. */
static int wait_for(long child, long receiver) {
  for (;;) {
    int status;
    long found = SYS4(__NR_wait4, -1, &status, 1 /* WNOHANG */, 0);
    if (found == child) return status;
    if (found > 0) continue;
    if (found == -ECHILD) return 125 << 8;
    long signal = SYS4(__NR_rt_sigtimedwait, &watched_signals, 0, 0, 8);
    /* Before it has a group of its own, it is reached alone. */
    if (signal > 0 && signal != SIG_CHLD && SYS2(__NR_kill, receiver, signal) == -ESRCH && receiver < 0)
      SYS2(__NR_kill, -receiver, signal);
  }
}

/* The first process of the new namespaces: makes the view, starts the program, and takes in what it leaves behind. */
__attribute__((noreturn)) static void be_first(long go, long result, int is_root, char **program, char **environment) {
  char byte;
  must(SYS5(__NR_prctl, PR_SET_PDEATHSIG, SIG_KILL, 0, 0, 0), "the program could outlive its caller", 0);
  if (SYS3(__NR_read, go, &byte, 1) != 1) end(125);
  /* Signals to the caller's group reach this one once, through the process that waits outside. */
  must(SYS1(__NR_setsid, 0), "a session cannot be had", 0);
  build_view();
  drop_rights(is_root);
  /* Dropping rights lets the kernel forget this; and no process in here may look into this one. */
  must(SYS5(__NR_prctl, PR_SET_PDEATHSIG, SIG_KILL, 0, 0, 0), "the program could outlive its caller", 0);
  must(SYS5(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0), "the wall cannot be guarded", 0);
  install_filter(0);
  long child = must(SYS2(__NR_clone, SIG_CHLD, 0), "there is no process to be had", 0);
  if (child == 0) {
    must(SYS1(__NR_setsid, 0), "a session cannot be had", 0);
    run(program, environment);
  }
  for (int descriptor = 0; descriptor < 3; descriptor++) SYS1(__NR_close, descriptor);
  if (kept >= 0) SYS1(__NR_close, kept);
  int status = wait_for(child, -child);
  SYS3(__NR_write, result, &status, sizeof status);
  end(0);
}

/* Every id stands for itself: all that this process could map, or just its own. */
static void map_ids(long child, const char *kind, long own) {
  char path[64], text[4096], line[96];
  char *at = path;
  const char *begin = "/proc/";
  while (*begin) *at++ = *begin++;
  char digits[24];
  int count = 0;
  for (long rest = child; rest > 0; rest /= 10) digits[count++] = (char)('0' + rest % 10);
  while (count > 0) *at++ = digits[--count];
  *at++ = '/';
  char *name = at;
  for (const char *from = kind; *from;) *at++ = *from++;
  *at = 0;
  if (own == 0) {
    char mine[64] = "/proc/self/";
    memcpy(mine + 11, name, length_of(name) + 1);
    long source = SYS4(__NR_openat, AT_CWD, mine, RDONLY | O_CLOEXEC, 0), size = 0;
    if (source >= 0) {
      size = SYS3(__NR_read, source, text, sizeof text);
      SYS1(__NR_close, source);
    }
    /* Lines of inside, outside, count become inside, inside, count. */
    static char mapped[4096];
    size_t length = 0;
    long from = 0;
    while (size > 0 && from < size) {
      long numbers[3] = {0, 0, 0};
      for (int field = 0; field < 3; field++) {
        while (from < size && text[from] == ' ') from++;
        for (; from < size && text[from] >= '0' && text[from] <= '9'; from++) numbers[field] = numbers[field] * 10 + (text[from] - '0');
      }
      while (from < size && text[from] != '\n') from++;
      from++;
      for (int field = 0; field < 3; field++) {
        long value = numbers[field == 1 ? 0 : field];
        count = 0;
        do digits[count++] = (char)('0' + value % 10);
        while ((value /= 10) > 0);
        if (length + 30 > sizeof mapped) break;
        while (count > 0) mapped[length++] = digits[--count];
        mapped[length++] = field == 2 ? '\n' : ' ';
      }
    }
    long target = SYS4(__NR_openat, AT_CWD, path, WRONLY | O_CLOEXEC, 0);
    if (target >= 0 && length > 0) {
      long written = SYS3(__NR_write, target, mapped, length);
      SYS1(__NR_close, target);
      if (written == (long)length) return;
    } else if (target >= 0) SYS1(__NR_close, target);
  }
  char *out = line;
  for (int field = 0; field < 2; field++) {
    long value = own;
    count = 0;
    do digits[count++] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    while (count > 0) *out++ = digits[--count];
    *out++ = ' ';
  }
  *out++ = '1';
  *out++ = '\n';
  if (same(kind, "gid_map")) {
    memcpy(name, "setgroups", 10);
    long groups = SYS4(__NR_openat, AT_CWD, path, WRONLY | O_CLOEXEC, 0);
    if (groups >= 0) {
      SYS3(__NR_write, groups, "deny", 4);
      SYS1(__NR_close, groups);
    }
    memcpy(name, kind, length_of(kind) + 1);
  }
  long target = must(SYS4(__NR_openat, AT_CWD, path, WRONLY | O_CLOEXEC, 0), "ids cannot be mapped", 0);
  must(SYS3(__NR_write, target, line, out - line), "ids cannot be mapped", 0);
  SYS1(__NR_close, target);
}

__attribute__((noreturn)) static void enter_namespaces(char **program, char **environment) {
  int go[2], result[2];
  long user = SYS1(__NR_geteuid, 0), group = SYS1(__NR_getegid, 0);
  must(SYS2(__NR_pipe2, go, O_CLOEXEC), "there is no pipe to be had", 0);
  must(SYS2(__NR_pipe2, result, O_CLOEXEC), "there is no pipe to be had", 0);
  must(SYS4(__NR_rt_sigprocmask, 2, &watched_signals, 0, 8), "signals cannot be set", 0);
  long child = SYS2(__NR_clone,
                    CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
                        CLONE_NEWCGROUP | SIG_CHLD,
                    0);
  must(child, "the system permits no namespaces", 0);
  if (child == 0) {
    SYS1(__NR_close, go[1]);
    SYS1(__NR_close, result[0]);
    be_first(go[0], result[1], user == 0, program, environment);
  }
  SYS1(__NR_close, go[0]);
  SYS1(__NR_close, result[1]);
  map_ids(child, "uid_map", user);
  map_ids(child, "gid_map", group);
  SYS3(__NR_write, go[1], "g", 1);
  SYS1(__NR_close, go[1]);
  for (int descriptor = 0; descriptor < 2; descriptor++) SYS1(__NR_close, descriptor);
  if (kept >= 0) SYS1(__NR_close, kept);
  int first = wait_for(child, child), status = 0;
  if (SYS3(__NR_read, result[0], &status, sizeof status) != sizeof status) status = first & 0x7f ? SIG_KILL : 125 << 8;
  int signal = status & 0x7f;
  if (signal == 0) end(status >> 8 & 0xff);
  u64 no_signals = 0, none[2] = {0, 0};
  SYS4(__NR_prlimit64, 0, 4, none, 0);
  SYS4(__NR_rt_sigprocmask, 2, &no_signals, 0, 8);
  SYS2(__NR_kill, SYS1(__NR_getpid, 0), signal);
  end(128 + signal);
}

/* ---- Landlock ---------------------------------------------------------------------------------------------------- */

static long ruleset;
static const u64 reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_EXECUTE;

static void allow(long descriptor, u64 access, const char *path) {
  struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = (int)descriptor};
  must(SYS4(__NR_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0), "this cannot be allowed:", path);
}

static int is_hidden(const char *path) {
  for (int at = 0; at < hidden_names_count; at++)
    if (is_in(path, hidden_names[at])) return 1;
  return 0;
}

static int is_covered_here(const char *path) {
  if (is_shown(path)) return 0;
  return is_covered(path);
}

/* Whether below a path something is treated in another way than itself. */
static int is_mixed(const char *path) {
  for (int at = 0; at < hidden_names_count; at++)
    if (is_in(hidden_names[at], path)) return 1;
  for (int at = 0; at < covers.count; at++)
    if (is_in(covers.items[at], path) && !is_shown(covers.items[at])) return 1;
  for (int at = 0; at < shows.count; at++)
    if (is_in(shows.items[at], path) && !same(shows.items[at], path)) return 1;
  return is_in("/dev", path) || is_in("/proc", path);
}

/* Landlock only adds: what must not be read is left out, and everything beside it is named. */
static void allow_reading(char *path, size_t length, int depth) {
  char buffer[8192] __attribute__((aligned(8)));
  if (depth == MAX_DEPTH) fail("the folders are too deep", 0, 0);
  if (is_hidden(path)) return;
  int covered = is_covered_here(path);
  int mixed = is_mixed(path);
  if (covered && !mixed) return;
  long descriptor = open_plain(path, O_PATH);
  if (is_missing(descriptor) || descriptor == -EACCES || descriptor == -ELOOP) return;
  must(descriptor, "this cannot be opened:", path);
  int folder = is_folder(descriptor);
  if (!mixed) allow(descriptor, folder ? reading : reading & ~LANDLOCK_ACCESS_FS_READ_DIR, path);
  /* Names may be listed where only some files are hidden, not where a whole folder is covered. */
  else if (folder && is_shown(path)) allow(descriptor, LANDLOCK_ACCESS_FS_READ_DIR, path);
  SYS1(__NR_close, descriptor);
  if (!mixed || !folder) return;
  long listing = open_plain(path, RDONLY | O_DIRECTORY);
  if (listing < 0) return;
  for (;;) {
    long size = SYS3(__NR_getdents64, listing, buffer, sizeof buffer);
    if (size <= 0) break;
    for (long at = 0; at < size;) {
      struct entry *entry = (struct entry *)(buffer + at);
      at += entry->length;
      const char *name = entry->name;
      if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]))) continue;
      if (entry->type == TYPE_LINK) continue;
      size_t extra = length_of(name), start = path[length - 1] == '/' ? length : length + 1;
      if (start + extra + 1 > MAX_PATH) fail("a path is too long in", path, 0);
      path[start - 1] = '/';
      memcpy(path + start, name, extra + 1);
      allow_reading(path, start + extra, depth + 1);
      path[length] = 0;
    }
  }
  SYS1(__NR_close, listing);
}

__attribute__((noreturn)) static void enter_landlock(char **program, char **environment) {
  struct {
    u64 files, network, scoped;
  } attributes = {0, 0, 0};
  long version = SYS3(__NR_landlock_create_ruleset, 0, 0, LANDLOCK_CREATE_RULESET_VERSION);
  must(version, "the system has no Landlock", 0);
  if (version < 3) fail("the system's Landlock is too old, it does not know truncation", 0, 0);
  attributes.files = (1ULL << 15) - 1;
  if (version >= 5) attributes.files |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
  if (version >= 4) attributes.network = 3;
  if (version >= 6) attributes.scoped = 3;
  size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  hide_all();
  ruleset = must(SYS3(__NR_landlock_create_ruleset, &attributes, size, 0), "Landlock does not work", 0);
  static char path[MAX_PATH] = "/";
  allow_reading(path, 1, 0);
  for (int at = 0; at < DEVICES; at++) {
    long device = SYS4(__NR_openat, AT_CWD, devices[at], O_PATH | O_CLOEXEC, 0);
    if (device < 0) continue;
    allow(device, LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE, devices[at]);
    SYS1(__NR_close, device);
  }
  long processes = open_plain("/proc", O_PATH);
  if (processes >= 0) allow(processes, LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR, "/proc");
  for (int at = 0; at < scratches.count; at++) {
    long folder = open_plain(scratches.items[at], O_PATH | O_DIRECTORY);
    if (is_missing(folder)) continue;
    must(folder, "this cannot be opened:", scratches.items[at]);
    allow(folder, attributes.files & ~LANDLOCK_ACCESS_FS_IOCTL_DEV, scratches.items[at]);
  }
  /* `> /dev/stderr` opens what is already open; where that is a pipe with a name it would be asked for. */
  for (int descriptor = 1; descriptor < 3; descriptor++) {
    struct statx facts;
    if (SYS5(__NR_statx, descriptor, "", AT_EMPTY, STATX_TYPE, &facts) < 0) continue;
    if ((facts.stx_mode & 0170000) != 0010000) continue;
    struct landlock_path_beneath_attr rule = {.allowed_access = LANDLOCK_ACCESS_FS_WRITE_FILE, .parent_fd = descriptor};
    SYS4(__NR_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  }
  go_to(directory);
  must(SYS5(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "rights cannot be given up", 0);
  drop_rights(SYS1(__NR_geteuid, 0) == 0);
  must(SYS2(__NR_landlock_restrict_self, ruleset, 0), "Landlock does not work", 0);
  install_filter(version < 6);
  run(program, environment);
}

__attribute__((used, noreturn)) void start(word *stack) {
  long count = (long)stack[0];
  char **arguments = (char **)(stack + 1);
  char **environment = arguments + count + 1;
  if (count < 2) fail("see native/wall.c for how it is used", 0, 0);
  char **program = read_options(arguments + 1);
  if (is_landlock) enter_landlock(program, environment);
  enter_namespaces(program, environment);
}
