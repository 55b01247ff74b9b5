// How soon a robot's motors are told to halt: emergency stop while the daemon's main loop is blocked, and the daemon killed.
import { runLoad } from '../lib/sluice.mjs'

export async function measureRobot({ scratch, rounds, scale }) {
  return rounds({ full: 5, quick: 1 }, async () => {
    const { estopMs, killedMs } = await runLoad({ scratch, name: 'robot', job: { slices: scale(10) } })
    return { 'robot-estop': { ours: estopMs }, 'robot-killed': { ours: killedMs } }
  })
}
