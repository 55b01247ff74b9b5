import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { SimNote } from './sim/sim-body.ts'
import { machineMs, runRobotDaemon } from './testing/run-robot-daemon.ts'

const STOP_MS_MAX = 20
/** Two cores are shared with other tests: the bar of 20 ms is held by the benchmark. */
const SHARED_MS_MAX = 150

const firstAfter = (notes: readonly SimNote[], what: SimNote['what'], atMs: number): number =>
  notes.find((note) => note.what === what && note.atMs >= atMs)?.atMs ?? Number.POSITIVE_INFINITY

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const until = async (holds: () => boolean): Promise<void> => {
  for (let tries = 0; !holds() && tries < 500; tries++) await sleep(10)
}

test('§2.7 rule 7: the emergency stop halts the motors while the main loop is blocked for a second', { timeout: 40_000 }, async () => {
  await using daemon = runRobotDaemon({ blockMs: 1000, estopAfterMs: 300 })
  const [fromMs = 0, untilMs = 0] = (await daemon.line('blocked')).split(' ').map(Number)
  const notes = daemon.journal()
  const pressedMs = firstAfter(notes, 'estop', 0)
  const haltedMs = firstAfter(notes, 'halt', pressedMs)
  expect(pressedMs).toBeGreaterThan(fromMs)
  expect(haltedMs).toBeLessThan(untilMs)
  expect(haltedMs - pressedMs).toBeLessThan(STOP_MS_MAX)
  // The motors were told anew all the while, so nothing but the emergency stop ended the movement
  expect(notes.filter(({ what, atMs }) => what === 'run' && atMs > fromMs && atMs < pressedMs).length).toBeGreaterThan(0)
  expect(firstAfter(notes, 'run', pressedMs)).toBe(Number.POSITIVE_INFINITY)
  expect(await daemon.line('ended')).toBe('estop')
})

test.each(['SIGKILL', 'SIGTERM'] as const)(
  '§2.7 rule 7: the motors halt when the daemon is ended by %s',
  { timeout: 40_000 },
  async (signal) => {
    await using daemon = runRobotDaemon({})
    const companion = Number(await daemon.line('companion'))
    await daemon.line('moving')
    await sleep(100)
    const killedMs = machineMs()
    daemon.kill(signal)
    await until(() => !isAlive(companion))
    const notes = daemon.journal()
    const haltedMs = firstAfter(notes, 'halt', killedMs)
    expect(haltedMs - killedMs).toBeLessThan(SHARED_MS_MAX)
    expect(firstAfter(notes, 'run', haltedMs)).toBe(Number.POSITIVE_INFINITY)
    expect(notes.at(-1)?.what).toBe('closed')
    expect(isAlive(companion)).toBe(false)
  },
)

test('§2.7 rule 7: what is sent to the process group of the daemon does not end the safety process without a halt', {
  timeout: 40_000,
}, async () => {
  await using daemon = runRobotDaemon({})
  const companion = Number(await daemon.line('companion'))
  await daemon.line('moving')
  const killedMs = machineMs()
  process.kill(companion, 'SIGTERM')
  await until(() => !isAlive(companion))
  expect(firstAfter(daemon.journal(), 'halt', killedMs) - killedMs).toBeLessThan(SHARED_MS_MAX)
})
