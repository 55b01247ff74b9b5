/** Attempts to exhaust the machine: the resources of one command are bounded. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Rules } from '@sluice/testkit/rules'
import type { InBench } from '@sluice/testkit/sandbox-rules/bench'
import { expect } from 'vitest'
import { SYSCALLS } from './syscalls.ts'

const MIB = 1024 * 1024
const PROCESSES = 20

/** Prints how many processes can be forked, at most `$ARGV[0]`, and ends them. */
const FORKS =
  'my ($n, @all) = (0); while ($n < $ARGV[0]) { my $id = fork; last unless defined $id; if ($id == 0) { sleep 5; exit } push @all, $id; $n++ } print $n; kill KILL => @all'

export const resourceEscapes = (inBench: InBench): Rules => ({
  'resources: the number of processes is bounded': inBench(async ({ runPerl }) => {
    expect(Number((await runPerl(FORKS, ['60'], { processesMax: PROCESSES })).stdout)).toBeLessThanOrEqual(PROCESSES)
  }),
  'resources: a fork bomb ends and the machine keeps working': inBench(async ({ run }) => {
    const bomb =
      'bomb() { [ $1 -lt 8 ] && { bomb $(($1 + 1)) & bomb $(($1 + 1)) & }; echo x >> made; sleep 0.2; }; bomb 0; wait; sleep 1; wc -l < made'
    const { stdout } = await run(bomb, { policy: { processesMax: PROCESSES } })
    // Ended processes make room, so there are more lines than simultaneous processes.
    expect(Number(stdout.trim() || 0)).toBeLessThan(400)
  }),
  'resources: memory is bounded': inBench(async ({ runPerl }) => {
    expect((await runPerl("my $held = 'x' x (300 * 1024 * 1024); print length $held", [], { memoryBytesMax: 100 * MIB })).stdout).toBe('')
  }),
  'resources: anonymous memory files are bounded': inBench(async ({ runPerl }) => {
    const script =
      "my $fd = call('memfd_create', 'x', 0); open my $f, '>&=', $fd; my $part = 'x' x 1048576; my $n = 0; while ($n < 200) { last unless syswrite $f, $part; $n++ } print $n"
    const { stdout } = await runPerl(`${SYSCALLS}$SIG{XFSZ} = 'IGNORE'; ${script}`, [], {
      memoryBytesMax: 100 * MIB,
      fileBytesMax: 50 * MIB,
    })
    expect(Number(stdout)).toBeLessThanOrEqual(100)
  }),
  'resources: processor time is bounded': inBench(async ({ runPerl }) => {
    const started = performance.now()
    expect((await runPerl('1 while 1', [], { cpuSecsMax: 1 })).code).not.toBe(0)
    expect(performance.now() - started).toBeLessThan(15_000)
  }),
  'resources: the size of a file is bounded': inBench(async ({ run, workspace }) => {
    await run('head -c 4000000 /dev/zero > big', { policy: { fileBytesMax: MIB } })
    expect(statSync(join(workspace, 'big')).size).toBeLessThanOrEqual(MIB)
  }),
  'resources: a sparse file cannot exceed the size limit': inBench(async ({ run, workspace }) => {
    await run('truncate -s 8M hole; dd if=/dev/zero of=far bs=1 count=1 seek=8000000', { policy: { fileBytesMax: MIB } })
    for (const name of ['hole', 'far'])
      if (existsSync(join(workspace, name))) expect(statSync(join(workspace, name)).size).toBeLessThanOrEqual(MIB)
  }),
  'resources: open files are bounded': inBench(async ({ runPerl }) => {
    const script = "my @held; while (@held < 5000) { open my $f, '<', '/dev/null' or last; push @held, $f } print scalar @held"
    expect(Number((await runPerl(script, [])).stdout)).toBeLessThan(5000)
  }),
  'resources: limits cannot be raised': inBench(async ({ run }) => {
    const { stdout } = await run('ulimit -f unlimited; ulimit -t unlimited; ulimit -c unlimited; ulimit -f; ulimit -t; ulimit -c', {
      policy: { fileBytesMax: MIB, cpuSecsMax: 5 },
    })
    expect(stdout).not.toContain('unlimited')
  }),
  'resources: a crash leaves no core dump': inBench(async ({ run, workspace }) => {
    const { stdout } = await run('ulimit -c; ulimit -c unlimited 2> /dev/null; perl -e "kill SEGV => \\$\\$" ; sh -c "kill -ABRT \\$\\$"')
    expect(stdout.split('\n')[0]).toBe('0')
    expect(readdirSync(workspace)).toEqual([])
  }),
  'resources: a command cannot raise its priority': inBench(async ({ runPerl, run }) => {
    expect(
      (await runPerl(`${SYSCALLS}attempt('setpriority', 0, 0, -20); attempt('ioprio_set', 1, 0, (1 << 13) | 1)`, [])).stdout,
    ).not.toContain('done')
    expect((await run('(echo -900 > /proc/self/oom_score_adj) 2> /dev/null && cat /proc/self/oom_score_adj')).stdout).toBe('')
  }),
  'resources: the size of private folders is bounded': inBench(async ({ run }) => {
    const script = 'for each in /tmp /var/tmp /dev/shm /run; do [ -w $each ] && df -Pm $each | tail -n 1; done'
    for (const line of (await run(script)).stdout.trim().split('\n')) {
      const [kind, megabytes] = line.split(/\s+/)
      if (kind === 'tmpfs') expect(Number(megabytes)).toBeLessThanOrEqual(2048)
    }
  }),
})
