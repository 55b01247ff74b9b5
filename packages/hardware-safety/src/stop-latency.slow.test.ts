import { expect, test } from 'vitest'
import type { SimNote } from './sim/sim-body.ts'
import { machineMs, runRobotDaemon } from './testing/run-robot-daemon.ts'

const STOP_MS_MAX = 20
/** Generous, because the system decides when it reports the end of a process, and runs other tests meanwhile. */
const SHARED_MS_MAX = 500
const TIMEOUT = { timeout: 40_000 }
const skipped = process.env.SLUICE_HARDWARE ? '' : ': skipped, SLUICE_HARDWARE=1 runs it'

const firstAfter = (notes: readonly SimNote[], what: SimNote['what'], atMs: number): number =>
  notes.find((note) => note.what === what && note.atMs >= atMs)?.atMs ?? Number.POSITIVE_INFINITY

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const ended = (pid: number) => expect.poll(() => isAlive(pid), { timeout: 10_000, interval: 10 }).toBe(false)

async function endDaemon(signal: NodeJS.Signals): Promise<void> {
  await using daemon = runRobotDaemon({})
  const companion = Number(await daemon.line('companion'))
  await daemon.line('moving')
  const killedMs = machineMs()
  daemon.kill(signal)
  await ended(companion)
  const notes = daemon.journal()
  const haltedMs = firstAfter(notes, 'halt', killedMs)
  expect(haltedMs - killedMs).toBeLessThan(SHARED_MS_MAX)
  expect(firstAfter(notes, 'run', haltedMs)).toBe(Number.POSITIVE_INFINITY)
  expect(notes.at(-1)?.what).toBe('closed')
}

test('the emergency stop halts the motors while the daemon is blocked', TIMEOUT, async () => {
  await using daemon = runRobotDaemon({ blockMs: 1000, estopAfterMs: 300 })
  const [fromMs = 0, untilMs = 0] = (await daemon.line('blocked')).split(' ').map(Number)
  const notes = daemon.journal()
  const pressedMs = firstAfter(notes, 'estop', 0)
  const haltedMs = firstAfter(notes, 'halt', pressedMs)
  expect(pressedMs).toBeGreaterThan(fromMs)
  expect(haltedMs).toBeLessThan(untilMs)
  expect(haltedMs - pressedMs).toBeLessThan(STOP_MS_MAX)
  // The motors got new commands all the while, so only the emergency stop can have ended the movement.
  expect(notes.filter(({ what, atMs }) => what === 'run' && atMs > fromMs && atMs < pressedMs).length).toBeGreaterThan(0)
  expect(firstAfter(notes, 'run', pressedMs)).toBe(Number.POSITIVE_INFINITY)
  expect(await daemon.line('ended')).toBe('estop')
})

test('the motors halt when the daemon is killed', TIMEOUT, () => endDaemon('SIGKILL'))

test.skipIf(skipped)(`the motors halt when the daemon ends by SIGTERM${skipped}`, TIMEOUT, () => endDaemon('SIGTERM'))

test.skipIf(skipped)(`a safety process that receives SIGTERM halts the motors first${skipped}`, TIMEOUT, async () => {
  await using daemon = runRobotDaemon({})
  const companion = Number(await daemon.line('companion'))
  await daemon.line('moving')
  const killedMs = machineMs()
  process.kill(companion, 'SIGTERM')
  await ended(companion)
  expect(firstAfter(daemon.journal(), 'halt', killedMs) - killedMs).toBeLessThan(SHARED_MS_MAX)
})
