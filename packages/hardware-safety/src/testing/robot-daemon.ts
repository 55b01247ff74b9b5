/**
 * A program with a driving simulated robot, for tests that block or kill it: `robot-daemon.ts JOB`, with a `RobotJob` as JSON.
 * Prints `companion PID` of the safety process, `moving` once the robot moves, `blocked FROM UNTIL` after a blocked event loop,
 * and `ended REASON`.
 */
import { systemClock } from '@sluice/kit'
import { startCompanion } from '@sluice/runtime'
import * as v from 'valibot'
import { Robot } from '../robot.ts'
import { robotToml } from '../robot-toml.ts'
import type { SimScript } from '../sim/sim-body.ts'

export interface RobotJob {
  readonly script: SimScript
  /** Blocks the event loop for this long from the moment the robot moves. */
  readonly blockMs?: number
}

const { script, blockMs } = JSON.parse(process.argv[2] ?? '') as RobotJob
const say = (line: string) => process.stdout.write(`${line}\n`)
const machineMs = () => Number(process.hrtime.bigint()) / 1e6

const moving = Promise.withResolvers<void>()
const log = {
  debug() {},
  info: (message: string) => void (message === 'robot movement began' && moving.resolve()),
  warn() {},
  error: (message: string) => say(`error ${message}`),
}
const kept = new Map<string, unknown>()
const keyValue = {
  get: async (key: string) => kept.get(key),
  set: async (key: string, value: unknown) => void kept.set(key, value),
  delete: async (key: string) => void kept.delete(key),
}
const robot = new Robot(
  {
    clock: systemClock,
    log,
    keyValue: keyValue as never,
    async companion(request) {
      const companion = await startCompanion(request)
      say(`companion ${companion.pid}`)
      return companion
    },
  },
  v.parse(robotToml, { sim: { room: [50, 4] } }),
  script,
)
const alive = setInterval(() => undefined, 1000)
const moved = robot.move({ velocity: { x: 0.5, y: 0, turn: 0 }, amount: 20, forMs: null }, new AbortController().signal)
await moving.promise
say('moving')
if (blockMs !== undefined) {
  const fromMs = machineMs()
  while (machineMs() - fromMs < blockMs);
  say(`blocked ${fromMs} ${machineMs()}`)
}
say(`ended ${(await moved).reason}`)
await robot.close()
clearInterval(alive)
