/** Rules for the resources a command can use. */
import { expect } from 'vitest'
import type { Rules } from '../rules.ts'
import type { InBench } from './bench.ts'

const MIB = 1024 * 1024
const FORKS = 'i=0; while [ $i -lt 40 ]; do sleep 1 & i=$((i+1)); echo $i; done'
/** Needs memory for one line of 96 MiB. */
const HUNGRY = 'head -c 100663296 /dev/zero | tail -n 1 | wc -c'

const forked = (stdout: string): number => Math.max(0, ...stdout.split('\n').map(Number))

export const limitRules = (inBench: InBench): Rules => ({
  'the number of processes is bounded': inBench(async ({ run }) => {
    expect(forked((await run(FORKS, { policy: { processesMax: 15 } })).stdout)).toBeLessThanOrEqual(15)
    expect(forked((await run(FORKS, { policy: { processesMax: 500 } })).stdout)).toBe(40)
  }),

  'memory is bounded': inBench(async ({ run }) => {
    expect((await run(HUNGRY, { policy: { memoryBytesMax: 64 * MIB } })).stdout.trim()).not.toBe('100663296')
    expect((await run(HUNGRY)).stdout.trim()).toBe('100663296')
  }),

  'the size of a file is bounded': inBench(async ({ run }) => {
    const script = 'head -c 2000000 /dev/zero > big; wc -c < big'
    expect(Number((await run(script, { policy: { fileBytesMax: MIB } })).stdout)).toBeLessThanOrEqual(MIB)
    expect(Number((await run(script)).stdout)).toBe(2_000_000)
  }),
})
