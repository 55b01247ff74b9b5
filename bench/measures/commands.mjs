// What a short command costs, from start to exit, against Node doing nothing.
import { timeToExit } from '../lib/processes.mjs'
import { newDataDir, sluiceBundle } from '../lib/sluice.mjs'

export async function measureCommands({ scratch, rounds }) {
  const dataDir = newDataDir(scratch)
  const bundle = sluiceBundle('minimal')
  const time = (...args) => timeToExit({ scratch, args })
  const configGet = () => time(bundle, 'config', 'get', '--data-dir', dataDir)
  configGet() // leaves the compile cache that every later call finds
  return rounds({ full: 21, quick: 5 }, () => {
    const bare = time('-e', '0')
    return {
      'command-version': { ours: time(bundle, '--version'), bare },
      'command-config-get': { ours: configGet(), bare },
    }
  })
}
