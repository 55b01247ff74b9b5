// The time of `true` in each sandbox that works on this machine, compared with a bare child process.
import { runLoad } from '../lib/sluice.mjs'

export async function measureSandboxes({ scratch, rounds, scale }) {
  return rounds({ full: 5, quick: 1 }, async () => {
    const { bare, userns, fsrestrict } = await runLoad({ scratch, name: 'sandbox', job: { slices: scale(60) } })
    return {
      ...(userns !== undefined && { 'sandbox-userns': { ours: userns, bare } }),
      ...(fsrestrict !== undefined && { 'sandbox-fsrestrict': { ours: fsrestrict, bare } }),
    }
  })
}
