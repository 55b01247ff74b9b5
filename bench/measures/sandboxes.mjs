// `true` started as tools start their commands, in each sandbox that works here, beside the same as a bare child process.
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
