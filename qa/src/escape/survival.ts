/** Attempts to outlive the command: every process it starts ends with it. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Rules } from '@sluice/testkit/rules'
import type { InBench, SandboxBench } from '@sluice/testkit/sandbox-rules/bench'
import { expect } from 'vitest'

const BEAT = 'i=0; while [ $i -lt 500 ]; do printf x >> beat; i=$((i+1)); sleep 0.02; done'
const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Each process writes, starts the next one and ends. */
const HOP = 'hop() { [ $1 -lt 4000 ] || exit 0; printf x >> beat; hop $(($1+1)) & exit 0; }; hop 0'

/** Ways for a process to leave the process group it was started in. */
const WAYS: Readonly<Record<string, string>> = {
  'in the background': `sh -c '${BEAT}' &`,
  'in a session of its own': `setsid sh -c '${BEAT}' &`,
  'by a double fork': `(setsid sh -c '(${BEAT}) &' &)`,
  'ignoring signals': `setsid sh -c 'trap "" TERM HUP INT QUIT; ${BEAT}' &`,
  'without its pipes': `setsid sh -c '${BEAT}' < /dev/null > /dev/null 2>&1 &`,
  'from process to process': `setsid sh -c '${HOP}' &`,
  'as nohup': `nohup sh -c '${BEAT}' > /dev/null 2>&1 &`,
}

const beats = ({ workspace }: SandboxBench) => (existsSync(join(workspace, 'beat')) ? readFileSync(join(workspace, 'beat')).length : 0)

async function expectSilence(bench: SandboxBench): Promise<void> {
  const atEnd = beats(bench)
  await later(120)
  expect(beats(bench)).toBe(atEnd)
}

export const survivalEscapes = (inBench: InBench): Rules => ({
  ...Object.fromEntries(
    Object.entries(WAYS).map(([way, script]) => [
      `survival: a killed command leaves nothing running ${way}`,
      inBench(async (bench) => {
        const { stop } = await bench.start(`${script}\nsleep 10`)
        while (beats(bench) < 2) await later(10)
        await stop()
        await expectSilence(bench)
      }),
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(WAYS).map(([way, script]) => [
      `survival: an ended command leaves nothing running ${way}`,
      inBench(async (bench) => {
        await bench.run(`${script}\nwhile [ ! -s beat ]; do sleep 0.01; done`)
        expect(beats(bench)).toBeGreaterThan(0)
        await expectSilence(bench)
      }),
    ]),
  ),
})
