/** What importing a module costs: the files that it loads. */
import { spawnSync } from 'node:child_process'

const RECORD = `
const { registerHooks } = await import('node:module')
const loaded = []
registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context) } })
await import(process.argv[1])
console.log(JSON.stringify(loaded))`

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
