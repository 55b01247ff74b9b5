/** What importing a module costs: the files that it loads, and the time. */
import { spawnSync } from 'node:child_process'

const RECORD = `
const { registerHooks } = await import('node:module')
const loaded = []
registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context) } })
await import(process.argv[1])
console.log(JSON.stringify(loaded))`

const MEASURE = `
const startedAt = performance.now()
await import(process.argv[1])
console.log(performance.now() - startedAt)`

/** An empty module. */
const NOTHING = 'data:text/javascript,'

function runNode(folder: string, source: string, specifier: string): unknown {
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '--eval', source, specifier], {
    cwd: folder,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

/** Returns the URLs of the modules that an import loads in a new process, built-in modules included. */
export const loadedBy = (folder: string, specifier: string): string[] => runNode(folder, RECORD, specifier) as string[]

/**
 * Returns how many milliseconds longer the import takes than one of an empty module, each in a new process. The least time of each
 * counts, because other processes only ever add time. It stops after `pairs` pairs, or as soon as the result is below `enoughMs`.
 */
export function importMs(folder: string, specifier: string, { pairs, enoughMs }: { pairs: number; enoughMs: number }): number {
  let least = Number.POSITIVE_INFINITY
  let leastEmpty = Number.POSITIVE_INFINITY
  for (let pair = 0; pair < pairs && !(pair > 4 && least - leastEmpty <= enoughMs); pair++) {
    leastEmpty = Math.min(leastEmpty, runNode(folder, MEASURE, NOTHING) as number)
    least = Math.min(least, runNode(folder, MEASURE, specifier) as number)
  }
  return least - leastEmpty
}
