/** Starts a bundle: answers `--version` without loading the profile, checks the version of Node, and enables its compile cache. */
import { enableCompileCache } from 'node:module'
import { nodeProblem } from '@sluice/sdk/node-version'
import { compileCacheFolder } from './compile-cache.ts'
import { isVersionOption, VERSION_LINE } from './version.ts'

/** Loads the profile, unless the only argument asks for the version or Node is too old. */
export async function start(loadProfile: () => Promise<unknown>): Promise<void> {
  const args = process.argv.slice(2)
  if (args.length === 1 && isVersionOption(args[0] ?? '')) {
    process.stdout.write(`${VERSION_LINE}\n`)
    return
  }
  const problem = nodeProblem(process.versions.node)
  if (problem !== undefined) {
    process.stderr.write(`sluice: ${problem}\n`)
    process.exitCode = 1
    return
  }
  const cache = compileCacheFolder()
  if (cache) enableCompileCache(cache)
  await loadProfile()
}
