/** Starts a bundle: answers `--version` without loading the profile, checks the version of Node, and enables its compile cache. */
import { enableCompileCache } from 'node:module'
import manifest from '../package.json' with { type: 'json' }
import { compileCacheFolder } from './compile-cache.ts'
import { NODE_MIN } from './node-min.ts'

/** Loads the profile, unless the only argument is `--version` or Node is too old. */
export async function start(loadProfile: () => Promise<unknown>): Promise<void> {
  const args = process.argv.slice(2)
  if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
    process.stdout.write(`sluice ${manifest.version}\n`)
    return
  }
  if (isOlder(process.versions.node, NODE_MIN)) {
    process.stderr.write(`sluice: this is Node ${process.versions.node}; Sluice needs Node ${NODE_MIN} or newer\n`)
    process.exitCode = 1
    return
  }
  const cache = compileCacheFolder()
  if (cache) enableCompileCache(cache)
  await loadProfile()
}

function isOlder(version: string, than: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [majorMin = 0, minorMin = 0] = than.split('.').map(Number)
  return major < majorMin || (major === majorMin && minor < minorMin)
}
