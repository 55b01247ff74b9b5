import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { heapOptions, memoryLimit } from './memory-limit.ts'

const MIB = 1024 * 1024

/** Writes the files of a machine below a folder; returns the limit that they set. */
function limitWith(files: Readonly<Record<string, string>>): number {
  const root = mkdtempSync(join(tmpdir(), 'sluice-limit-'))
  try {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(root, dirname(name)), { recursive: true })
      writeFileSync(join(root, name), text)
    }
    return memoryLimit(root)
  } finally {
    rmSync(root, { recursive: true })
  }
}

test.each([
  ['no control groups', Number.POSITIVE_INFINITY, {}],
  [
    'the group of a service',
    512 * MIB,
    {
      'proc/self/cgroup': '0::/system.slice/sluice.service\n',
      'sys/fs/cgroup/system.slice/sluice.service/memory.max': `${512 * MIB}\n`,
      'sys/fs/cgroup/system.slice/sluice.service/memory.high': 'max\n',
      'sys/fs/cgroup/system.slice/memory.max': 'max\n',
    },
  ],
  [
    'a smaller limit of a slice around it',
    256 * MIB,
    {
      'proc/self/cgroup': '0::/small.slice/sluice.service\n',
      'sys/fs/cgroup/small.slice/sluice.service/memory.max': 'max\n',
      'sys/fs/cgroup/small.slice/memory.max': `${256 * MIB}\n`,
    },
  ],
  [
    'a limit above which the kernel slows the group down',
    300 * MIB,
    { 'proc/self/cgroup': '0::/\n', 'sys/fs/cgroup/memory.max': `${512 * MIB}\n`, 'sys/fs/cgroup/memory.high': `${300 * MIB}\n` },
  ],
  [
    'the first version of control groups, with a limit of the group above',
    512 * MIB,
    {
      'proc/self/cgroup': '5:devices:/\n4:cpu,memory:/pods/pod/sluice\n0::/\n',
      'sys/fs/cgroup/memory/pods/pod/sluice/memory.limit_in_bytes': '9223372036854771712\n',
      'sys/fs/cgroup/memory/pods/pod/memory.limit_in_bytes': `${512 * MIB}\n`,
    },
  ],
  [
    'a container that sees its own group as the root, under the name that the host has for it',
    512 * MIB,
    { 'proc/self/cgroup': '4:memory:/docker/5471\n', 'sys/fs/cgroup/memory/memory.limit_in_bytes': `${512 * MIB}\n` },
  ],
])('finds the limit: %s', (_what, limit, files) => {
  expect(limitWith(files as Readonly<Record<string, string>>)).toBe(limit)
})

test('the heap gets half of a limit that V8 does not know, and no option where V8 has chosen well', () => {
  expect(heapOptions(512 * MIB, [], 4288 * MIB)).toEqual(['--max-old-space-size=256'])
  expect(heapOptions(64 * MIB, [], 4288 * MIB)).toEqual(['--max-old-space-size=64'])
  expect(heapOptions(512 * MIB, [], 259 * MIB)).toEqual([])
  expect(heapOptions(Number.POSITIVE_INFINITY, [], 4288 * MIB)).toEqual([])
})

test.each(['--max-old-space-size=4000', '--max_old_space_size=4000', '--max-heap-size=900', '--max-old-space-size-percentage=40'])(
  'the choice of the operator wins: %s',
  (option) => {
    expect(heapOptions(512 * MIB, ['--enable-source-maps', option], 4288 * MIB)).toEqual([])
    expect(heapOptions(512 * MIB, [`--no-warnings ${option}`], 4288 * MIB)).toEqual([])
  },
)
