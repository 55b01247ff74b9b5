// The time until the motors of a robot are halted: after an emergency stop while the event loop of the daemon is blocked, and after the daemon is killed.
import { runLoad } from '../lib/sluice.mjs'

export async function measureRobot({ scratch, rounds, scale }) {
  return rounds({ full: 5, quick: 1 }, async () => {
    const { estopMs, killedMs } = await runLoad({ scratch, name: 'robot', job: { slices: scale(10) } })
    return { 'robot-estop': { ours: estopMs }, 'robot-killed': { ours: killedMs } }
  })
}
