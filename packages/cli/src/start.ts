/** What runs before anything of a profile is loaded: `--version`, and Node's compile cache for everything after. */
import { mkdirSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'
import manifest from '../package.json' with { type: 'json' }

const NODE_MAJOR_MIN = 24

/** Loads the profile unless the arguments ask for the version alone. */
export async function start(loadProfile: () => Promise<unknown>): Promise<void> {
  const args = process.argv.slice(2)
  if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
    process.stdout.write(`sluice ${manifest.version}\n`)
    return
  }
  if (Number(process.versions.node.split('.')[0]) < NODE_MAJOR_MIN) {
    process.stderr.write(`sluice: this is Node ${process.versions.node}; Sluice needs Node ${NODE_MAJOR_MIN} or newer\n`)
    process.exitCode = 1
    return
  }
  enableCompileCache(cacheIn(dataDirOf(args)))
  await loadProfile()
}

/** Whoever makes the data directory makes it for its owner alone; where it cannot be made, whoever needs it says so. */
function cacheIn(dataDir: string): string {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  } catch {}
  return join(dataDir, 'cache')
}

/** The data directory as far as it can be told without parsing the command line: only the cache's place depends on it. */
function dataDirOf(args: readonly string[]): string {
  const at = args.findIndex((arg) => arg === '--data-dir' || arg.startsWith('--data-dir='))
  const given = args[at]?.slice('--data-dir='.length) || args[at + 1]
  return (at >= 0 && given) || process.env.SVC_DATA_DIR || join(homedir(), '.sluice')
}
