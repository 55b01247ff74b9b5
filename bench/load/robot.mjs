// Stops simulated robots that drive: by their emergency stop while the event loop of the daemon is blocked for a second, and by killing
// the daemon. `node robot.mjs JOB`, JOB as JSON: {slices}. Prints {estopMs, killedMs} as JSON: the longest time of all slices from the
// edge of the sensor, or from the signal, to the command that halts the motors.
import { setTimeout as sleep } from 'node:timers/promises'
import { machineMs, runRobotDaemon } from '../../packages/hardware-safety/src/testing/run-robot-daemon.ts'

const BLOCK_MS = 1000
const PRESSED_AFTER_MS = 300
const DRIVES_MS = 100
const HALT_MS_MAX = 2000
const job = JSON.parse(process.argv[2])

const since = (notes, what, atMs) => notes.find((note) => note.what === what && note.atMs >= atMs)?.atMs

async function estop() {
  await using daemon = runRobotDaemon({ blockMs: BLOCK_MS, estopAfterMs: PRESSED_AFTER_MS })
  const [fromMs, untilMs] = (await daemon.line('blocked')).split(' ').map(Number)
  const notes = daemon.journal()
  const pressedMs = since(notes, 'estop', fromMs)
  const haltedMs = since(notes, 'halt', pressedMs)
  if (!(haltedMs < untilMs)) throw new Error('the motors did not halt while the main loop was blocked')
  return haltedMs - pressedMs
}

async function killed() {
  await using daemon = runRobotDaemon({})
  await daemon.line('moving')
  await sleep(DRIVES_MS)
  const killedMs = machineMs()
  daemon.kill('SIGKILL')
  for (let haltedMs; ; await sleep(5)) {
    haltedMs = since(daemon.journal(), 'halt', killedMs)
    if (haltedMs !== undefined) return haltedMs - killedMs
    if (machineMs() - killedMs > HALT_MS_MAX) throw new Error('the motors did not halt when the daemon was killed')
  }
}

const worst = { estopMs: 0, killedMs: 0 }
for (let slice = 0; slice < job.slices; slice++) {
  worst.estopMs = Math.max(worst.estopMs, await estop())
  worst.killedMs = Math.max(worst.killedMs, await killed())
}
console.log(JSON.stringify(worst))
