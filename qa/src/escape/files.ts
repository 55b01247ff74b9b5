/** Attempts on files outside the workspace: no path leads to changing or reading them. */

import type { Rules } from '@sluice/testkit/rules'
import { CANARY, type InBench } from '@sluice/testkit/sandbox-rules/bench'
import { expect } from 'vitest'
import { SYSCALLS } from './syscalls.ts'

/** Scripts for `sh` with an outside folder as `$1`; a successful attempt changes nothing but a canary. */
const ATTEMPTS: Readonly<Record<string, string>> = {
  'overwrites by an absolute path': 'echo changed > "$1/canary"',
  'appends by an absolute path': 'echo changed >> "$1/canary"',
  'creates a file': 'echo new > "$1/new"',
  'creates a folder': 'mkdir "$1/new"',
  'creates a fifo': 'mkfifo "$1/new"',
  'deletes a file': 'rm -f "$1/canary"',
  'deletes a folder': 'rm -rf "$1"',
  'truncates a file': 'truncate -s 0 "$1/canary"; : > "$1/canary"',
  'changes a mode': 'for mode in 000 777 600 644 700; do chmod $mode "$1/canary"; chmod $mode "$1"; done',
  'changes a mode through a link': 'ln -s "$1/canary" soft; chmod 644 soft; ln -s "$1" folder; chmod 644 folder/canary; chmod 711 folder/.',
  'changes a mode from inside the folder': 'cd "$1" && chmod 644 canary; chmod 711 .; chmod 711 /proc/self/cwd',
  'changes a mode through /proc':
    'chmod 644 "/proc/self/root$1/canary" "/proc/self/cwd/../outside/canary"; perl -e \'chdir shift; chmod 0711, "/proc/$$/cwd"; chmod 0644, "/proc/$$/cwd/canary"\' "$1"',
  'swaps a file for a link while its mode is changed':
    '(i=0; while [ $i -lt 40 ]; do ln -sf "$1/canary" swapped; rm -f swapped; : > swapped; i=$((i+1)); done) 2> /dev/null & perl -e \'chmod 0644, "swapped" for 1 .. 500\'; wait',
  'changes the times of a file': 'touch -d 2001-02-03 "$1/canary"; perl -e \'utime 1, 1, @ARGV\' "$1/canary" "$1"; cp -p "$0" "$1/canary"',
  'changes an owner': 'chown 1:1 "$1/canary"',
  'climbs by a relative path': 'echo changed > "../outside/canary"; cat "../outside/canary"; cat "./../../../../../../../$1/canary"',
  'follows a link it makes': 'ln -s "$1/canary" soft; cat soft; echo changed > soft',
  'follows a linked folder': 'ln -s "$1" folder; cat folder/canary; echo changed > folder/canary; echo new > folder/new',
  'follows a chain of links': 'ln -s / top; ln -s "top$1" next; cat next/canary; echo changed > next/canary',
  'makes a hard link': 'ln "$1/canary" hard; cat hard; echo changed > hard',
  'makes a hard link through a soft one': 'ln -s "$1/canary" soft; ln -L soft hard; cat hard; echo changed > hard',
  'swaps a folder for a link while it is used':
    'mkdir real; (i=0; while [ $i -lt 200 ]; do mv real kept; ln -s "$1" real; rm real; mv kept real; i=$((i+1)); done) & j=0; while [ $j -lt 200 ]; do cat real/canary; : > real/new; j=$((j+1)); done 2> /dev/null; wait',
  'swaps a file for a hard link while it is used':
    '(i=0; while [ $i -lt 100 ]; do ln -f "$1/canary" swapped; rm -f swapped; : > swapped; i=$((i+1)); done) 2> /dev/null & j=0; while [ $j -lt 200 ]; do cat swapped; echo changed > swapped; j=$((j+1)); done 2> /dev/null; wait',
  'moves a file out': 'echo new > mine; mv mine "$1/new"; mv mine "$1/canary"',
  'moves a file in': 'mv "$1/canary" taken; cat taken',
  'renames a file in place': 'mv "$1/canary" "$1/moved"',
  'moves the workspace itself':
    'here=$(pwd -P); mv "$here" "$here.moved"; ln -s "$1" "$here"; cat "$here/canary"; echo changed > "$here/canary"',
  'goes through /proc/self/root': 'cat "/proc/self/root$1/canary"; echo changed > "/proc/self/root$1/canary"',
  'goes through /proc/1/root': 'cat "/proc/1/root$1/canary"; echo changed > "/proc/1/root$1/canary"',
  'goes through the roots of all processes': 'for root in /proc/[0-9]*/root; do cat "$root$1/canary"; echo new > "$root$1/new"; done',
  'goes through the working directories of all processes': 'for at in /proc/[0-9]*/cwd; do cat "$at/../outside/canary" "$at/canary"; done',
  'goes through open descriptors': 'for fd in /proc/[0-9]*/fd/[0-9]*; do [ -d "$fd" ] && cat "$fd/canary" "$fd/../outside/canary"; done',
  'enters the folder': 'cd "$1" && cat canary && echo changed > canary',
  'lists the folder': 'ls -la "$1/" | grep -q canary && echo "canary-that-stays-where-it-is"',
  'copies the folder': 'cp -a "$1" copy; cat copy/canary; tar -cf - "$1" 2> /dev/null | tr -d "\\0"',
}

/** Scripts with system calls that a shell does not make; `$ARGV[0]` is an outside folder. */
const CALLS: Readonly<Record<string, string>> = {
  'exchanges two files in one step':
    'open my $f, ">", "mine"; close $f; call("renameat2", -100, "mine", -100, "$ARGV[0]/canary", 2); open $f, "<", "mine" and print <$f>',
  'opens a file by its handle': `
    my $handle = pack("Ii", 128, 0) . "\\0" x 128; my $mount = pack("i", 0);
    call("name_to_handle_at", -100, ".", $handle, $mount, 0);
    open my $here, "<", "."; my ($bytes, $type) = unpack("Ii", $handle);
    for my $inode (2, $ARGV[1]) {
      my $wanted = pack("Ii", 8, 1) . pack("II", $inode, 0) . "\\0" x 120;
      my $fd = call("open_by_handle_at", fileno($here), $wanted, 0);
      if ($fd >= 0) { print "canary-that-stays-where-it-is" }
    }`,
  'follows links in ways openat2 allows':
    'my $how = pack("QQQ", 0, 0, 0); my $fd = call("openat2", -100, "/proc/self/root$ARGV[0]/canary", $how, 24); if ($fd >= 0) { open my $f, "<&=", $fd; print <$f> }',
}

export const fileEscapes = (inBench: InBench): Rules => ({
  ...Object.fromEntries(
    Object.entries(ATTEMPTS).map(([title, script]) => [
      `outside files: unaffected when a command ${title}`,
      inBench(async ({ run, outside, expectUntouched }) => {
        const { stdout, stderr } = await run(`try() { ${script}; }; for each; do (try "$each"); rm -rf ./*; done`, { args: outside })
        expect(stdout + stderr).not.toContain(CANARY)
        expectUntouched()
      }),
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(CALLS).map(([title, script]) => [
      `outside files: unaffected when a command ${title}`,
      inBench(async ({ runPerl, outside, expectUntouched }) => {
        for (const folder of outside) {
          const { stdout, stderr } = await runPerl(`${SYSCALLS}${script}`, [folder, '12'])
          expect(stdout + stderr).not.toContain(CANARY)
          expectUntouched()
        }
      }),
    ]),
  ),
})
