// The time of a short command, from start to exit, compared with a Node process that does nothing.
import { timeToExit } from '../lib/processes.mjs'
import { newDataDir, sluiceBundle } from '../lib/sluice.mjs'

export async function measureCommands({ scratch, rounds }) {
  const dataDir = newDataDir(scratch)
  const bundle = sluiceBundle('minimal')
  const time = (...args) => timeToExit({ scratch, args })
  const configGet = () => time(bundle, 'config', 'get', '--data-dir', dataDir)
  configGet() // Writes the compile cache that every later call uses.
  return rounds({ full: 21, quick: 5 }, () => {
    const bare = time('-e', '0')
    return {
      'command-version': { ours: time(bundle, '--version'), bare },
      'command-config-get': { ours: configGet(), bare },
    }
  })
}
